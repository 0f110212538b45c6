"""Makes the helper module of this folder (group_lab.py) importable by its tests; a lab for them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from group_lab import GroupLab


@pytest.fixture
def lab() -> GroupLab:
    """Three brokers of which nothing special is said."""
    return GroupLab()
