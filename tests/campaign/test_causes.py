"""The nearest plans of a failing one, and where two runs part."""

import pytest
from attrs import evolve

from fencepost.campaign.causes.neighbours import MOST_OPERATIONS, neighbours
from fencepost.campaign.causes.parting import MOST_LINKS, answered_differently, parting
from fencepost.checkers.verdict import Finding
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.plan import ClusterOptions, Fault, NetworkOptions, Plan, PlannedOperation, TopicOptions


def event(time: int, node: int, offset: int, name: Name = Name.APPENDED, partition: int = 0) -> Event:
    return Event(time=time, name=name, node=node, topic="t", partition=partition, offset=offset)


def finding(*events: int, partition: int = 0) -> Finding:
    return Finding(
        anomaly="lost_write", check="log", expected="", seen="", topic="t", partition=partition, events=events
    )


def test_neighbours_differ_in_one_respect() -> None:
    """Rule: one protection more, one fault, delay or operation less; the plan itself is none of them."""
    plan = Plan(
        seed=1,
        cluster=ClusterOptions(bugs=("KIP-101",), topics=(TopicOptions(flush_messages=1),)),
        network=NetworkOptions(loss_ppm=5, latency_tail_us=0),
        operations=tuple(
            PlannedOperation(op_id=number, process=0, at_ms=number, function="append") for number in range(3)
        ),
        faults=(Fault(fault_id=0, kind="crash", at_ms=5, duration_ms=100),),
    )
    found = list(neighbours(plan))
    assert [one.kind for one in found] == [
        *("protection", "protection", "fault", "delay", "delay"),
        *("operation", "operation", "operation"),
    ]
    assert "truncate_by_epoch" in found[0].says and found[0].plan.cluster.bugs == ()
    assert found[1].plan.cluster.topics[0].min_insync_replicas == 2
    assert found[2].plan == evolve(plan, faults=())
    assert found[3].plan.faults[0].duration_ms == 50 and found[4].plan.network.loss_ppm == 0
    assert len({one.says for one in found}) == len(found) and plan not in [one.plan for one in found]


def test_many_operations_are_left_out_evenly() -> None:
    """Rule: a plan of a thousand operations has a bounded number of neighbours."""
    operations = tuple(
        PlannedOperation(op_id=number, process=0, at_ms=number, function="append") for number in range(1000)
    )
    found = [one for one in neighbours(Plan(seed=1, operations=operations)) if one.kind == "operation"]
    assert MOST_OPERATIONS <= len(found) <= 2 * MOST_OPERATIONS


def test_runs_part_at_the_first_event_that_differs() -> None:
    """Rule: times do not count, nor the order among brokers, nor other partitions; the earliest difference of
    any broker does."""
    failing = [event(1, 1, 0), event(2, 2, 0), event(3, 1, 7, partition=1), event(4, 2, 3), event(5, 1, 4)]
    passing = [event(9, 2, 0), event(9, 1, 0), event(9, 1, 8, partition=1), event(9, 2, 5), event(9, 1, 6)]
    found = parting(failing, passing, finding(4))
    assert found is not None
    assert (found.position, found.instead, found.chain) == (3, passing[3], (3, 4))
    elsewhere = parting(failing, passing, finding(4, partition=1))
    assert elsewhere is not None and elsewhere.position == 2
    assert parting(failing, failing, finding(4)) is None


def test_a_broker_that_did_nothing_more_parts_too() -> None:
    """Rule: an event that the passing run lacks is a parting, with nothing in its place."""
    found = parting([event(1, 1, 0), event(2, 1, 1)], [event(1, 1, 0)], finding(1))
    assert found is not None and (found.position, found.instead) == (1, None)


def test_coordinators_partitions_concern_every_finding() -> None:
    """Rule: a group's offset expires on a partition of __consumer_offsets; what clients see of that is on
    another one."""
    expired = evolve(event(2, 1, 0, Name.GROUP_OFFSET_EXPIRED), topic="__consumer_offsets")
    copied = event(3, 1, 9)
    found = parting([event(1, 1, 0), expired, copied], [event(1, 1, 0), copied], finding(2))
    assert found is not None and (found.position, found.instead) == (1, copied)


def test_the_event_that_is_no_routine_says_what_a_moment_was() -> None:
    """Rule: a marker is appended, and then is written, at one moment; an event of another moment or broker
    does not count."""
    failing = [event(1, 1, 0), event(5, 1, 3), event(5, 2, 3, Name.MARKER_WRITTEN)]
    passing = [event(1, 1, 0), event(4, 1, 2), event(4, 1, 2, Name.MARKER_WRITTEN)]
    found = parting(failing, passing, finding(2))
    assert found is not None and (found.position, found.instead) == (1, passing[2])


def poll(number: int, time: int, *values: int, attempts: int = 1, partition: int = 0) -> Operation:
    """A poll that is answered one nanosecond later."""
    records = tuple(Record(topic="t", partition=partition, offset=each, value=each) for each in values)
    return Operation(
        op_id=number, process=0, function=Function.POLL, invoke_time=time, completion_time=time + 1,
        outcome=Outcome.OK, records=records, attempts=attempts, topic="t", partition=partition,
    )  # fmt: skip


def test_the_first_operation_with_another_answer() -> None:
    """Rule: if all events agree, the runs part where a client was answered differently; times and attempts
    do not count."""
    failing = [poll(0, 1, 1), poll(1, 9, 2, 3), poll(2, 5, 4)]
    assert answered_differently(failing, [poll(0, 2, 1), poll(1, 9, 2), poll(2, 5)], finding(2)) == (
        failing[2],
        poll(2, 5),
    )
    assert answered_differently(failing, failing[:1], finding(2)) == (failing[2], None)
    assert answered_differently(failing, [poll(0, 7, 1, attempts=2), *failing[1:]], finding(2)) is None


@pytest.mark.parametrize(
    ("before_ns", "passing", "first"),
    [
        (20, [poll(0, 1, 1), poll(1, 9, 5)], 1),
        (10, [poll(0, 1, 1), poll(1, 9, 5)], None),
        # The earlier answer of the two is when the runs part.
        (10, [poll(0, 1, 1), poll(1, 4, 5)], 1),
        # A plan may lack an operation, and another partition says nothing.
        (20, [poll(0, 1, 1)], None),
        (20, [poll(0, 1, 7, partition=3), poll(1, 9, 2)], 0),
    ],
)
def test_an_answer_counts_if_it_comes_before_the_events_part(
    before_ns: int, passing: list[Operation], first: int | None
) -> None:
    """Rule: where events differ, only an operation of both runs that was answered before counts."""
    failing = [poll(0, 1, 1), poll(1, 9, 2)]
    found = answered_differently(failing, passing, finding(2), before_ns)
    assert (found and found[0].op_id) == first


def test_an_answer_of_another_partition_does_not_count() -> None:
    """Rule: it says nothing of the finding, as another partition's events do not."""
    failing, passing = [poll(0, 1, 1, partition=3)], [poll(0, 1, 2, partition=3)]
    assert finding(2).partition == 0
    assert answered_differently(failing, passing, finding(2), 20) is None
    assert answered_differently(failing, passing, finding(2)) == (failing[0], passing[0])


def test_the_chain_is_short_and_keeps_what_convicts() -> None:
    """Rule: routine is left out, the parting and the convicting events stay, and the rest is bounded."""
    events = [event(0, 1, 0, Name.TRUNCATED)]
    events += [event(time, 1, time, Name.TRUNCATED if time % 2 else Name.APPENDED) for time in range(1, 100)]
    found = parting(events, [], finding(40, 99))
    assert found is not None and len(found.chain) == MOST_LINKS
    assert {0, 40, 99} <= set(found.chain) and list(found.chain) == sorted(found.chain)
    routine = [at for at in found.chain if events[at].name is Name.APPENDED]
    assert routine == [40]
