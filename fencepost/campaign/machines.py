"""The path that fencepost.machines had in 0.1, for what users import; it goes with 0.3.

Each module of that room is itself by both paths, so a class has one identity. The import is by name because
campaign is below machines: it must never need what is there.
"""

import sys
from importlib import import_module
from pkgutil import walk_packages

NEW = "fencepost.machines"

_room = import_module(NEW)
for _found in walk_packages(_room.__path__, f"{NEW}."):
    _name = _found.name.removeprefix(f"{NEW}.")
    sys.modules[f"{__name__}.{_name}"] = import_module(_found.name)
    if "." not in _name:
        globals()[_name] = sys.modules[f"{__name__}.{_name}"]
