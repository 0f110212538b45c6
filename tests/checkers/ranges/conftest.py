"""Makes the random histories of the log check's tests (log_*.py) importable here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "log"))
sys.path.insert(0, str(Path(__file__).parent))
