"""The path that fencepost.machines had in 0.1, for what users import; it goes with 0.3.

Owns the list of the modules that keep it. Each is the module itself, so a class has one identity by both
paths. The import is by name because campaign is below machines: it must never need what is there.
"""

import sys
from importlib import import_module

MOVED = (
    *("replicated_log", "system_under_test", "cluster", "log"),
    *("cluster.steps", "cluster.rules", "cluster.fall_rules", "cluster.operator_rules"),
    *("cluster.relay_rules", "cluster.machines", "log.disk_rot", "log.planted"),
)

for _name in MOVED:
    sys.modules[f"{__name__}.{_name}"] = import_module(f"fencepost.machines.{_name}")
    if "." not in _name:
        globals()[_name] = sys.modules[f"{__name__}.{_name}"]
