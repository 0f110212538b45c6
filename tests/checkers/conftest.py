"""Makes the helper modules of the folders below importable by the tests of this folder that ask several
judges."""

import sys
from pathlib import Path

for folder in ("kafka", "linearizability", "log"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
