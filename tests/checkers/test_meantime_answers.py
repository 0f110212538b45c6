"""What clients were refused, and what compaction left: the rules of the meantime that read operations."""

import pytest

from fencepost.checkers.meantime import judge
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.plan import ClusterOptions, Plan, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace


def found(*operations: Operation, events: tuple[Event, ...] = (), policy: str = "compact") -> set[str]:
    """What is found of one compacted topic."""
    plan = Plan(seed=1, cluster=ClusterOptions(topics=(TopicOptions(cleanup_policy=policy),)))
    trace = Trace(
        trace_id=1,
        plan=plan_to_json(plan),
        seed=1,
        software_version="0",
        operations=operations,
        events=events,
    )
    return {finding.anomaly for finding in judge(trace).findings} - {"needless_retry"}


def append(
    op_id: int, offset: int, *, outcome: Outcome = Outcome.OK, argument: str | None = None, acks: int = -1
) -> Operation:
    records = (Record(topic="t", partition=0, offset=offset, value=op_id),)
    return Operation(
        op_id=op_id, process=0, function=Function.APPEND, topic="t", partition=0, key="k", argument=argument,
        invoke_time=op_id, completion_time=op_id, outcome=outcome, records=records, acks=acks,
    )  # fmt: skip


def dump(*values: int, end: int, start: int = 0) -> Event:
    return Event(
        time=9,
        name=Name.REPLICA_LOG,
        node=1,
        topic="t",
        partition=0,
        offset=start,
        values=values,
        end_offset=end,
        high_watermark=end,
        log_start_offset=start,
    )


@pytest.mark.parametrize(
    ("operations", "log", "anomalies"),
    [
        ((append(1, 0), append(2, 1)), dump(2, end=2), set()),
        ((append(1, 0), append(2, 1)), dump(1, end=2), {"latest_value_lost"}),
        ((append(1, 0), append(2, 1)), dump(1, end=1), set()),  # a log that ends before it
        ((append(1, 0), append(2, 1)), dump(end=3, start=2), set()),  # or begins after it
        ((append(1, 0), append(2, 1, argument="tombstone")), dump(end=2), set()),
        ((append(1, 0), append(2, 1, outcome=Outcome.UNKNOWN)), dump(end=2), set()),
        ((append(1, 0), append(2, 1, acks=1)), dump(1, end=2), set()),  # only its leader had it
    ],
)
def test_the_last_record_of_a_key_stays(
    operations: tuple[Operation, ...], log: Event, anomalies: set[str]
) -> None:
    """Rule (COMPACTION): compaction takes earlier records only; of a topic from which something else deletes,
    nothing is asked."""
    assert found(*operations, events=(log,)) == anomalies
    assert found(*operations, events=(log,), policy="compact,delete") == set()
    changed = Event(time=1, name=Name.TOPIC_CONFIGURED, node=1, topic="t", detail="{}")
    assert found(*operations, events=(changed, log)) == set()


def test_consumers_that_are_alike_are_not_refused_for_their_protocol() -> None:
    """Rule (JUSTIFIED): other errors of a join have their reasons."""
    refused = Operation(
        op_id=1, process=0, function=Function.JOIN, invoke_time=1, completion_time=2, outcome=Outcome.FAIL,
        group="g", error="INCONSISTENT_GROUP_PROTOCOL",
    )  # fmt: skip
    assert found(refused) == {"needless_refusal"}
