"""HW-READ: a read returns nothing at or above the high watermark that the same answer claims; under
read_committed nothing at or above its last stable offset.

Owns read_outside_bounds of reads with an end that is not trusted otherwise (the log check judges the others).
In the simulation both come from one step of the broker, so that the answer convicts itself. A real broker
reads its bounds first and takes the records up to a bound that it reads again; in between the bound may have
risen. There it is a finding only if the same broker, in the same leader epoch, shows in a later answer a
bound that is still not above the record. A broker or epoch that is not known convicts nobody.
"""

from collections.abc import Iterable, Iterator

from attrs import frozen

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.hw_mono import LISTED, READ_COMMITTED, HighWatermarkMono
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

SIMULATED = "simulated"
"""The target of traces in which an answer is one step of its broker."""
HIGH_WATERMARK, LAST_STABLE = "high watermark", "last stable offset"


@frozen(kw_only=True)
class Bound:
    """A bound that an answer claims, and the highest offset that it returned (-1: no record)."""

    key: Key
    which: str
    offset: int
    highest: int
    leader_epoch: int
    by: Operation

    @property
    def is_broken(self) -> bool:
        """Whether a record of the answer is at or above the bound."""
        return self.highest >= self.offset


def judge(trace: Trace, mono: HighWatermarkMono, findings: Findings) -> None:
    """Check the polls of a trace.

    Args:
        trace: the trace.
        mono: knows when a leader took over again in its epoch: its bounds may be lower then.
        findings: the findings so far.
    """
    reads = (one for one in trace.operations if one.records and one.function is Function.POLL)
    doubtful = bounds_of(filter(_may_be_beyond, reads))
    broken = [bound for bound in doubtful if bound.is_broken]
    if not broken:  # nearly always
        return
    simulated = trace.target == SIMULATED and bool(trace.plan)
    margin = 2 * trace.claims.clock_uncertainty_ns
    bounds = [] if simulated else list(bounds_of(trace.operations))
    for bound in broken:
        later = None if simulated else _later(bound, bounds, margin, mono)
        if not simulated and later is None:
            continue
        told = "" if later is None else f"; operation {later.by.op_id}, later, still showed {later.offset}"
        findings.add(
            "read_outside_bounds",
            expected=f"records below the {bound.which} {bound.offset} of the answer",
            seen=f"operation {bound.by.op_id} returned offset {bound.highest}{told}",
            topic=bound.key[0],
            partition=bound.key[1],
            offset=bound.highest,
            operations=(bound.by.op_id, *(() if later is None else (later.by.op_id,))),
        )


def _may_be_beyond(operation: Operation) -> bool:
    """Whether some record is at or above some bound of the answer, of whichever partition."""
    claims = operation.positions or (operation,)
    ends = [each.end_offset for each in claims if each.end_offset is not None]
    if operation.isolation == READ_COMMITTED:
        ends += [each.last_stable_offset for each in claims if each.last_stable_offset is not None]
    return bool(ends) and max(record.offset for record in operation.records) >= min(ends)


def _later(bound: Bound, bounds: Iterable[Bound], margin: int, mono: HighWatermarkMono) -> Bound | None:
    """A later answer that shows that the bound was true."""
    done = bound.by.completion_time
    if done is None or bound.leader_epoch < 0 or bound.by.node < 0 or mono.took_over_again(*_term(bound)):
        return None
    same = (
        other
        for other in bounds
        if (other.key, other.which, other.leader_epoch, other.by.node)
        == (bound.key, bound.which, bound.leader_epoch, bound.by.node)
    )
    return next(
        (other for other in same if other.by.invoke_time > done + margin and other.offset <= bound.highest),
        None,
    )


def _term(bound: Bound) -> tuple[Key, int]:
    return bound.key, bound.leader_epoch


def bounds_of(operations: Iterable[Operation]) -> Iterator[Bound]:
    """Every bound that an answer to a poll or ListOffsets claims."""
    for operation in operations:
        if operation.outcome is not Outcome.OK or operation.function not in (Function.POLL, LISTED):
            continue
        committed = operation.isolation == READ_COMMITTED
        for key, end, stable, epoch in _claims(operation, committed=committed):
            offsets = (
                record.offset for record in operation.records if (record.topic, record.partition) == key
            )
            highest = max(offsets, default=-1) if operation.function is Function.POLL else -1
            for which, offset, top in (
                (HIGH_WATERMARK, end, highest),
                (LAST_STABLE, stable, highest if committed else -1),
            ):
                if offset is not None and offset >= 0:
                    yield Bound(
                        key=key,
                        which=which,
                        offset=offset,
                        highest=top,
                        leader_epoch=-1 if epoch is None else epoch,
                        by=operation,
                    )


def _claims(
    operation: Operation, *, committed: bool
) -> Iterator[tuple[Key, int | None, int | None, int | None]]:
    """Key, high watermark, last stable offset and leader epoch of each partition."""
    for each in operation.positions:
        yield (each.topic, each.partition), each.end_offset, each.last_stable_offset, each.leader_epoch
    if operation.positions or operation.partition is None:
        return
    end, stable = operation.end_offset, operation.last_stable_offset
    if operation.function is LISTED and operation.argument is None:
        end = operation.offset if end is None and not committed else end
        stable = operation.offset if stable is None and committed else stable
    yield (operation.topic, operation.partition), end, stable, operation.leader_epoch
