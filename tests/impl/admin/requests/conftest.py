"""Makes the helper modules of this folder (admin_lab.py) and of the controller's (controller_lab.py)
importable; a lab for the tests of requests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "controller"))

from admin_lab import AdminLab


@pytest.fixture
def lab() -> AdminLab:
    """A cluster of which nothing special is said."""
    return AdminLab()
