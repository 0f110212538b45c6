"""Names that are used again: what was deleted and created again begins anew in every check, and what is wrong
in the new one is found."""

import msgspec
import pytest
from attrs import evolve

from fencepost.checkers.judges import DEFAULT_CHECKS, checks_by_name, judge
from fencepost.checkers.verdict import Finding
from fencepost.mining.spark_judge import judge_tables
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import OFFSET_DELETED, Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace
from tests.checkers import lab
from tests.checkers import traces_by_hand as by_hand
from tests.checkers.traces_by_hand import trace

ON = {"topic": "t", "partition": 0}
START = 1_000
"""When operations of the second topic begin: events are a nanosecond apart."""


def found(trace: Trace) -> list[Finding]:
    """The findings of all checks, which are the same in the form over tables."""
    one = [finding for verdict in judge(trace) for finding in verdict.findings]
    (judged,) = judge_tables(tables_of([rows_of(trace)]), checks_by_name(DEFAULT_CHECKS), None, where="here")
    assert [finding for verdict in judged.verdicts for finding in verdict.findings] == one
    return one


def assigned(*replicas: int) -> Event:
    """The topic's node."""
    return by_hand.event(Name.ASSIGNMENT, node=-1, replicas=replicas, **ON)


def deletion(cause: str) -> Event:
    """/admin/delete_topics."""
    return by_hand.event(Name.TOPIC_DELETION, node=-1, topic="t", partition=-1, cause=cause)


def gone(node: int, epoch: int) -> Event:
    """A broker deleted its replica."""
    return by_hand.event(Name.MARK, node=node, cause="replica_deleted", leader_epoch=epoch, **ON)


FIRST = [
    assigned(1, 2, 3),
    *by_hand.healthy_start(10, 11),
    by_hand.state(9, 2, 1, 2, 3, version=1),
    by_hand.leads(2, 1, 2, 3, end=2, hw=0),
    by_hand.follows(3, 2, 1, end=2),
    by_hand.follows(1, 2, 1, end=2),
]
"""Leader epochs 0 and 1."""
DELETED = [deletion("requested"), *(gone(node, 1) for node in (1, 2, 3)), assigned(), deletion("done")]
AGAIN = [
    assigned(2, 3, 1),
    by_hand.state(9, 2, 0, 2, 3, 1, version=0),
    by_hand.leads(2, 0, 2, 3, 1),
    by_hand.follows(3, 2, 0),
    by_hand.follows(1, 2, 0),
    by_hand.appends(2, 0, 0, 20, 21),
    by_hand.copies(3, 0, 0, 20, 21),
    by_hand.copies(1, 0, 0, 20, 21),
    by_hand.shows(2, 0, 2),
]
"""Its epochs, replicas and offsets begin anew."""


def test_a_topic_that_is_created_again_begins_anew() -> None:
    """Leader epochs, leaders, records and assignments of the deleted topic bind nobody."""
    assert not found(trace(*FIRST, *DELETED, *AGAIN))


def test_without_a_request_nothing_begins_anew() -> None:
    """A controller that removes a topic that nobody asked to delete excuses nothing by it."""
    names = {finding.anomaly for finding in found(trace(*FIRST, assigned(), *AGAIN))}
    assert {"leader_epoch_regressed", "two_leaders_one_epoch"} <= names


@pytest.mark.parametrize(
    ("wrong", "anomaly"),
    [
        ([by_hand.leads(3, 0, 2, 3, 1, end=2)], "two_leaders_one_epoch"),
        ([by_hand.copies(1, 0, 2, 99), by_hand.copies(3, 0, 2, 98)], "log_divergence"),
        ([by_hand.state(9, 3, 1, 3, version=1), by_hand.leads(3, 1, 3, end=0)], "conformance"),
        ([gone(3, 0)], "isr_member_deleted"),
    ],
)
def test_what_is_wrong_in_the_topic_created_again_is_found(wrong: list[Event], anomaly: str) -> None:
    """The folds begin anew, they do not stop; the finding names the topic as clients do."""
    of_it = [one for one in found(trace(*FIRST, *DELETED, *AGAIN, *wrong)) if one.anomaly == anomaly]
    assert of_it and {one.topic for one in of_it} == {"t"}


def test_a_broker_that_hears_late_of_a_deletion_acts_in_the_topic_before() -> None:
    """What a broker does until it has deleted its replica is of the deleted topic, although the new one is
    there."""
    lagging = [
        deletion("requested"),
        *(gone(node, 1) for node in (1, 3)),
        assigned(),
        deletion("done"),
        *AGAIN[:2],
        by_hand.appends(2, 1, 2, 12),
        gone(2, 1),
        *AGAIN[2:],
    ]
    assert not found(trace(*FIRST, *lagging))


# ---- operations


def operation(op_id: int, function: Function, invoke: int, **columns: object) -> Operation:
    """One of the process with its number."""
    made = lab.operation(op_id, function, invoke, invoke + 5, node=2)
    return evolve(made, **columns)


def append(op_id: int, invoke: int, offset: int, *values: int, **columns: object) -> Operation:
    """Acknowledged by all."""
    records = lab.records(*values, begin=offset)
    given = {"acks": -1, "offset": offset, "records": records, **ON, **columns}
    return operation(op_id, Function.APPEND, invoke, **given)


def poll(op_id: int, invoke: int, offset: int, *values: int, end: int, epoch: int = 0) -> Operation:
    """A read from this offset that claims this end, at the end of the run."""
    columns = append(op_id, invoke, offset, *values)
    return operation(
        op_id,
        Function.POLL,
        invoke,
        offset=offset,
        records=columns.records,
        end_offset=end,
        leader_epoch=epoch,
        strong=True,
        **ON,
    )


def timed(events: list[Event], *more: tuple[int, Event]) -> list[Event]:
    """The first topic until 100, its deletion from 200 to 250, the next one from 300 on."""
    times = [*range(100, 100 + len(events)), *range(200, 200 + len(DELETED)), *range(300, 300 + len(AGAIN))]
    every = [*events, *DELETED, *AGAIN]
    return [evolve(each, time=at) for each, at in zip(every, times, strict=True)]


BEFORE = [append(1, 110, 0, 10, 11), poll(2, 120, 0, 10, 11, end=2, epoch=1)]
AFTER = [append(3, START, 0, 20, 21), poll(4, START + 100, 0, 20, 21, end=2)]


def history(*operations: Operation) -> Trace:
    """With the events of a topic that was created again."""
    return trace(*timed(FIRST), operations=operations)


def test_the_history_of_a_partition_is_cut_at_the_deletion() -> None:
    """Offsets are given again, and what was acknowledged before is nowhere."""
    assert not found(history(*BEFORE, *AFTER))


def test_operations_that_overlap_the_deletion_may_be_of_either_topic() -> None:
    """An append may be the new topic's, acknowledged or not; a read of either says nothing."""
    overlapping = append(5, 195, 2, 12, completion_time=START - 50)
    unknown = evolve(append(6, 130, 2, 13), outcome=Outcome.UNKNOWN, completion_time=None, offset=None)
    late = append(7, START + 20, 2, 22)
    reads = poll(4, START + 100, 0, 20, 21, 22, 13, end=4)
    assert not found(history(*BEFORE, overlapping, unknown, AFTER[0], late, reads))
    either = poll(8, 199, 0, 10, 11, end=2, epoch=1)
    assert not found(history(*BEFORE, evolve(either, completion_time=START - 50), *AFTER))


@pytest.mark.parametrize(
    ("last", "anomaly"),
    [
        (poll(4, START + 100, 0, 20, end=1), "torn_batch"),
        (poll(4, START + 100, 0, end=0), "lost_write"),
        (poll(4, START + 100, 0, 20, 10, end=2), "phantom_record"),
    ],
)
def test_a_record_that_the_new_topic_loses_is_found(last: Operation, anomaly: str) -> None:
    """The history of the new topic is judged as any other."""
    names = [finding.anomaly for finding in found(history(*BEFORE, AFTER[0], last))]
    assert anomaly in names, names


def test_the_finding_names_topics_and_operations_of_the_trace() -> None:
    """Whatever was added in order to judge is not in a certificate."""
    overlapping = append(5, 195, 2, 12, completion_time=START - 50)
    trace = history(*BEFORE, overlapping, AFTER[0], poll(4, START + 100, 0, 20, end=1))
    known = {each.op_id for each in trace.operations}
    findings = found(trace)
    assert findings
    for finding in findings:
        assert finding.topic == "t" and set(finding.operations) <= known


# ---- groups


def of_group(op_id: int, function: Function, invoke: int, offset: int | None, **columns: object) -> Operation:
    """Of group g."""
    return operation(op_id, function, invoke, group="g", offset=offset, **ON, **columns)


def joined(op_id: int, invoke: int, generation: int, member: str) -> Operation:
    """A member with the partition."""
    return operation(
        op_id, Function.JOIN, invoke, group="g", member=member, generation=generation, offset=-1, **ON
    )


def real(*events: Event, operations: tuple[Operation, ...]) -> Trace:
    """A trace without a plan: a simulated run says itself which group is which."""
    return trace(*events, operations=operations)


COMMITTED = of_group(1, Function.COMMIT, 100, 7)
NONE_LEFT = of_group(2, Function.FETCH_COMMITTED, 500, None)


def offset_deleted(time: int) -> Event:
    """OffsetDelete."""
    return by_hand.event(
        Name.GROUP_OFFSET_EXPIRED,
        time=time,
        node=1,
        topic="__consumer_offsets",
        partition=3,
        cause=OFFSET_DELETED,
        detail=msgspec.json.encode({"group": "g", **ON}).decode(),
    )


def group_removed(time: int, cause: str = "") -> Event:
    """The tombstone."""
    return by_hand.event(
        Name.GROUP_REMOVED,
        time=time,
        node=1,
        topic="__consumer_offsets",
        partition=3,
        detail="g",
        cause=cause,
    )


def test_an_offset_that_was_deleted_is_not_lost() -> None:
    """OffsetFetch answers -1 after OffsetDelete; without it that is a finding, and so is an older offset."""
    deleted = offset_deleted(300)
    assert not found(real(deleted, operations=(COMMITTED, NONE_LEFT)))
    lost = found(real(by_hand.event(Name.PHASE, time=300, cause="safety"), operations=(COMMITTED, NONE_LEFT)))
    assert [finding.anomaly for finding in lost] == ["committed_offset_lost"]
    again = of_group(3, Function.COMMIT, 400, 9)
    lost = found(real(deleted, operations=(COMMITTED, again, evolve(NONE_LEFT, offset=7))))
    assert lost and "committed_offset" in lost[0].anomaly


def test_a_group_that_was_deleted_begins_anew() -> None:
    """Its generations begin at 1, its offsets are gone; a regression in the new one is found."""
    first = (joined(3, 50, 5, "a"), COMMITTED)
    second = (NONE_LEFT, joined(4, 550, 1, "b"), joined(5, 600, 2, "b"))
    assert not found(real(group_removed(300), operations=(*first, *second)))
    wrong = found(real(group_removed(300), operations=(*first, *second, joined(6, 700, 1, "b"))))
    assert [finding.anomaly for finding in wrong] == ["generation_regressed"]
    planned = evolve(real(group_removed(300), operations=(*first, *second)), plan="{}")
    assert "generation_regressed" in {one.anomaly for verdict in judge(planned) for one in verdict.findings}


def test_offsets_of_a_topic_that_was_deleted_are_not_lost() -> None:
    """Whether it was created again or not; its own offsets count again then."""
    operations = (COMMITTED, evolve(NONE_LEFT, invoke_time=START, completion_time=START + 5))
    events = timed(FIRST)
    assert not found(real(*events, operations=operations))
    assert not found(real(*events[: len(FIRST) + len(DELETED)], operations=operations))
    again = of_group(3, Function.COMMIT, START + 10, 1)
    lost = evolve(NONE_LEFT, op_id=9, process=9, invoke_time=START + 50, completion_time=START + 55)
    assert not found(real(*events, operations=(*operations, again, evolve(lost, offset=1))))
