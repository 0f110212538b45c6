"""The folder of these tests is on the path: they share a lab."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
