"""A history for the tests of this folder."""

import pytest

from fencepost.history import History


@pytest.fixture
def history() -> History:
    """Nothing is recorded yet."""
    return History()
