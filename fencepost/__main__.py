"""The program `fencepost`, also as `python -m fencepost`. Owns that neither a Ctrl-C nor a broken library
prints a traceback while it loads."""

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from fencepost.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # nothing is loaded yet that knows the exit codes
    except Exception as error:
        from fencepost.traces.errors import BrokenLibraryError, broken_library

        library = broken_library(error)
        if not library:
            raise
        broken = BrokenLibraryError(library, error)
        sys.stderr.write(f"fencepost: {broken}\n")
        sys.exit(int(broken.exit_code))
    run()


if __name__ == "__main__":
    main()
