"""The transactions check against its definitions read literally, on random small histories."""

from random import Random

import pytest
from attrs import evolve
from transactions_naive import Naive

from fencepost.checkers.compiled import COMPILED, PLAIN, engine
from fencepost.checkers.transactions import cycles_of_trace, judge_table, judge_traces
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Claims, Trace
from tests.checkers import lab
from tests.selfcheck.amounts import amount

STACKED = 50
"""Traces in one call of the check."""


def history(seed: int) -> Trace:
    """Random transactions, appends and polls on one or two logs. Offsets are those of one log each; who read
    what is random, and so are the times, so that about every second history has a cycle of some kind."""
    rng = Random(seed)
    partitions, clients = rng.randint(1, 2), rng.randint(2, 4)
    made: list[Operation] = []
    ends = [0] * partitions
    clock, value, op_id = [0] * clients, 0, 0
    for _ in range(rng.randint(2, 7)):
        process = rng.randrange(clients)
        start = clock[process] + rng.randint(0, 3)
        whole = rng.random() < 0.75
        parts = rng.randint(1, 3) if whole else 1
        outcome = (
            rng.choices((Outcome.OK, Outcome.UNKNOWN, Outcome.FAIL), (8, 1, 1))[0] if whole else Outcome.OK
        )
        head, op_id = op_id, op_id + 1
        inside: list[Operation] = []
        at = start + 1
        for _ in range(parts):
            partition = rng.randrange(partitions)
            common = {
                "op_id": op_id, "process": process, "topic": "t", "partition": partition,
                "invoke_time": at, "completion_time": at + rng.randint(0, 1), "outcome": Outcome.OK,
            }  # fmt: skip
            op_id, at = op_id + 1, common["completion_time"] + rng.randint(0, 1)
            if rng.random() < 0.5:
                ends[partition] += rng.random() < 0.2
                record = Record(topic="t", partition=partition, offset=-1, value=value)
                told = ends[partition] if rng.random() < 0.8 else None
                inside.append(
                    Operation(function=Function.APPEND, acks=-1, offset=told, records=(record,), **common)
                )
                ends[partition], value = ends[partition] + 1, value + 1
            else:
                inside.append(
                    Operation(
                        function=Function.POLL,
                        offset=rng.randint(0, 3) if rng.random() < 0.5 else None,
                        isolation=rng.choice(("read_committed", "read_committed", "read_uncommitted", None)),
                        **common,
                    )
                )
        if whole:
            made.append(
                lab.operation(
                    *(head, Function.TXN, start, None if outcome is Outcome.UNKNOWN else at + 1),
                    process=process,
                    outcome=outcome,
                )
            )
        made += inside
        clock[process] = at + 2
    return lab.trace((_read(rng, op, made) for op in made), trace_id=seed, claims=Claims())


def _read(rng: Random, op: Operation, made: list[Operation]) -> Operation:
    """A poll with some of the records of its log, in order of offsets; what nobody was told stands high
    up."""
    if op.function is not Function.POLL:
        return op
    sent = [
        evolve(own, offset=other.offset if other.offset is not None else 50 + own.value)
        for other in made
        for own in other.records
        if other.function is Function.APPEND and own.partition == op.partition
    ]
    kept = sorted((own for own in sent if rng.random() < 0.4), key=lambda own: own.offset)
    return evolve(op, records=tuple(kept))


def sweep(seed: int, count: int) -> tuple[list[int], int, dict[str, int]]:
    """Histories from `seed` on: those on which the check and the definitions differ, how many are illegal,
    and how often each name was found."""
    mismatches, illegal = [], 0
    found: dict[str, int] = {}
    for start in range(seed, seed + count, STACKED):
        traces = [history(number) for number in range(start, min(start + STACKED, seed + count))]
        verdicts = dict(judge_traces(traces))
        for trace in traces:
            naive = Naive(trace)
            transactional = any(op.function is Function.TXN for op in trace.operations)
            wanted = {naive.circular()} - {None} if transactional else set()
            verdict = verdicts.get(trace.trace_id)
            said = {finding.anomaly for finding in verdict.findings} if verdict else set()
            cycles = naive.cycles() if transactional else {}
            illegal += bool(wanted)
            for name in (*wanted, *cycles):
                found[name] = found.get(name, 0) + 1
            if said != wanted or cycles_of_trace(trace).found != cycles:
                mismatches.append(trace.trace_id)
    return mismatches, illegal, found


NAMES = {
    *("circular_reads", "circular_reads_in_process", "circular_reads_in_real_time"),
    *(
        f"{name}{suffix}"
        for name in ("G0", "G1c", "G-single", "G2-item")
        for suffix in ("", "-process", "-realtime")
    ),
}


@pytest.mark.parametrize("seed", range(0, amount(400, 1_000), 200))
def test_the_check_is_its_definitions(seed: int) -> None:
    """On random histories the check finds exactly the cycles that the definitions name."""
    mismatches, illegal, _ = sweep(seed, 200)
    assert mismatches == []
    assert 20 < illegal < 180


def test_every_kind_of_cycle_occurs() -> None:
    """The comparison means something: every name but the rarest, which has a test of its own, is in it."""
    _, illegal, found = sweep(1_000, 400)
    assert illegal > 40
    assert set(found) | {"G2-item", "G2-item-process", "G2-item-realtime"} == NAMES


@pytest.mark.parametrize("choice", [PLAIN, COMPILED])
def test_both_engines_agree(choice: str) -> None:
    """Machine code and plain Python are one algorithm."""
    with engine(choice):
        assert sweep(5_000, 100)[0] == []


def test_tables_are_judged_as_traces_are() -> None:
    """Mining's form: stacked rows, among them traces without transactions, give the verdicts of each trace
    alone."""
    traces = [history(seed) for seed in range(60)]
    plain = [evolve(trace, trace_id=1_000 + n, operations=_plain(trace)) for n, trace in enumerate(traces)]
    both = [trace for pair in zip(traces, plain, strict=True) for trace in pair]
    table = tables_of([row for trace in both for row in [rows_of(trace)]]).operations
    headers = [evolve(trace, operations=()) for trace in both]
    assert judge_table(table, headers) == judge_traces(both) != []


def _plain(trace: Trace) -> tuple[Operation, ...]:
    return tuple(op for op in trace.operations if op.function is not Function.TXN)
