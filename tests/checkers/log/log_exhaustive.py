"""A slow reference: is there any log, and are there any moments at which it grew, that explain a small
history?

Tries every placement of every append, every outcome of every transaction nobody knows the end of, and
(`log_moments`) every assignment of moments; shares no code and no argument with the judge. One partition, one
clock, no loss. `legal` is the definition of what the judge must decide.
"""

from collections.abc import Iterator
from itertools import combinations, pairwise, product

from attrs import frozen
from log_claims import (
    ABORTED,
    COMMITTED,
    OPEN,
    ReadClaims,
    claims_of,
    compacted,
    dense,
    fate_of,
    licence_of,
    told_for_good,
    transaction_of,
)
from log_moments import moments_exist

from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

Log = list[tuple[int, Operation]]
"""Batches that stand in the log: base offset and append, in order."""

Reads = list[tuple[Operation, ReadClaims]]


@frozen(kw_only=True)
class History:
    """A trace taken apart."""

    trace: Trace
    appends: list[Operation]
    reads: Reads
    # Of each append, by op id.
    fate: dict[int, str | None]
    # Below it retention explains what a read does not show.
    licence: int


def legal(trace: Trace) -> bool:
    """Does some log explain the whole trace?"""
    appends = [op for op in trace.operations if op.function is Function.APPEND]
    answered = (Function.POLL, Function.LIST_OFFSETS)
    reads = [op for op in trace.operations if op.function in answered and op.outcome is Outcome.OK]
    if not _epochs_agree(trace, appends, reads):
        return False
    claimed = [(op, claims_of(op, trace)) for op in reads]
    if any(_contradicts_itself(claims) for _, claims in claimed):
        return False
    return any(_legal_with(trace, appends, claimed, fate) for fate in _fates(appends, trace))


def _contradicts_itself(claims: ReadClaims) -> bool:
    """Neither the log start nor the last stable offset of a reply is above its end."""
    end, start, stable = claims.said
    return end is not None and any(claim is not None and claim > end for claim in (start, stable))


def _fates(appends: list[Operation], trace: Trace) -> Iterator[dict[int, str | None]]:
    """Every outcome of the transactions that nobody knows the end of."""
    open_ = sorted(
        {t.op_id for op in appends if fate_of(op, trace) == OPEN and (t := transaction_of(op, trace))}
    )
    for outcomes in product((COMMITTED, ABORTED), repeat=len(open_)):
        chosen = dict(zip(open_, outcomes, strict=True))
        fate = {}
        for op in appends:
            t = transaction_of(op, trace)
            fate[op.op_id] = chosen.get(t.op_id, fate_of(op, trace)) if t else None
        yield fate


def _legal_with(trace: Trace, appends: list[Operation], reads: Reads, fate: dict[int, str | None]) -> bool:
    h = History(trace=trace, appends=appends, reads=reads, fate=fate, licence=licence_of(trace))
    return any(
        _content_fits(log, h) and moments_exist(log, h.reads, trace, _newer(log, h), h.fate)
        for log in _logs(h)
    )


def firm(op: Operation) -> bool:
    """Acknowledged for good?"""
    return op.outcome is Outcome.OK and op.acks == -1


def _logs(h: History) -> Iterator[Log]:
    """Every way to place the appends without overlap and without contradicting a record that was read."""
    duplicates = h.trace.claims.duplicates
    shown = [(record.offset, record.value) for read, _ in h.reads for record in read.records]
    told = [op.offset + len(op.records) for op in h.appends if op.offset is not None]
    said = [claim or 0 for _, claims in h.reads for claim in claims.said]
    top = max([0, *said, *(offset + 1 for offset, _ in shown), *told])
    if compacted(h.trace):  # what nobody saw may be the newer record
        top += sum(len(op.records) for op in h.appends if not firm(op))

    def free(op: Operation, base: int) -> bool:
        mine = {base + i: record.value for i, record in enumerate(op.records)}
        return all(mine.get(offset, value) == value for offset, value in shown)

    def choices(op: Operation) -> list[tuple[int, ...]]:
        anywhere = list(range(top))
        if duplicates:  # a copy that no read shows explains nothing
            anywhere = sorted({o - i for o, _ in shown for i in range(len(op.records)) if o >= i})
        anywhere = [base for base in anywhere if free(op, base)]
        if op.outcome is Outcome.FAIL and fate_of(op, h.trace) != ABORTED:
            return [()]  # of an aborted transaction it may stand; by itself it was never written
        if firm(op) or told_for_good(op, h.trace):
            more = [base for base in anywhere if base != op.offset] if duplicates else []
            return [(op.offset, *extra) for extra in _subsets(more)] if free(op, op.offset) else []
        return _subsets(anywhere) if duplicates else [(), *((base,) for base in anywhere)]

    def place(n: int, log: Log) -> Iterator[Log]:
        if n == len(h.appends):
            yield log
            return
        for bases in choices(h.appends[n]):
            grown = sorted([*log, *((base, h.appends[n]) for base in bases)], key=lambda batch: batch[0])
            if all(a + len(op.records) <= b for (a, op), (b, _) in pairwise(grown)):
                yield from place(n + 1, grown)

    return place(0, [])


def _subsets(bases: list[int]) -> list[tuple[int, ...]]:
    return [chosen for size in range(min(len(bases), 3) + 1) for chosen in combinations(bases, size)]


def _content_fits(log: Log, h: History) -> bool:
    at = {base + i: (record.value, op) for base, op in log for i, record in enumerate(op.records)}
    claimed = [claims for _, claims in h.reads]
    ends = [claims.end for claims in claimed if claims.end is not None]
    reached = [c or 0 for claims in claimed for c in (claims.end, claims.log_start, claims.stable)]
    if (
        dense(h.trace)
        and any(offset not in at for offset in range(max([0, *reached, *(o + 1 for o in at)])))
        and not h.trace.claims.duplicates
    ):  # retries may fill holes
        return False
    if any(base < end < base + len(op.records) for end in ends for base, op in log):
        return False
    return all(_read_fits(at, read, claims, h) for read, claims in h.reads)


def _read_fits(at: dict[int, tuple[int, Operation]], read: Operation, claims: ReadClaims, h: History) -> bool:
    offsets = [record.offset for record in read.records]
    begin = max(claims.position or 0, claims.log_start or 0)
    end = min(
        [2**63 if claims.end is None else claims.end]
        + [claims.stable] * (claims.committed and claims.stable is not None)
    )
    if any(at.get(record.offset, (None, None))[0] != record.value for record in read.records):
        return False
    if any(_hidden(at[offset][1], read, h) for offset in offsets):
        return False
    if any(b <= a for a, b in pairwise(offsets)):
        return False
    if offsets and not begin <= offsets[0] <= offsets[-1] < end:
        return False
    return all(_gone(at, offset, read, claims, h) for offset in passed_over(offsets, claims, h.licence))


def passed_over(offsets: list[int], claims: ReadClaims, licence: int) -> list[int]:
    """The offsets that a read must account for: between its records, and before the first one, less what
    retention explains."""
    if not offsets:
        return []
    excused = claims.log_start if claims.log_start is not None else licence
    first = [] if claims.position is None else list(range(max(claims.position, excused), offsets[0]))
    return first + [o for a, b in pairwise(offsets) for o in range(a + 1, b)]


def _hidden(op: Operation, read: Operation, h: History) -> bool:
    """Must a read not show the records of this append?"""
    if h.fate[op.op_id] != ABORTED:
        return False
    failed = op.outcome is Outcome.FAIL and read.isolation != "read_uncommitted"
    return failed or read.isolation == "read_committed"


def _gone(
    at: dict[int, tuple[int, Operation]], offset: int, read: Operation, claims: ReadClaims, h: History
) -> bool:
    """May a read pass over this offset, time aside?"""
    if offset not in at:
        return not dense(h.trace)
    op = at[offset][1]
    if claims.committed and h.fate[op.op_id] == ABORTED:
        return True
    if not compacted(h.trace):
        return False
    return _gone_any_time(op, h) or _newer_of(at, offset, h) is not None


def _gone_any_time(op: Operation, h: History) -> bool:
    return op.argument == "tombstone" or h.fate[op.op_id] == ABORTED


def _newer_of(at: dict[int, tuple[int, Operation]], offset: int, h: History) -> int | None:
    """The next offset that holds a record of the same key."""
    key = at[offset][1].key
    newer = [o for o, (_, op) in at.items() if o > offset and op.key == key and h.fate[op.op_id] != ABORTED]
    return min(newer, default=None) if key is not None else None


def _newer(log: Log, h: History) -> list[tuple[int, int]]:
    """(offset, moment): this offset must have stood by then, because a read had passed over an older record
    of its key."""
    if not compacted(h.trace):
        return []
    at = {base + i: (record.value, op) for base, op in log for i, record in enumerate(op.records)}
    needed = []
    for read, claims in h.reads:
        offsets = [record.offset for record in read.records]
        for offset in passed_over(offsets, claims, h.licence):
            hidden = offset in at and claims.committed and h.fate[at[offset][1].op_id] == ABORTED
            if offset in at and not hidden and not _gone_any_time(at[offset][1], h):
                newer = _newer_of(at, offset, h)
                assert newer is not None and read.completion_time is not None
                needed.append((newer, read.completion_time))
    return needed


def _epochs_agree(trace: Trace, appends: list[Operation], reads: list[Operation]) -> bool:
    """Leader epochs do not decrease along offsets; (epoch, offset) names one value."""
    told = [
        (op.offset + i, record.value, op.leader_epoch, firm(op) or told_for_good(op, trace))
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
            if e1 == e2 and v1 == v2 and o1 != o2 and not trace.claims.duplicates:
                return False
    return True
