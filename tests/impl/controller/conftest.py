"""Makes the helper module of this folder (controller_lab.py) importable by its tests; a cluster for them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from controller_lab import settled
from impl_lab import Lab


@pytest.fixture
def lab() -> Lab:
    """Partition t-0 is on brokers 2 and 3, and everything has come to rest."""
    return settled({0: (2, 3)})
