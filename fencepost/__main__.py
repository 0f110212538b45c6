"""The program `fencepost`, also as `python -m fencepost`. Owns that a Ctrl-C while it loads prints no
traceback."""

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from fencepost.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # nothing is loaded yet that knows the exit codes
    run()


if __name__ == "__main__":
    main()
