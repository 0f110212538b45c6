"""The paths that modules had in 0.1, for what users import; they go with 0.3.

An old path leads to the same module, so that a class has one identity. Nothing here imports anything until
somebody asks for an old path.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "fencepost.blame.tap": "fencepost.application.tap",
    "fencepost.blame": "fencepost.application.blame",
    "fencepost.campaign.bugs": "fencepost.bugs",
    "fencepost.campaign.faults": "fencepost.run.faults",
    "fencepost.campaign.machines": "fencepost.machines",
    "fencepost.campaign.run.group_consumer": "fencepost.run.consumers",
    "fencepost.campaign.run": "fencepost.run.simulated",
}
"""The new path of a module or package by its old one; the first row that fits counts."""


def new_path(name: str) -> str | None:
    """Where a module is now; None if it has not moved. name: by which somebody imports it."""
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name[len(old) :]
    return None


class _Moved(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if new_path(fullname) is None else ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(new_path(spec.name) or spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It is loaded; it keeps the spec of its own path, which Python has just replaced."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def lead_to_new_paths() -> None:
    """Let old paths lead to the new ones, before anybody looks into the folders."""
    sys.meta_path.insert(0, _Moved())
