"""Any 64-bit number in any integer of a trace: judged, explained and drawn, or refused by a sentence."""

import json

import attrs
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fencepost.checkers.judges import judge
from fencepost.report.explain import explain
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Name
from fencepost.traces.jsonlines import lines_of, read_traces
from fencepost.traces.operations import Function
from fencepost.viewer.view import Shown, view_of
from tests.lab_of_runs import healthy_run

LARGE = (-(2**63), -1, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1)
OUTSIDE = (-(2**63) - 1, 2**63, 10**30, 1.5)


@pytest.fixture(scope="module")
def lines():
    """A small healthy run, as JSON lines."""
    return list(lines_of(attrs.evolve(healthy_run(), digest="")))
