"""Makes the helper modules of this folder (wire_*.py) importable by its tests; a connection for them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from wire_core import connection

from fencepost.wire.connection import Connection


@pytest.fixture
def it() -> Connection:
    """A new connection."""
    return connection()
