"""Starts a process of ours: `python -m fencepost.processes.begin MODULE ARGUMENT...` imports the module and
calls its `main`.

Owns that nobody looks for garbage among modules while they load: they stay. That is a seventh of what
loading a campaign's worker costs. Must not know the modules.
"""

import gc
import sys
from pkgutil import resolve_name

COLLECT_AFTER = (50_000, 20, 50)
"""Objects made before a garbage collection looks at the youngest, and so on. What a run or a controller makes
mostly stays until it is over: with Python's own numbers an eighth of a simulated run, and a quarter of a
controller's loading, go by in looking at it again."""


def settle() -> None:
    """What is loaded by now stays."""
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()


def main() -> None:
    """Take the module's name from the command line; the rest of the line is the module's."""
    gc.disable()
    process = resolve_name(f"{sys.argv.pop(1)}:main")
    settle()
    sys.exit(process())


if __name__ == "__main__":
    main()
