"""A group does a record's work again only after a crash, an expulsion or a fault."""

from random import Random

import pytest
from attrs import evolve

from fencepost.checkers.meantime.options import options_of
from fencepost.checkers.meantime.retries import settled_ns
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.plan import ClusterOptions, ConsumerOptions, NetworkOptions, Plan, PlannedOperation
from fencepost.traces.plan_json import plan_to_json
from tests.checkers.meantime_by_hand import PHASES, SECOND, anomalies_of


def poll(at: int, member: str, generation: int, *offsets: int) -> Operation:
    """A poll of a member that returned these offsets."""
    return Operation(
        op_id=at,
        process=ord(member),
        function=Function.POLL,
        invoke_time=at * SECOND,
        completion_time=at * SECOND + 1_000_000,
        outcome=Outcome.OK,
        group="g",
        member=member,
        generation=generation,
        records=tuple(Record(topic="t", partition=0, offset=offset, value=offset) for offset in offsets),
    )


def found(
    *operations: Operation,
    commit: str = "auto",
    events: tuple[Event, ...] = (),
    moves: tuple[PlannedOperation, ...] = (),
    latency_us: int = 1_000,
    slowest_us: int = 500,
    patience_ms: int = 1_500,
) -> bool:
    """Whether work that was done again has no reason."""
    plan = Plan(
        seed=1,
        cluster=ClusterOptions(zookeeper_session_timeout_ms=1_000, replica_lag_time_max_ms=1_000),
        network=NetworkOptions(latency_min_us=latency_us, latency_max_us=latency_us + slowest_us),
        consumer=ConsumerOptions(commit=commit, request_timeout_ms=patience_ms),
        operations=moves,
    )
    return "needless_reprocessing" in anomalies_of(plan, operations, events)


FIRST = (poll(50, "a", 1, 0, 1), poll(52, "a", 1, 2, 3))


@pytest.mark.parametrize("commit", ["auto", "before", "sync", "async", "none"])
def test_what_a_member_got_is_committed_before_it_goes(commit: str) -> None:
    """Rule (JUSTIFIED): in modes auto and before nothing comes again, in mode sync no more than the former
    owner's last poll; the others promise nothing."""
    promises = commit in ("auto", "before")
    assert not found(*FIRST, poll(54, "b", 2, 4, 5), commit=commit)
    assert found(*FIRST, poll(54, "b", 2, 2, 3), commit=commit) is promises
    assert found(*FIRST, poll(54, "b", 2, 1, 2, 3), commit=commit) is (promises or commit == "sync")
    assert found(*FIRST, poll(54, "a", 2, 3), commit=commit) is promises


def test_what_explains_work_that_is_done_again() -> None:
    """Rule (JUSTIFIED): a fault, a coordinator that moved, offsets that expired, a crash or a pause; to leave
    is to commit, unless a commit takes longer than a process that leaves has."""
    again = (*FIRST, poll(54, "b", 2, 3))

    def event(name: Name) -> tuple[Event, ...]:
        return (Event(time=53 * SECOND, name=name, node=1, topic="t", partition=0, detail='{"fault":1}'),)

    def move(function: str) -> tuple[PlannedOperation, ...]:
        return (PlannedOperation(op_id=1, process=9, at_ms=52_000, function=function, key="g"),)

    assert found(*again)
    for name in (Name.FAULT_BEGAN, Name.BECAME_LEADER, Name.GROUP_OFFSET_EXPIRED, Name.GROUPS_LOADED):
        assert not found(*again, events=event(name))
    for function in ("crash", "pause"):
        assert not found(*again, moves=move(function))
    assert found(*again, moves=move("unsubscribe"))
    assert not found(*again, moves=move("unsubscribe"), latency_us=50_000)
    late = PlannedOperation(op_id=1, process=9, at_ms=70_000, function="crash", key="g")
    assert found(*again, moves=(late,))


def test_what_has_no_bound_is_not_asked() -> None:
    """Rule (JUSTIFIED; seeds 710320 and 710390 of the profile everything): a commit may be held back for
    seconds, its time-out is shorter than it takes, or it is part of a transaction that is aborted."""
    again = (*FIRST, poll(54, "b", 2, 2, 3))
    assert found(*again, commit="before")
    assert not found(*again, commit="before", slowest_us=700_000)
    assert not found(*again, commit="before", patience_ms=150)
    began = Operation(
        op_id=1, process=ord("a"), function=Function.TXN, invoke_time=0, completion_time=1, outcome=Outcome.OK
    )
    assert not found(began, *again, commit="before")
    assert found(evolve(began, process=99), *again, commit="before")


def by_definition(
    operations: tuple[Operation, ...], events: tuple[Event, ...], commit: str, settled: int
) -> bool:
    """Each pair of polls, each record and each event by itself."""
    for number, later in enumerate(operations):
        for record in later.records:
            having = [one for one in operations[:number] if record in one.records]
            if not having or (having[-1].member, having[-1].generation) == (later.member, later.generation):
                continue
            earlier = having[-1]
            of_owner = [
                one
                for one in operations[:number]
                if (one.member, one.generation) == (earlier.member, earlier.generation) and one.records
            ]
            if commit == "sync" and of_owner[-1] == earlier:
                continue
            begin, end = earlier.invoke_time - settled, later.completion_time or 0
            if not any(begin <= event.time <= end for event in events):
                return True
    return False


@pytest.mark.parametrize("commit", ["auto", "sync"])
def test_the_twin_agrees(commit: str) -> None:
    """Rule (STYLE 15): a form that looks at each pair of polls says the same."""
    options = options_of(
        plan_to_json(
            Plan(
                seed=1,
                cluster=ClusterOptions(zookeeper_session_timeout_ms=1_000, replica_lag_time_max_ms=1_000),
                network=NetworkOptions(latency_min_us=1_000, latency_max_us=1_500),
            )
        )
    )
    assert options is not None
    settled, convicted = settled_ns(options), 0
    for seed in range(150):
        random = Random(seed)
        position, polls = 0, []
        for at in sorted(random.sample(range(40, 85), 8)):
            member = random.choice("ab")
            if random.random() < 0.25:
                position = max(0, position - random.randrange(1, 4))
            offsets = range(position, position + random.randrange(1, 4))
            polls.append(poll(at, member, random.choice((1, 1, 2)), *offsets))
            position = offsets[-1] + 1
        moves = tuple(
            Event(time=at * SECOND, name=Name.BECAME_LEADER, node=1, topic="t", partition=0)
            for at in random.sample(range(15, 80), random.randrange(2))
        )
        expected = by_definition(tuple(polls), (*PHASES, *moves), commit, settled)
        assert found(*polls, commit=commit, events=moves) == expected, seed
        convicted += expected
    assert 10 < convicted < 140
