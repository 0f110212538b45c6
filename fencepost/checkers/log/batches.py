"""Step 6: batches are complete and do not overlap, and no log end is inside one.

Owns the anomaly `torn_batch` in its four forms. Must not know times.
"""

from collections.abc import Iterator

import numpy as np

from fencepost.checkers.log.appends_and_reads import Kind
from fencepost.checkers.log.evidence import conflicts, how_of, pair_finding
from fencepost.checkers.log.one_log import PartitionLog
from fencepost.checkers.log.same_keys import disputed
from fencepost.checkers.verdict import Finding

SIDE_BY_SIDE = "the records of one batch side by side, in the order sent"


def torn_batches(group: PartitionLog) -> Iterator[Finding]:
    """Batches that are cut, overlapped, or not contiguous."""
    yield from _torn_below(group)
    yield from _torn_end(group)
    yield from _torn_apart(group)
    yield from _torn_over(group)


def _torn_below(group: PartitionLog) -> Iterator[Finding]:
    """Batches with records that would be below offset 0."""
    placed, appends = group.placements, group.appends
    for batch in np.flatnonzero(placed.base < 0).tolist():
        append = int(appends.op_id[placed.append[batch]])
        shown = np.flatnonzero(
            (group.evidence.offset - group.evidence.nth == placed.base[batch]) & (group.evidence.row >= 0)
        )
        yield group.finding(
            "torn_batch",
            offset=int(group.evidence.offset[shown[0]]),
            operations=(int(group.evidence.op_id[shown[0]]), append),
            expected=f"room for all records of operation {append}",
            seen=f"{how_of(group, int(shown[0]))}, so that its batch begins at {placed.base[batch]}",
        )


def _torn_end(group: PartitionLog) -> Iterator[Finding]:
    """A claimed end inside a batch."""
    placed, reads = group.placements, group.reads
    batches = np.flatnonzero((placed.last > placed.base) & (placed.append >= 0))
    strong = np.flatnonzero(group.strong)
    if not len(batches) or not len(strong):
        return
    at = np.searchsorted(placed.base[batches], reads.end[strong], side="left") - 1
    torn = np.flatnonzero((at >= 0) & (reads.end[strong] <= placed.last[batches][np.maximum(at, 0)]))
    for n in torn.tolist():
        r, b = int(strong[n]), int(batches[at[n]])
        append = int(group.appends.op_id[placed.append[b]])
        yield group.finding(
            "torn_batch",
            offset=int(reads.end[r]),
            operations=(int(reads.op_id[r]), append),
            expected=f"an end outside the batch [{placed.base[b]}, {placed.last[b] + 1}) of operation "
            f"{append}",
            seen=f"operation {reads.op_id[r]} claimed end {reads.end[r]}",
        )


def _torn_apart(group: PartitionLog) -> Iterator[Finding]:
    """Two records of one batch with a wrong distance between their offsets."""
    seen = group.evidence
    if group.duplicates or not group.unique:
        return
    rows = np.flatnonzero((seen.sender >= 0) & ~seen.keyed & ~seen.soft)
    rows = rows[(group.standing & (group.appends.kind != Kind.FIRM))[seen.sender[rows]]]
    base, nth, sender = (seen.offset - seen.nth)[rows], seen.nth[rows], seen.sender[rows]
    several = np.isin(sender, np.intersect1d(disputed(sender, base), disputed(sender, nth)))
    for append in np.unique(sender[several]).tolist():
        of = np.flatnonzero(sender == append)
        i, j = next((i, j) for i in of for j in of if nth[i] != nth[j] and base[i] != base[j])
        yield pair_finding(group, "torn_batch", (int(rows[i]), int(rows[j])), SIDE_BY_SIDE)


def _torn_over(group: PartitionLog) -> Iterator[Finding]:
    """A batch that reads showed in part, with other records in the place of the rest."""
    seen, placed, appends = group.evidence, group.placements, group.appends
    plain = seen.plain
    batches = np.flatnonzero((placed.last > placed.base) & (placed.append >= 0))
    if not len(batches):
        return
    count = (placed.last - placed.base + 1)[batches]
    inner = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    owner = np.repeat(placed.append[batches], count)
    offset = np.concatenate((seen.offset[plain], np.repeat(placed.base[batches], count) + inner))
    value = np.concatenate((seen.value[plain], appends.value[appends.start[owner] + inner]))
    op = np.concatenate((seen.op_id[plain], appends.op_id[owner]))
    settled = disputed(
        seen.offset[plain], seen.value[plain], seen.first_plain
    )  # these are inconsistent_offsets, not torn
    open_ = np.flatnonzero(~np.isin(offset, settled)) if len(settled) else np.arange(len(offset))
    for pair in conflicts((offset[open_],), value[open_]):
        i, j = (int(open_[k]) for k in pair)
        yield group.finding(
            "torn_batch",
            offset=int(offset[i]),
            operations=(int(op[i]), int(op[j])),
            expected=SIDE_BY_SIDE,
            seen=f"offset {offset[i]} must hold value {value[i]} by operation {op[i]} and value {value[j]} "
            f"by operation {op[j]}",
        )
