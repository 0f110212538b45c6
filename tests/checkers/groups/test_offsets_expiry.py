"""Committed offsets that a broker removes after offsets.retention.minutes: allowed by a claim, and only
then."""

from typing import Any

import pytest

from fencepost.checkers.groups import group_facts, judge_trace
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Claims, Trace

MINUTE = 60 * 10**9


def operation(function: str, minute: float, **more: Any) -> Operation:
    begin = int(minute * MINUTE)
    own = {
        "op_id": begin, "process": 1, "invoke_time": begin, "completion_time": begin + 1, "topic": "t",
        "partition": 0, "group": "g", "outcome": Outcome.OK,
    }  # fmt: skip
    return Operation(**{**own, "function": Function(function), **more})


def history(fetched: float, **claims: Any) -> Trace:
    """Offset 2 is committed at minute 1; at the minute `fetched` nothing is, and another member begins."""
    records = tuple(Record(topic="t", partition=0, offset=n, value=n) for n in range(2))
    operations = (
        operation("poll", 0.5, member="a", generation=1, records=records),
        operation("commit", 1, member="a", generation=1, offset=2),
        operation("fetch_committed", fetched, process=2),
        operation("poll", fetched + 0.1, process=2, member="b", generation=2, records=records),
    )
    return Trace(
        trace_id=1, plan="", seed=0, software_version="", operations=operations, claims=Claims(**claims)
    )


def test_an_offset_that_expired_is_allowed_by_its_claim() -> None:
    """Later than that after the commit nothing need be committed, and what it covered is read again."""
    trace = history(12, offsets_expiry_ms=10 * 60_000)
    assert judge_trace(trace).findings == ()
    assert [(fact.kind, fact.cause) for fact in group_facts(trace)] == [("reprocessed", "expired")]


@pytest.mark.parametrize(("fetched", "claims"), [(12, {}), (9, {"offsets_expiry_ms": 10 * 60_000})])
def test_an_offset_that_cannot_have_expired_is_lost(fetched, claims) -> None:
    """Without the claim, and before the time is over."""
    found = {finding.anomaly for finding in judge_trace(history(fetched, **claims)).findings}
    assert found == {"committed_offset_lost", "reprocessed_after_commit"}
