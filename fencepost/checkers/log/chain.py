"""Step 4: which two operations contradict each other about the growth of the log, and the name of the
anomaly.

Owns the real-time certificates about the log end. The bounds of appends and reads are in `bounds`. The kinds
of the two bounds determine the anomaly.
"""

from collections.abc import Iterator

import numpy as np

from fencepost.checkers.durations import moment
from fencepost.checkers.log.bounds import (
    Bounds,
    Pair,
    acknowledgements,
    appended,
    claimed_ends,
    contradicted,
    in_order,
    shows,
    worst_pair,
)
from fencepost.checkers.log.extras import LONG_AGO, Fate
from fencepost.checkers.log.one_log import PartitionLog
from fencepost.checkers.log.skips import replaceable
from fencepost.checkers.operation_columns import Array
from fencepost.checkers.verdict import Finding


def chain_findings(group: PartitionLog) -> Iterator[Finding]:
    """For each real-time anomaly at most one finding: the one that needs the largest clock uncertainty."""
    sent, acknowledged = appended(group), acknowledgements(group)
    ended, shown = claimed_ends(group), shows(group)
    lost = _lost(group, ended, acknowledged)
    yield from _append_inversion(group, worst_pair(sent, acknowledged, group.uncertainty))
    yield from _read_before_sent(group)
    # A read that showed slot j forbids later appends below j's batch. If it showed j before j's own append
    # began, that is read_before_sent.
    yield from _append_below(group, worst_pair(sent, shows(group, below_slot=True), group.uncertainty))
    yield from _stale(group, worst_pair(ended, acknowledged.where(lost), group.uncertainty), "lost_write")
    yield from _stale(group, worst_pair(ended, acknowledged.where(~lost), group.uncertainty), "stale_read")
    yield from _regressed(group, worst_pair(ended, shown, group.uncertainty))


def chain_offsets(group: PartitionLog) -> Array:
    """Where the log grew at impossible moments if clocks were exact: offsets with an upper bound below a
    lower bound. Clock uncertainty may explain some."""
    sent, ended = in_order(appended(group)), in_order(claimed_ends(group))
    pairs = (
        (sent, acknowledgements(group)),
        (sent, shows(group, below_slot=True)),
        (ended, acknowledgements(group)),
        (ended, shows(group)),
    )
    early = group.evidence.offset[_read_too_early(group)[0]]
    return np.concatenate((early, *(high.index[contradicted(low, high)] for low, high in pairs)))


def _lost(group: PartitionLog, ended: Bounds, acknowledged: Bounds) -> Array:
    """Which acknowledged records are lost: no read shows them, although a strong read has ended at or before
    them, and neither retention nor compaction nor an abort may have removed them."""
    appends, seen = group.appends, group.evidence
    last_shown = np.full(len(appends.kind), LONG_AGO)
    read = np.flatnonzero((seen.row >= 0) & (seen.sender >= 0))
    np.maximum.at(last_shown, seen.sender[read], group.reads.completion[seen.row[read]])
    order = np.argsort(ended.index, kind="stable")
    latest = np.concatenate(([LONG_AGO], np.maximum.accumulate(ended.time[order])))
    missing = latest[np.searchsorted(ended.index[order], acknowledged.index, side="right")]
    at_risk = group.loss_allowed(
        appends.base[acknowledged.row] + np.diff(appends.start)[acknowledged.row] - 1
    )
    at_risk |= acknowledged.index < int(group.extras.licence)
    fate = group.extras.fate[acknowledged.row]
    at_risk |= (fate == Fate.OPEN) | (fate == Fate.ABORTED) | replaceable(group)[acknowledged.row]
    return ~at_risk & (missing > last_shown[acknowledged.row])


def _append_inversion(group: PartitionLog, pair: Pair | None) -> Iterator[Finding]:
    if pair is None:
        return
    appends = group.appends
    i, j = pair.low, pair.high
    yield group.finding(
        "append_inversion",
        offset=_offset_of(group, i),
        operations=(int(appends.op_id[i]), int(appends.op_id[j])),
        expected=f"operation {appends.op_id[i]}, invoked at {moment(appends.invoke[i])}, above offset "
        f"{appends.base[j]}, "
        f"acknowledged to operation {appends.op_id[j]} by {moment(appends.completion[j])}",
        seen=f"operation {appends.op_id[i]} is at offset {_offset_of(group, i)}",
        uncertainty=pair.uncertainty,
    )


def _offset_of(group: PartitionLog, append: int) -> int:
    """The lowest base offset of an append."""
    placed = group.placements
    return int(placed.base[placed.append == append].min())


def _read_before_sent(group: PartitionLog) -> Iterator[Finding]:
    appends, reads, seen = group.appends, group.reads, group.evidence
    rows, gap, same = _read_too_early(group)
    if not len(rows):
        return
    worst = int(np.lexsort((gap, same))[-1])
    i = rows[worst]
    append, read = seen.sender[i], seen.row[i]
    yield group.finding(
        "read_before_sent",
        offset=int(seen.offset[i]),
        operations=(int(appends.op_id[append]), int(reads.op_id[read])),
        expected=f"no read of value {seen.value[i]} before operation {appends.op_id[append]} was invoked at "
        f"{moment(appends.invoke[append])}",
        seen=f"operation {reads.op_id[read]} had read it at offset {seen.offset[i]} by "
        f"{reads.completion[read]}",
        uncertainty=-1 if same[worst] else int(gap[worst] + 1) // 2,
    )


def _read_too_early(group: PartitionLog) -> tuple[Array, Array, Array]:
    """Evidence of reads that had completed before the append of their record was invoked: its rows, how long
    before, and whether one clock says so."""
    appends, reads, seen = group.appends, group.reads, group.evidence
    rows = np.flatnonzero((seen.row >= 0) & (seen.sender >= 0))
    gap = appends.invoke[seen.sender[rows]] - reads.completion[seen.row[rows]]
    same = appends.clock[seen.sender[rows]] == reads.clock[seen.row[rows]]
    bad = (gap > 0) & (same | ((gap + 1) // 2 > group.uncertainty))
    return rows[bad], gap[bad], same[bad]


def _append_below(group: PartitionLog, pair: Pair | None) -> Iterator[Finding]:
    if pair is None:
        return
    appends, reads = group.appends, group.reads
    i, r = pair.low, pair.high
    yield group.finding(
        "append_below_shown_end",
        offset=_offset_of(group, i),
        operations=(int(appends.op_id[i]), int(reads.op_id[r])),
        expected=f"operation {appends.op_id[i]}, invoked at {moment(appends.invoke[i])}, at or above "
        f"{_showed(group, r)}",
        seen=f"operation {appends.op_id[i]} is at offset {_offset_of(group, i)}",
        uncertainty=pair.uncertainty,
    )


def _showed(group: PartitionLog, read: int) -> str:
    """The end of the log that a read showed."""
    reads = group.reads
    records = reads.offset[reads.start[read] : reads.start[read + 1]]
    claims = (reads.end[read] if group.strong[read] else -1, group.log_start[read], group.stable[read])
    reach = max([int(claim) for claim in claims] + [int(o) + 1 for o in records])
    return f"the end {reach} that operation {reads.op_id[read]} had shown by {reads.completion[read]}"


def _stale(group: PartitionLog, pair: Pair | None, anomaly: str) -> Iterator[Finding]:
    if pair is None:
        return
    appends, reads = group.appends, group.reads
    r, j = pair.low, pair.high
    last = appends.base[j] + (appends.start[j + 1] - appends.start[j] - 1)
    never = ", and no later read shows that record" if anomaly == "lost_write" else ""
    yield group.finding(
        anomaly,
        offset=int(last),
        operations=(int(reads.op_id[r]), int(appends.op_id[j])),
        expected=f"an end above offset {last}, acknowledged to operation {appends.op_id[j]} by "
        f"{moment(appends.completion[j])}",
        seen=f"operation {reads.op_id[r]}, invoked at {moment(reads.invoke[r])}, claimed end "
        f"{reads.end[r]}{never}",
        uncertainty=pair.uncertainty,
    )


def _regressed(group: PartitionLog, pair: Pair | None) -> Iterator[Finding]:
    if pair is None:
        return
    reads = group.reads
    later, earlier = pair.low, pair.high
    yield group.finding(
        "high_watermark_regressed",
        offset=int(reads.end[later]),
        operations=(int(reads.op_id[later]), int(reads.op_id[earlier])),
        expected=f"no end below {_showed(group, earlier)}",
        seen=f"operation {reads.op_id[later]}, invoked at {moment(reads.invoke[later])}, claimed end "
        f"{reads.end[later]}",
        uncertainty=pair.uncertainty,
    )
