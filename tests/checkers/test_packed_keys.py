"""A number that no log can have, a partition below 0 or an id near 2^63, concerns the operation that has it.
No verdict of a neighbour changes, and no check ends with an error."""

from random import Random
from typing import Any

import attrs
import pytest
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import CHECKS, DEFAULT_CHECKS, checks_by_name, judge
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.mining.inputs.contradictions import contradictions
from fencepost.mining.spark_judge import judge_tables
from fencepost.run.simulated.run import run
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Event
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace
from tests.checkers import lab
from tests.checkers.wild_histories import wild
from tests.selfcheck.amounts import amount

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1
ODD = (-1, -2, -7, 1 << 31, (1 << 31) - 1, 1 << 32, 10**18, 1 << 62, LARGEST, SMALLEST)
"""Of partitions, offsets, epochs, ids and times."""
NUMBERS = (
    *("op_id", "process", "session", "clock_id", "invoke_time", "completion_time", "partition", "acks"),
    *("offset", "end_offset", "last_stable_offset", "log_start_offset", "leader_epoch", "producer_id"),
    *("producer_epoch", "sequence", "generation", "node", "attempts"),
)
EVENT_NUMBERS = tuple(
    column.name for column in attrs.fields(attrs.resolve_types(Event)) if column.type is int
)
OF_RECORDS = ("partition", "offset", "value", "leader_epoch")
OF_POSITIONS = ("partition", "offset", "end_offset", "last_stable_offset", "log_start_offset", "leader_epoch")


def healthy(trace_id: int, topic: str = "t") -> Trace:
    """One log, three appends, a read of all of them."""
    records = [Record(topic=topic, partition=0, offset=at, value=70 + at) for at in range(3)]
    appends = [
        lab.operation(
            *(at, Function.APPEND, 10 * at, 10 * at + 5),
            process=1,
            topic=topic,
            partition=0,
            acks=-1,
            offset=at,
            records=(record,),
        )
        for at, record in enumerate(records)
    ]
    read = lab.operation(
        *(3, Function.POLL, 100, 110),
        process=2,
        topic=topic,
        partition=0,
        offset=0,
        end_offset=3,
        strong=True,
        records=tuple(records),
    )
    return lab.trace((*appends, read), trace_id=trace_id, plan="p", seed=0)


def odd(random: Random, trace: Trace) -> Trace:
    """The trace with odd numbers in a few operations, records and positions."""
    operations = list(trace.operations)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(operations))
        one = operations[at]
        where = random.choice(("operation", "records", "positions"))
        if where == "operation" or not getattr(one, where):
            operations[at] = evolve(one, **{random.choice(NUMBERS): random.choice(ODD)})
            continue
        nested = list(getattr(one, where))
        which = random.randrange(len(nested))
        name = random.choice(OF_RECORDS if where == "records" else OF_POSITIONS)
        nested[which] = evolve(nested[which], **{name: random.choice(ODD)})
        operations[at] = evolve(one, **{where: tuple(nested)})
    return evolve(trace, operations=tuple(operations))


def together(traces: list[Trace]) -> dict[int, tuple[Verdict, ...]]:
    """The verdicts of `mine` on traces of one row group."""
    strange = contradictions(tables_of(map(rows_of, traces)).operations)
    tables = tables_of(rows_of(trace) for trace in traces if trace.trace_id not in strange)
    judged = judge_tables(tables, checks_by_name(DEFAULT_CHECKS), None, where="here")
    return {one.trace.trace_id: one.verdicts for one in judged}


@pytest.mark.parametrize("seed", range(amount(20, 60)))
def test_an_odd_number_in_one_trace_changes_no_verdict_of_its_neighbours(seed: int) -> None:
    random = Random(seed)
    strange = [odd(random, evolve(wild(seed), trace_id=2 * n)) for n in range(1, 4)]
    neighbours = [healthy(1), evolve(wild(seed + 1000), trace_id=3), healthy(5), healthy(7)]
    alone = {trace.trace_id: judge(trace) for trace in neighbours}

    found = together(sorted([*strange, *neighbours], key=lambda trace: trace.trace_id))

    assert {trace.trace_id: found[trace.trace_id] for trace in neighbours} == alone
    assert all(v.decision is Decision.OK for n in (1, 5, 7) for v in found[n])


@pytest.mark.parametrize("seed", range(amount(40, 120)))
def test_one_log_with_an_odd_number_is_judged_alike_in_both_forms_and_without_an_error(seed: int) -> None:
    random = Random(seed)
    trace = odd(random, wild(seed))

    one = judge(trace)

    assert [verdict.check for verdict in one] == list(CHECKS)
    assert together([trace]).get(trace.trace_id, one) == one


def failed(**more: Any) -> Operation:
    """A failed send as librdkafka reports it: no partition was chosen."""
    base: dict[str, Any] = {
        "op_id": 9,
        "process": 9,
        "function": Function.APPEND,
        "invoke_time": 200,
        "completion_time": 210,
        "outcome": Outcome.FAIL,
        "topic": "t",
        "partition": -1,
        "acks": -1,
        "records": lab.records(99, begin=-1, partition=-1),
    }
    return Operation(**base | more)


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.UNKNOWN])
def test_a_send_without_a_partition_convicts_no_other_topic_and_no_other_trace(outcome: Outcome) -> None:
    lost = failed(outcome=outcome, completion_time=None if outcome is Outcome.UNKNOWN else 210)
    first, second = healthy(1, "s"), healthy(2)
    second = evolve(second, operations=(*second.operations, lost))

    found = together([first, second])

    assert {verdict.decision for verdicts in found.values() for verdict in verdicts} == {Decision.OK}
    assert {verdict.decision for verdict in judge(second)} == {Decision.OK}


@pytest.mark.parametrize("partition", [-1, -2, 1 << 31, 1 << 40])
def test_an_acknowledged_append_to_no_partition_is_a_contradiction(partition: int) -> None:
    told = failed(
        outcome=Outcome.OK,
        partition=partition,
        offset=4,
        records=lab.records(99, begin=4, partition=partition),
    )
    trace = evolve(healthy(1), operations=(*healthy(1).operations, told))

    (verdict,) = judge(trace, ("log",))

    assert verdict.decision is Decision.ASSUMPTION_BROKEN
    assert "partition" in verdict.reason


@pytest.mark.parametrize("name", ["partition", "op_id", "invoke_time"])
def test_a_number_beyond_64_bits_is_refused_in_a_sentence(name: str) -> None:
    trace = healthy(1)
    trace = evolve(trace, operations=(evolve(trace.operations[0], **{name: 1 << 70}),))

    (verdict,) = judge(trace, ("log",))

    assert verdict.decision is Decision.ASSUMPTION_BROKEN
    assert verdict.reason == f"column {name}: expected 64-bit integers, saw {1 << 70}"


@pytest.fixture(scope="module")
def simulated() -> Trace:
    """A short run with an election and transactions, with its events."""
    return run(evolve(swarm(3, "default+transactions"), safety_ms=5_000, liveness_ms=20_000))


@pytest.mark.parametrize("seed", range(amount(14, 40)))
def test_odd_numbers_in_events_end_no_check_and_change_no_neighbour(seed: int, simulated: Trace) -> None:
    random = Random(seed)
    events = list(simulated.events)
    for _ in range(3):
        at = random.randrange(len(events))
        name = random.choice(EVENT_NUMBERS)
        events[at] = evolve(events[at], **{name: random.choice(ODD)})
    bent = evolve(simulated, trace_id=2, events=tuple(events))

    found = together([healthy(1), bent, healthy(3)])

    assert found[2] == judge(bent)
    assert {v.decision for n in (1, 3) for v in found[n]} == {Decision.OK}
