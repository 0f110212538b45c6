"""What is known of one bad trace: canonical words, steps between cause and effect, what stood in the way."""

from typing import Any

import msgspec
import numpy as np
import pytest
from attrs import asdict, evolve

from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.mining.triage.event_steps import steps_of
from fencepost.mining.triage.evidence import canonical, evidence_of
from fencepost.mining.triage.features import features_of
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.diagnosis import BrokerSeen, Diagnosis
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.tables import tables_of
from tests.checkers import lab

OFFSETS: dict[str, Any] = {"topic": "__consumer_offsets", "partition": 0}


def said(**detail: object) -> str:
    return msgspec.json.encode(detail).decode()


def operation(op_id: int, function: Function, start: int, end: int, node: int) -> Operation:
    return Operation(
        op_id=op_id, process=1, function=function, invoke_time=start, completion_time=end,
        outcome=Outcome.OK, group="g1#2", node=node,
    )  # fmt: skip


def phase(time: int, group: str, cause: str, why: str) -> Event:
    detail = said(group=group, generation=1, members=[], leader="", why=why)
    return Event(time=time, name=Name.GROUP_PHASE, node=1, cause=cause, detail=detail, **OFFSETS)


def expired(time: int, partition: int, cause: str) -> Event:
    detail = said(group="g1", topic="t", partition=partition)
    return Event(time=time, name=Name.GROUP_OFFSET_EXPIRED, node=1, cause=cause, detail=detail, **OFFSETS)


def items_of(events: list[Event], operations: list[Operation], finding: Finding) -> tuple[str, ...]:
    trace = lab.trace(operations, trace_id=7, events=tuple(events))
    tables = tables_of([rows_of(trace)])
    steps = steps_of(tables.events, np.array([7], np.int64))
    words = features_of(tables, steps).of_each(1)[0]
    verdict = Verdict(decision=Decision.ILLEGAL, check=finding.check, findings=(finding,))
    return evidence_of(0, [verdict], words, tables, steps).items


LOST = Finding(
    anomaly="committed_offset_lost", check="groups", expected="offset 3 of member consumer-2-1",
    seen="nothing", topic="t", partition=0, operations=(2, 1),
)  # fmt: skip


def test_names_and_numbers_are_no_part_of_a_clause() -> None:
    """Rule: two members, two topics and two offsets give the same clause."""
    assert canonical("member consumer-2-1-3 got t-0 at 3.2 s", ()) == "member NAME got NAME at #.# s"
    assert canonical("topic orders, [1, 2]", ("orders",)) == "topic NAME, [..]"


def test_what_lies_between_a_commit_and_its_loss_is_evidence() -> None:
    """Rule: the group's own steps between the first and the last convicting operation count; those of another
    group, of another partition of the topic, and those before and after do not."""
    events = [
        phase(5, "g1", "Stable", "consumer-9-1 joins"),
        phase(20, "g1", "Empty", "the session of consumer-9-1 has ended"),
        phase(21, "g2", "Dead", "nobody is left"),
        expired(22, 0, "Empty"),
        expired(23, 1, "PreparingRebalance"),
        phase(90, "g1", "CompletingRebalance", "all have joined"),
    ]
    operations = [operation(1, Function.COMMIT, 10, 12, 1), operation(2, Function.FETCH_COMMITTED, 30, 40, 1)]
    items = items_of(events, operations, LOST)
    assert [item for item in items if item.startswith("between: ")] == [
        "between: group_offset_expired Empty",
        "between: group_phase Empty (the session of NAME has ended)",
    ]
    assert "clause: committed_offset_lost: offset # of member NAME" in items


@pytest.mark.parametrize(("leader", "words"), [(1, "commit ok"), (3, "commit ok, not by the leader")])
def test_an_answer_by_a_broker_that_does_not_lead_is_evidence(leader: int, words: str) -> None:
    """Rule: the broker of a convicting operation is compared with the leader of the partition that keeps the
    group."""
    state = lab.event(1, Name.PARTITION_STATE, 2, leader=leader, leader_epoch=1, isr=(1, 3), **OFFSETS)
    operations = [operation(1, Function.COMMIT, 10, 12, 1), operation(2, Function.FETCH_COMMITTED, 30, 40, 3)]
    items = items_of([state, phase(5, "g1", "Stable", "assigned")], operations, LOST)
    assert f"convicts: {words}" in items


def marker(time: int, producer: int, *, commit: bool, partition: int = 0) -> Event:
    detail = said(producer_id=producer, producer_epoch=1, coordinator_epoch=0, commit=commit)
    return Event(time=time, name=Name.MARKER_WRITTEN, node=1, topic="out", partition=partition, detail=detail)


ABORTED, COMMITTED = "marker_written (commit false)", "marker_written (commit true)"


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([marker(20, 5, commit=True)], COMMITTED),
        ([marker(20, 5, commit=False)], ABORTED),
        ([marker(50, 5, commit=False)], "nothing"),
        ([marker(5, 5, commit=True)], "nothing"),  # of the transaction before
        ([marker(20, 5, commit=False, partition=1)], "nothing"),
        ([marker(20, 6, commit=False)], "nothing"),
    ],
)
def test_whether_a_transaction_had_ended_when_it_was_read_is_evidence(
    events: list[Event], words: str
) -> None:
    """Rule: a record that is read before its transaction's end, and one of an aborted transaction, are two
    stories of the same verdict."""
    record = (Record(topic="out", partition=0, offset=3, value=9, leader_epoch=0),)
    wrote = evolve(
        operation(1, Function.APPEND, 10, 12, 1),
        group="",
        producer_id=5,
        topic="out",
        partition=0,
        records=record,
    )
    read = evolve(
        operation(2, Function.POLL, 30, 40, 1), group="", topic="out", partition=0, records=record,
        isolation="read_committed",
    )  # fmt: skip
    shown = Finding(
        anomaly="failed_append_visible", check="log", expected="none", seen="it", topic="out", partition=0,
        operations=(2, 1),
    )  # fmt: skip
    items = items_of(events, [wrote, read], shown)
    ends = [item for item in items if item.startswith("ends: ")]
    assert ends == [f"ends: failed_append_visible: append, {words}"]
    other = items_of(events, [wrote, evolve(read, records=())], shown)
    assert not any(item.startswith("ends: ") for item in other)


def test_what_stood_when_a_wait_was_given_up_is_evidence() -> None:
    """Rule: each contradiction of the diagnosis is an item of its own, without the brokers' numbers."""
    brokers = tuple(BrokerSeen(broker=number, process="up") for number in (1, 2))
    stood = Diagnosis(partitions=(), brokers=brokers, controller=-1, controller_epoch=1, acting=())
    failed = lab.event(
        9,
        Name.LIVENESS_FAILED,
        cause="every broker is registered",
        detail=msgspec.json.encode(asdict(stood)).decode(),
    )
    finding = Finding(anomaly="no_progress", check="invariants", expected="it", seen="never", events=(0,))
    items = items_of([failed], [], finding)
    assert "step: liveness_failed every broker is registered" in items
    assert [item for item in items if item.startswith("stands: ")] == [
        "stands: broker # runs and is not registered in ZooKeeper",
        "stands: nobody is the controller: /controller does not exist",
    ]
