"""Histories of some hundred operations of one log that really grew, bent in a few places: most slots of them
are in order."""

from random import Random

from attrs import evolve
from log_histories import FAIL, OK, UNKNOWN, append, bend, read, trace

from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

PROFILES = ("default", "strong", "strong", "session", "content")


def long_trace(rng: Random, *, appends: int = 60, reads: int = 60) -> Trace:
    """Dense or sparse, with batches, leader epochs, several clocks, or without."""
    dense, epochs, clocks = rng.random() < 0.6, rng.random() < 0.5, rng.choice((1, 1, 3))
    log: list[
        tuple[int, int, int, int]
    ] = []  # offset, value, the moment from which it stands there, leader epoch
    operations, end, moment, epoch = [], 0, 0, 0
    for n in range(appends):
        moment += rng.choice((0, 1, 2, 3))
        epoch += rng.random() < 0.05
        end += 0 if dense else rng.choice((0, 0, 0, 1))
        values = [10 * n + i for i in range(rng.choice((1, 1, 1, 2, 3)))]
        outcome = rng.choice((OK, OK, OK, OK, OK, UNKNOWN, FAIL))
        operations.append(
            append(
                n,
                values,
                max(0, moment - rng.choice((0, 1, 3))),
                None if outcome is UNKNOWN else moment + rng.choice((0, 1, 3)),
                end if outcome is OK else None,
                outcome=outcome,
                acks=rng.choice((-1, -1, -1, 1)),
                leader_epoch=epoch if epochs and outcome is OK and rng.random() < 0.7 else None,
                process=rng.randrange(5),
            )
        )
        if outcome is OK or (outcome is UNKNOWN and rng.random() < 0.6):
            log += [(end + i, value, moment, epoch) for i, value in enumerate(values)]
            end += len(values)
    for n in range(reads):
        at = rng.randint(0, moment + 3)
        visible = [slot for slot in log if slot[2] <= at]
        last = visible[-1][0] + 1 if visible else 0
        start = rng.randint(max(0, len(visible) - 8), len(visible))
        seen = visible[start : start + rng.randint(0, 5)]
        records = [(offset, value, e if epochs else -1) for offset, value, _, e in seen]
        operations.append(
            read(
                appends + n,
                seen[0][0] if seen else last,
                records,
                max(0, at - rng.choice((0, 1, 2))),
                at + rng.choice((0, 1, 2)),
                last,
                strong=rng.random() < 0.7,
                process=rng.randrange(5),
                leader_epoch=seen[-1][3] if seen and epochs else None,
            )
        )
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        i = rng.randrange(len(operations))
        operations[i] = _bent(rng, operations[i], operations, epochs)
    operations.sort(key=lambda op: op.invoke_time + rng.choice((0, 0, 5)))
    told = [evolve(op, op_id=7 + i, clock_id=op.process % clocks) for i, op in enumerate(operations)]
    claims = {"clock_uncertainty_ns": rng.choice((0, 0, 1, 4))} if clocks > 1 else {}
    return trace(
        *told, dense=dense, concurrent=True, check=rng.choice(PROFILES), acks_1_may_lose=True, **claims
    )


def _bent(rng: Random, op: Operation, others: list[Operation], epochs: bool) -> Operation:
    """A little as random histories are, or far: much later, or with a record of somewhere else."""
    what = rng.choice(("little", "little", "late", "value", "lost"))
    if what == "late":
        by = rng.randint(5, 60)
        done = None if op.completion_time is None else op.completion_time + by
        return evolve(op, invoke_time=op.invoke_time + by, completion_time=done)
    sent = [record.value for other in others for record in other.records]
    if what == "value" and op.records:
        i = rng.randrange(len(op.records))
        records = list(op.records)
        records[i] = evolve(
            records[i], value=rng.choice((*sent, -5)) if op.function == "poll" else -7 - op.op_id
        )
        return evolve(op, records=tuple(records))
    if what == "lost" and op.function == "append":
        return evolve(op, outcome=FAIL, completion_time=op.invoke_time + 1, offset=None)
    return bend(rng, op, epochs)
