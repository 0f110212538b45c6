"""The folder of these tests is on the path: they share how plans of one feature are drawn."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
