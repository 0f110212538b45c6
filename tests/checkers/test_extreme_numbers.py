"""Any 64-bit number in any integer of a trace: judged, explained and drawn, or refused by a sentence."""

import attrs
import pytest
from tests.lab_of_runs import healthy_run

from fencepost.traces.jsonlines import lines_of

LARGE = (-(2**63), -1, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1)
OUTSIDE = (-(2**63) - 1, 2**63, 10**30, 1.5)


@pytest.fixture(scope="module")
def lines():
    """A small healthy run, as JSON lines."""
    return list(lines_of(attrs.evolve(healthy_run(), digest="")))
