"""`python -m bench`: see harness.py."""

import sys

from bench.harness import main

if __name__ == "__main__":
    sys.exit(main())
