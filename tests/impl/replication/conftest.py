"""A cluster for the tests of this folder."""

import pytest
from impl_lab import Lab


@pytest.fixture
def lab() -> Lab:
    """Broker 1 leads t-0; 2 and 3 are in sync and wait in its purgatory for more."""
    lab = Lab().led(1, 0)
    return lab.settle()
