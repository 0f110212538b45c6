"""Small histories of one log: builders for hand-written ones, and a generator of random ones, legal and
nearly legal."""

from random import Random
from typing import Any

from attrs import evolve

from fencepost.checkers import log
from fencepost.checkers.verdict import Verdict
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers import lab

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN


def judge_trace(made: Trace, **more: Any) -> Verdict:
    """What the rules say; whether tiny histories are strong enough to mean anything is asked in
    test_log_strength."""
    return log.judge_trace(made, weak_is_ok=True, **more)


def judge_traces(made: list[Trace], **more: Any) -> list[tuple[int, Verdict]]:
    """The same of many in one call."""
    return log.judge_traces(made, weak_is_ok=True, **more)


def append(
    op_id: int, values: list[int], invoke: int, complete: int | None, offset: int | None = None, **more: Any
) -> Operation:
    """An append to t-0; ok with acks=all if it is told an offset, else unknown."""
    said = {"outcome": OK if offset is not None else UNKNOWN, "acks": -1, "offset": offset, **lab.T0} | more
    sent = lab.records(*values, begin=-1)
    return lab.operation(op_id, Function.APPEND, invoke, complete, records=sent, **said)


def read(
    op_id: int,
    position: int | None,
    records: list[tuple[int, ...]],
    invoke: int,
    complete: int,
    end: int | None = None,
    **more: Any,
) -> Operation:
    """A poll of t-0; records are (offset, value) or (offset, value, leader epoch). Strong if it claims an
    end, unless told otherwise."""
    said = {"function": Function.POLL, "strong": end is not None, **lab.T0} | more
    place = {"topic": said["topic"], "partition": said["partition"]}
    shown = tuple(
        Record(offset=offset, value=value, leader_epoch=epoch[0] if epoch else -1, **place)
        for offset, value, *epoch in records
    )
    made = {"op_id": op_id, "begin": invoke, "end": complete, "offset": position, "end_offset": end}
    return lab.operation(records=shown, **made, **said)


def trace(
    *operations: Operation, trace_id: int = 1, unique: bool = True, concurrent: bool = False, **claims: Any
) -> Trace:
    """A trace of these operations with these claims."""
    return lab.trace(
        operations,
        trace_id=trace_id,
        unique_values=unique,
        concurrent_processes=concurrent,
        claims=Claims(**claims),
    )


def loss(start: int, end: int) -> tuple[LossRange, ...]:
    """Loss is allowed for offsets [start, end) of t-0."""
    return (LossRange(topic="t", partition=0, start=start, end=end, reason="test"),)


def random_trace(
    rng: Random,
    *,
    mutations: int | None = None,
    clocks: int = 1,
    profiles: tuple[str, ...] = ("default",),
    plain: bool = False,
) -> Trace:
    """A small history: a log that really grew, seen by a few reads, then bent in up to three places.

    plain: no batches, no leader epochs, no duplicates.
    """
    dense, epochs, duplicates = rng.random() < 0.5, rng.random() < 0.3, rng.random() < 0.15
    if plain:
        epochs = duplicates = False
    operations, log = _grow(rng, dense, epochs, duplicates, (1,) if plain else (1, 1, 1, 2, 3))
    operations += _look(rng, log, epochs, len(operations))
    for _ in range(rng.choice((0, 1, 2, 3)) if mutations is None else mutations):
        if operations:
            i = rng.randrange(len(operations))
            operations[i] = bend(rng, operations[i], epochs)
    rng.shuffle(operations)
    operations = [
        evolve(op, op_id=10 + i, process=i, clock_id=rng.randrange(clocks)) for i, op in enumerate(operations)
    ]
    return trace(*operations, dense=dense, duplicates=duplicates, check=rng.choice(profiles))


Slot = tuple[int, int, int, int]
"""Offset, value, the moment it entered the log, leader epoch."""


def _grow(
    rng: Random, dense: bool, epochs: bool, duplicates: bool, sizes: tuple[int, ...]
) -> tuple[list[Operation], list[Slot]]:
    operations: list[Operation] = []
    log: list[Slot] = []
    end = moment = epoch = 0
    for n in range(rng.randint(1, 4)):
        moment += rng.choice((0, 0, 1, 1, 2, 3))
        epoch += rng.choice((0, 0, 1))
        values = [100 * (n + 1) + i for i in range(rng.choice(sizes))]
        if not dense:
            end += rng.choice((0, 0, 1, 2))
        outcome, acks = rng.choice(
            ((OK, -1), (OK, -1), (OK, -1), (UNKNOWN, -1), (UNKNOWN, -1), (OK, 1), (OK, 0), (FAIL, -1))
        )
        lands = outcome is OK or (outcome is UNKNOWN and rng.random() < 0.6)
        invoke = max(0, moment - rng.choice((0, 0, 1, 2)))
        complete = None if outcome is UNKNOWN and rng.random() < 0.7 else moment + rng.choice((0, 0, 1, 2))
        told = acks != 0 and (outcome is OK or (lands and rng.random() < 0.3))
        stated = epoch if epochs and told and rng.random() < 0.7 else None
        operations.append(
            append(
                n,
                values,
                invoke,
                complete,
                end if told else None,
                outcome=outcome,
                acks=acks,
                leader_epoch=stated,
            )
        )
        for _ in range(2 if duplicates and rng.random() < 0.3 else 1):
            if lands:
                log += [(end + i, value, moment, epoch) for i, value in enumerate(values)]
                end += len(values)
    return operations, log


def _look(rng: Random, log: list[Slot], epochs: bool, first_id: int) -> list[Operation]:
    reads = []
    for n in range(rng.randint(1, 3)):
        moment = rng.randint(1, 7)
        visible = [slot for slot in log if slot[2] <= moment]
        end = visible[-1][0] + 1 if visible else 0
        position = rng.randint(0, end)
        seen = [slot for slot in visible if slot[0] >= position]
        seen = seen[: rng.randint(0, len(seen))] if rng.random() < 0.4 else seen
        if seen and rng.random() < 0.9:
            position = seen[0][0]
        listing = rng.random() < 0.15
        reads.append(
            read(
                first_id + n,
                None if listing or rng.random() < 0.1 else position,
                []
                if listing
                else [(o, v, e if epochs and rng.random() < 0.8 else -1) for o, v, _, e in seen],
                max(0, moment - rng.choice((0, 0, 1, 2))),
                moment + rng.choice((0, 0, 1, 2)),
                end if rng.random() < 0.8 else None,
                strong=rng.random() < 0.6,
                function=Function.LIST_OFFSETS if listing else Function.POLL,
            )
        )
    return reads


def bend(rng: Random, op: Operation, epochs: bool) -> Operation:
    """The operation with one statement changed a little, still consistent in itself."""
    step = rng.choice((-3, -2, -1, 1, 2, 3))
    what = rng.choice(("time", "time", "offset", "end", "records", "records", "outcome", "epoch"))
    if what == "time":
        invoke = max(0, op.invoke_time + step)
        length = rng.randint(0, 2)
        return evolve(
            op, invoke_time=invoke, completion_time=None if op.completion_time is None else invoke + length
        )
    if what == "offset" and op.offset is not None:
        return evolve(op, offset=max(0, op.offset + step))
    if what == "end" and op.end_offset is not None:
        return evolve(op, end_offset=max(0, op.end_offset + step))
    if what == "outcome" and op.function is Function.APPEND and op.outcome is not OK:
        return evolve(
            op,
            outcome=rng.choice((FAIL, UNKNOWN)),
            offset=None,
            completion_time=op.invoke_time + rng.randint(0, 2),
        )
    if what == "epoch" and epochs and op.records and op.function is Function.POLL:
        return evolve(op, records=(evolve(op.records[0], leader_epoch=rng.randint(0, 3)), *op.records[1:]))
    if what == "records" and op.records and op.function is Function.POLL:
        records = list(op.records)
        i = rng.randrange(len(records))
        change = rng.choice(("drop", "move", "value", "swap"))
        if change == "drop":
            del records[i]
        elif change == "move":
            records[i] = evolve(records[i], offset=max(0, records[i].offset + step))
        elif change == "value":
            records[i] = evolve(records[i], value=rng.choice((100, 101, 200, 201, 300, 400, 999)))
        else:
            j = rng.randrange(len(records))
            records[i], records[j] = records[j], records[i]
        return evolve(op, records=tuple(records))
    return op


def with_claims(rng: Random, made: Trace) -> Trace:
    """The same history where some loss is allowed, or clocks err."""
    claims = evolve(made.claims, clock_uncertainty_ns=rng.choice((0, 0, 0, 1, 2)))
    start = rng.randint(0, 6)
    choice = rng.random()
    if choice < 0.2:
        claims = evolve(claims, loss=loss(start, start + rng.randint(1, 4)))
    elif choice < 0.3:
        claims = evolve(claims, loss=loss(start, start + 1) + loss(0, 2) + loss(start + 5, start + 6))
    elif choice < 0.4:
        claims = evolve(claims, content_by_epoch=True)
    return evolve(made, claims=claims)
