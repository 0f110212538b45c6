"""A slow reference: is there any log, and are there any moments at which it grew, that explain a small history?

Tries every placement of every append and every assignment of moments; shares no code and no argument with the judge. One partition, one clock,
no loss. `legal` is the definition of what the judge must decide.
"""

from collections.abc import Iterator
from itertools import combinations, pairwise

from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

Log = list[tuple[int, Operation]]
"""Batches that stand in the log: base offset and append, in order."""


def legal(trace: Trace) -> bool:
    """Does some log explain the whole trace?"""
    appends = [op for op in trace.operations if op.function is Function.APPEND]
    reads = [op for op in trace.operations if op.function is not Function.APPEND and op.outcome is Outcome.OK]
    if not _epochs_agree(appends, reads, trace.claims.duplicates):
        return False
    return any(
        _content_fits(log, reads, trace) and _moments_exist(log, reads, trace)
        for log in _logs(appends, reads, trace.claims.duplicates)
    )


def end_of(read: Operation) -> int | None:
    """The end that a read claims."""
    return (
        read.offset if read.function is Function.LIST_OFFSETS and read.end_offset is None else read.end_offset
    )


def trusted_end(read: Operation, trace: Trace) -> int | None:
    """The end that a read claims, if it may be trusted."""
    return end_of(read) if read.strong or trace.claims.check == "strong" else None


def firm(op: Operation) -> bool:
    """Acknowledged for good?"""
    return op.outcome is Outcome.OK and op.acks == -1


def _logs(appends: list[Operation], reads: list[Operation], duplicates: bool) -> Iterator[Log]:
    """Every way to place the appends without overlap and without contradicting a record that was read."""
    shown = [(record.offset, record.value) for read in reads for record in read.records]
    told = [op.offset + len(op.records) for op in appends if op.offset is not None]
    top = max([0, *(end_of(read) or 0 for read in reads), *(offset + 1 for offset, _ in shown), *told])

    def free(op: Operation, base: int) -> bool:
        mine = {base + i: record.value for i, record in enumerate(op.records)}
        return all(mine.get(offset, value) == value for offset, value in shown)

    def choices(op: Operation) -> list[tuple[int, ...]]:
        anywhere = list(range(top))
        if duplicates:  # a copy that no read shows explains nothing
            anywhere = sorted({o - i for o, _ in shown for i in range(len(op.records)) if o >= i})
        anywhere = [base for base in anywhere if free(op, base)]
        if op.outcome is Outcome.FAIL:
            return [()]
        if firm(op):
            more = [base for base in anywhere if base != op.offset] if duplicates else []
            return [(op.offset, *extra) for extra in _subsets(more)] if free(op, op.offset) else []
        return _subsets(anywhere) if duplicates else [(), *((base,) for base in anywhere)]

    def place(n: int, log: Log) -> Iterator[Log]:
        if n == len(appends):
            yield log
            return
        for bases in choices(appends[n]):
            grown = sorted([*log, *((base, appends[n]) for base in bases)], key=lambda batch: batch[0])
            if all(a + len(op.records) <= b for (a, op), (b, _) in pairwise(grown)):
                yield from place(n + 1, grown)

    return place(0, [])


def _subsets(bases: list[int]) -> list[tuple[int, ...]]:
    return [chosen for size in range(min(len(bases), 3) + 1) for chosen in combinations(bases, size)]


def _content_fits(log: Log, reads: list[Operation], trace: Trace) -> bool:
    at = {base + i: record.value for base, op in log for i, record in enumerate(op.records)}
    ends = [end for read in reads if (end := trusted_end(read, trace)) is not None]
    if (
        trace.claims.dense
        and any(offset not in at for offset in range(max([0, *ends, *(o + 1 for o in at)])))
        and not trace.claims.duplicates
    ):  # retries may fill holes
        return False
    if any(base < end < base + len(op.records) for end in ends for base, op in log):
        return False
    return all(_read_fits(at, read, trace) for read in reads)


def _read_fits(at: dict[int, int], read: Operation, trace: Trace) -> bool:
    offsets = [record.offset for record in read.records]
    end = trusted_end(read, trace)
    position = None if read.function is Function.LIST_OFFSETS else read.offset
    if any(at.get(record.offset) != record.value for record in read.records):
        return False
    if any(b <= a for a, b in pairwise(offsets)):
        return False
    if offsets and end is not None and offsets[-1] >= end:
        return False
    if offsets and position is not None and offsets[0] < position:
        return False
    if not offsets:
        return True
    begin = offsets[0] if position is None else position
    passed = [offset for offset in range(begin, offsets[-1]) if offset not in offsets]
    return not passed if trace.claims.dense else not any(offset in at for offset in passed)


def _moments_exist(log: Log, reads: list[Operation], trace: Trace) -> bool:
    """Are there moments, in log order, at which the batches entered the log? An offset that was claimed as an end and holds no known
    record is passed at some moment too."""
    if trace.claims.check == "content":
        return True
    stamps = sorted(
        {t for op in trace.operations for t in (op.invoke_time, op.completion_time) if t is not None}
    )
    held = {base + i for base, op in log for i in range(len(op.records))}
    ends = {end for read in reads if (end := trusted_end(read, trace)) is not None}
    steps = [(base, float(op.invoke_time), _latest(base, op, reads)) for base, op in log]
    steps = sorted(steps + [(end, float("-inf"), float("inf")) for end in ends - held])
    bases = [base for base, _, _ in steps]

    def grow(n: int, moments: list[int]) -> bool:
        if n == len(steps):
            return all(_end_fits(bases, moments, read, stamps, trace) for read in reads)
        _, earliest, latest = steps[n]
        return any(
            grow(n + 1, [*moments, t])
            for t in stamps
            if earliest <= t <= latest and (not moments or t >= moments[-1])
        )

    return grow(0, [])


def _latest(base: int, op: Operation, reads: list[Operation]) -> float:
    """When the batch must stand in the log: it was acknowledged, or a read had seen a record of it."""
    bounds = [float("inf")]
    if firm(op) and op.offset == base and op.completion_time is not None:
        bounds.append(op.completion_time)
    for read in reads:
        if any(base <= record.offset < base + len(op.records) for record in read.records):
            assert read.completion_time is not None
            bounds.append(read.completion_time)
    return min(bounds)


def _end_fits(bases: list[int], moments: list[int], read: Operation, stamps: list[int], trace: Trace) -> bool:
    """Was there a moment during the read at which the log ended where it says?"""
    end = trusted_end(read, trace)
    if end is None:
        return True
    assert read.completion_time is not None
    return any(
        all((t <= now) if base < end else (t >= now) for base, t in zip(bases, moments, strict=True))
        for now in stamps
        if read.invoke_time <= now <= read.completion_time
    )


def _epochs_agree(appends: list[Operation], reads: list[Operation], duplicates: bool) -> bool:
    """Leader epochs do not decrease along offsets; (epoch, offset) names one value."""
    told = [
        (op.offset + i, record.value, op.leader_epoch, firm(op))
        for op in appends
        if op.outcome is not Outcome.FAIL and op.offset is not None and op.leader_epoch is not None
        for i, record in enumerate(op.records)
    ]
    told += [
        (r.offset, r.value, r.leader_epoch, True)
        for read in reads
        for r in read.records
        if r.leader_epoch >= 0
    ]
    for o1, v1, e1, lasting1 in told:
        for o2, v2, e2, lasting2 in told:
            if lasting1 and lasting2 and o1 < o2 and e1 > e2:
                return False
            if e1 == e2 and o1 == o2 and v1 != v2:
                return False
            if e1 == e2 and v1 == v2 and o1 != o2 and not duplicates:
                return False
    return True
