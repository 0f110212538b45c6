"""Makes the helper modules of this folder (admin_lab.py) and of the controller's (controller_lab.py)
importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "controller")]
