"""The time half of the slow reference: moments at which the log grew, its start moved on, and its last stable
offset did.

Tries every assignment of stamps; the three only rise, and start and stable offset never pass what the log has
not reached.
"""

from collections.abc import Callable, Iterator

from log_claims import COMMITTED, ReadClaims, ended_of, transaction_of

from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace

Log = list[tuple[int, Operation]]
Reads = list[tuple[Operation, ReadClaims]]
Step = tuple[int, float, float]
"""An offset, and the earliest and latest moment at which it may be passed."""

FIRST, LAST = float("-inf"), float("inf")


def moments_exist(
    log: Log, reads: Reads, trace: Trace, needed: list[tuple[int, int]], fate: dict[int, str | None]
) -> bool:
    """Are there such moments? needed: offsets that must stand by a moment; fate: of each append, by op id.

    An offset that was claimed as an end and holds no known record is passed at some moment too.
    """
    if trace.claims.check == "content":
        return True
    stamps = sorted(
        {t for op in trace.operations for t in (op.invoke_time, op.completion_time) if t is not None}
    )
    held = {base + i for base, op in log for i in range(len(op.records))}
    ends = [(read, claims.end) for read, claims in reads if claims.end is not None]
    steps = [(base, float(op.invoke_time), _latest(base, op, reads, needed)) for base, op in log]
    steps = sorted(steps + [(end, FIRST, LAST) for end in {end for _, end in ends} - held])
    sides = (_Side(*_log_starts(reads, trace), stamps), _Side(*_stables(log, reads, trace, fate), stamps))
    reached = _reached(reads)
    if not all(side.exists(lambda offset: FIRST) for side in sides):
        return False
    bases = [base for base, _, _ in steps]
    for moments in _rising(steps, stamps):
        passed = dict(zip(bases, moments, strict=True))

        def at(offset: int, passed: dict[int, int] = passed) -> float:
            """When the log grew beyond the highest known offset up to this one."""
            return max((t for base, t in passed.items() if base <= offset), default=FIRST)

        if (
            all(_placed(read, end, bases, moments, stamps) for read, end in ends)
            and all(at(offset) <= moment for offset, moment in reached)
            and all(side.exists(at) for side in sides)
        ):
            return True
    return False


def _reached(reads: Reads) -> list[tuple[int, int]]:
    """(offset, moment): by then the log had grown beyond it, because its start or last stable offset had."""
    return [
        (claim - 1, read.completion_time)
        for read, claims in reads
        for claim in (claims.log_start, claims.stable)
        if claim and read.completion_time is not None
    ]


def _rising(steps: list[Step], stamps: list[int]) -> Iterator[list[int]]:
    """Every assignment of stamps to steps that does not fall and keeps their bounds."""

    def grow(n: int, moments: list[int]) -> Iterator[list[int]]:
        if n == len(steps):
            yield moments
            return
        _, earliest, latest = steps[n]
        for t in stamps:
            if earliest <= t <= latest and (not moments or t >= moments[-1]):
                yield from grow(n + 1, [*moments, t])

    return grow(0, [])


def _latest(base: int, op: Operation, reads: Reads, needed: list[tuple[int, int]]) -> float:
    """When the batch must stand in the log: it was acknowledged, or a read had seen a record of it, or of
    what replaced it."""
    mine = range(base, base + len(op.records))
    bounds = [LAST, *(moment for offset, moment in needed if offset in mine)]
    if op.outcome is Outcome.OK and op.acks == -1 and op.offset == base and op.completion_time is not None:
        bounds.append(op.completion_time)
    for read, _ in reads:
        if any(record.offset in mine for record in read.records):
            assert read.completion_time is not None
            bounds.append(read.completion_time)
    return min(bounds)


def _placed(read: Operation, claim: int, offsets: list[int], moments: list[int], stamps: list[int]) -> bool:
    """Was there a moment during the read at which everything below the claim was passed, and nothing else?"""
    assert read.completion_time is not None
    return any(
        all((t <= now) if offset < claim else (t >= now) for offset, t in zip(offsets, moments, strict=True))
        for now in stamps
        if read.invoke_time <= now <= read.completion_time
    )


class _Side:
    """Log start or last stable offset: its steps, the claims about it, and the answers so far by the moments
    of the log."""

    def __init__(self, steps: list[Step], claims: list[tuple[Operation, int]], stamps: list[int]) -> None:
        self.steps, self.claims, self.stamps = steps, claims, stamps
        self.known: dict[tuple[float, ...], bool] = {}

    def exists(self, log_at: Callable[[int], float]) -> bool:
        """Can it have moved so, if the log grew at these moments?"""
        floors = tuple(log_at(offset) for offset, _, _ in self.steps)
        if floors not in self.known:
            steps = [
                (o, max(low, floor), high) for (o, low, high), floor in zip(self.steps, floors, strict=True)
            ]
            offsets = [offset for offset, _, _ in steps]
            self.known[floors] = any(
                all(_placed(read, claim, offsets, moments, self.stamps) for read, claim in self.claims)
                for moments in _rising(steps, self.stamps)
            )
        return self.known[floors]


def _merged(bounds: list[Step]) -> list[Step]:
    """One step per offset, in order."""
    return [
        (
            offset,
            max(low for o, low, _ in bounds if o == offset),
            min(high for o, _, high in bounds if o == offset),
        )
        for offset in sorted({offset for offset, _, _ in bounds})
    ]


def _log_starts(reads: Reads, trace: Trace) -> tuple[list[Step], list[tuple[Operation, int]]]:
    claims = [(read, claim.log_start) for read, claim in reads if claim.log_start is not None]
    bounds = [(offset, FIRST, LAST) for _, start in claims for offset in (start - 1, start) if offset >= 0]
    if trace.claims.check == "strong":  # what a read returns has not left the log before
        bounds += [(r.offset, float(read.invoke_time), LAST) for read, _ in reads for r in read.records]
    return _merged(bounds), claims


def _stables(
    log: Log, reads: Reads, trace: Trace, fate: dict[int, str | None]
) -> tuple[list[Step], list[tuple[Operation, int]]]:
    claims = [(read, claim.stable) for read, claim in reads if claim.stable is not None]
    bounds = [(offset, FIRST, LAST) for _, stable in claims for offset in (stable - 1, stable) if offset >= 0]
    for read, claim in reads:
        if claim.committed and read.completion_time is not None:
            bounds += [(r.offset, FIRST, float(read.completion_time)) for r in read.records]
    for base, op in log:
        transaction = transaction_of(op, trace)
        if transaction is not None and fate[op.op_id] == COMMITTED:
            bounds.append((base, float(ended_of(transaction, trace)), LAST))
    return _merged(bounds), claims
