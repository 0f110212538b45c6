"""Starts a process of ours: `python -m fencepost.begin MODULE ARGUMENT...` imports the module and calls its
`main`.

Owns that nobody looks for garbage among modules while they load: they stay. That is a seventh of what
loading a campaign's worker costs. Must not know the modules.
"""

import gc
import sys
from pkgutil import resolve_name


def main() -> None:
    """Take the module's name from the command line; the rest of the line is the module's."""
    gc.disable()
    process = resolve_name(f"{sys.argv.pop(1)}:main")
    gc.freeze()
    gc.enable()
    sys.exit(process())


if __name__ == "__main__":
    main()
