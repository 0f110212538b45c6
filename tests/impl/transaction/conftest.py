"""Makes the helper module of this folder (transaction_lab.py) importable by its tests; a lab for them."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from transaction_lab import TransactionLab


@pytest.fixture
def lab() -> TransactionLab:
    """Two brokers of which nothing special is said."""
    return TransactionLab()


@pytest.fixture
def me(lab: TransactionLab) -> Any:
    """A producer of its own: the answer to its InitProducerId."""
    return lab.init()
