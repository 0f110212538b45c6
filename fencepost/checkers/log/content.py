"""Steps 1, 6 and 7: what stands at which offset, no time involved.

Owns the rules about content, batches and leader epochs. Must not know anything of time. One function per anomaly; each answers with one
certificate or None.
"""

from collections.abc import Callable, Iterator

import numpy as np

from fencepost.checkers.columns import Array
from fencepost.checkers.log.columns import Kind
from fencepost.checkers.log.group import Group
from fencepost.checkers.verdict import Finding


def content_findings(group: Group) -> Iterator[Finding]:
    """At most one finding for each anomaly of content."""
    for rule in _RULES:
        finding = rule(group)
        if finding is not None:
            yield finding


def conflict(keys: tuple[Array, ...], what: Array) -> tuple[int, int] | None:
    """Two rows with equal keys and different `what`, the first in order of the keys; None if there are none."""
    if not len(what):
        return None
    order = np.lexsort((what, *reversed(keys)))
    same = np.ones(len(order) - 1, np.bool_)
    for key in keys:
        same &= key[order][1:] == key[order][:-1]
    found = np.flatnonzero(same & (what[order][1:] != what[order][:-1]))
    return (int(order[found[0]]), int(order[found[0] + 1])) if len(found) else None


def _conflicting_evidence(group: Group, key: str, what: str) -> tuple[int, int] | None:
    """Two pieces of evidence that agree in `key` and differ in `what`: where loss is not allowed, or else within one leader epoch."""
    seen = group.evidence
    plain = np.flatnonzero(~seen.keyed & ~seen.soft)
    pair = conflict((getattr(seen, key)[plain],), getattr(seen, what)[plain])
    if pair:
        return int(plain[pair[0]]), int(plain[pair[1]])
    dated = np.flatnonzero(seen.epoch >= 0)
    pair = conflict((getattr(seen, key)[dated], seen.epoch[dated]), getattr(seen, what)[dated])
    return (int(dated[pair[0]]), int(dated[pair[1]])) if pair else None


def _how(group: Group, i: int) -> str:
    """Evidence `i` in words."""
    seen = group.evidence
    verb = "was told that value" if seen.row[i] < 0 else "read value"
    epoch = f" (leader epoch {seen.epoch[i]})" if seen.epoch[i] >= 0 else ""
    return f"operation {seen.op_id[i]} {verb} {seen.value[i]} {'is ' if seen.row[i] < 0 else ''}at offset {seen.offset[i]}{epoch}"


def _pair(group: Group, anomaly: str, pair: tuple[int, int] | None, expected: str) -> Finding | None:
    if pair is None:
        return None
    i, j = pair
    seen = group.evidence
    return group.finding(
        anomaly,
        offset=int(seen.offset[i]),
        operations=(int(seen.op_id[i]), int(seen.op_id[j])),
        expected=expected,
        seen=f"{_how(group, i)}; {_how(group, j)}",
    )


def _inconsistent(group: Group) -> Finding | None:
    pair = _conflicting_evidence(group, "offset", "value")
    return _pair(group, "inconsistent_offsets", pair, "one value at each offset")


def _duplicate(group: Group) -> Finding | None:
    if group.duplicates or not group.unique:
        return None
    pair = _conflicting_evidence(group, "value", "offset")
    return _pair(group, "duplicate", pair, "each value at one offset")


def _read_record(group: Group, anomaly: str, bad: Array, expected: str, appends: bool) -> Finding | None:
    """A finding about the first record read that is `bad` (a mask over evidence)."""
    seen = group.evidence
    rows = np.flatnonzero(bad & (seen.row >= 0))
    if not len(rows):
        return None
    i = int(rows[np.argmin(seen.offset[rows])])
    sender = [int(group.appends.op_id[seen.sender[i]])] if appends else []
    what = f", whose append (operation {sender[0]}) failed" if sender else ", which nobody sent"
    return group.finding(
        anomaly,
        offset=int(seen.offset[i]),
        operations=(int(seen.op_id[i]), *sender),
        expected=expected,
        seen=_how(group, i) + what,
    )


def _phantom(group: Group) -> Finding | None:
    return _read_record(
        group, "phantom_record", group.evidence.sender < 0, "only records that some client sent", False
    )


def _failed_visible(group: Group) -> Finding | None:
    sender = group.evidence.sender
    failed = np.zeros(len(sender), np.bool_)
    failed[sender >= 0] = group.appends.kind[sender[sender >= 0]] == Kind.FAILED
    return _read_record(group, "failed_append_visible", failed, "no record of an append that failed", True)


def _steps(group: Group) -> tuple[Array, Array]:
    """Pairs (before, at): for each record read, the offset that the read stood at before it; no pair for a first record
    whose read does not say where it began."""
    reads = group.reads
    offset, row = reads.offset, group.read_of_record
    before = np.empty_like(offset)
    before[1:] = offset[:-1]
    head = reads.start[:-1][np.diff(reads.start) > 0]
    before[head] = reads.position[row[head]] - 1
    told = np.ones(len(offset), np.bool_)
    told[head] = reads.position[row[head]] >= 0
    return before, told


def _unordered(group: Group) -> Finding | None:
    reads, row = group.reads, group.read_of_record
    inner = np.flatnonzero((row[1:] == row[:-1]) & (reads.offset[1:] <= reads.offset[:-1]))
    if not len(inner):
        return None
    i = int(inner[0])
    return group.finding(
        "unordered_read",
        offset=int(reads.offset[i + 1]),
        operations=(int(reads.op_id[row[i]]),),
        expected="the records of a read in increasing offset order",
        seen=f"operation {reads.op_id[row[i]]} returned offset {reads.offset[i]} before {reads.offset[i + 1]}",
    )


def _outside(group: Group) -> Finding | None:
    reads, row = group.reads, group.read_of_record
    end = np.where(group.strong, reads.end, np.iinfo(np.int64).max)[row]
    bad = np.flatnonzero((reads.offset < reads.position[row]) | (reads.offset >= end))
    if not len(bad):
        return None
    i = int(bad[0])
    r = row[i]
    bounds = f"[{max(reads.position[r], 0)}, {reads.end[r] if group.strong[r] else 'any end'})"
    return group.finding(
        "read_outside_bounds",
        offset=int(reads.offset[i]),
        operations=(int(reads.op_id[r]),),
        expected=f"records within {bounds}",
        seen=f"operation {reads.op_id[r]} returned offset {reads.offset[i]}",
    )


def _occupied(group: Group) -> tuple[Array, Array]:
    """Offsets that hold a record where no loss is allowed, in order, and an operation that says so."""
    seen, placed, appends = group.evidence, group.placements, group.appends
    plain = np.flatnonzero(~seen.keyed & ~seen.soft)
    whole = placed.append >= 0
    count = (placed.last - placed.base + 1)[whole]
    start = np.cumsum(count) - count
    inner = np.repeat(placed.base[whole] - start, count) + np.arange(count.sum())
    op = np.repeat(appends.op_id[placed.append[whole]], count)
    offset, at = np.unique(np.concatenate((seen.offset[plain], inner)), return_index=True)
    return offset, np.concatenate((seen.op_id[plain], op))[at]


def _skipped(group: Group) -> Finding | None:
    reads, row = group.reads, group.read_of_record
    before, told = _steps(group)
    gap = np.flatnonzero(told & (reads.offset > before + 1))
    occupied, op = _occupied(group)
    if not len(gap):
        return None
    at = np.searchsorted(occupied, before[gap] + 1)
    held = at < np.searchsorted(occupied, reads.offset[gap])
    if not held.any() and not group.dense:
        return None
    g = int(np.flatnonzero(held)[0]) if held.any() else 0
    i = int(gap[g])
    witness = (int(op[at[g]]),) if held[g] else ()
    offset = int(occupied[at[g]]) if held[g] else int(before[i]) + 1
    why = (
        f"which operation {witness[0]} proves to hold a record"
        if witness
        else "though every offset holds a record"
    )
    return group.finding(
        "skipped_offset",
        offset=offset,
        operations=(int(reads.op_id[row[i]]), *witness),
        expected=f"offset {offset} before offset {reads.offset[i]}",
        seen=f"operation {reads.op_id[row[i]]} went from {before[i] + 1 if before[i] >= 0 else 'the start'} to {reads.offset[i]} "
        f"past offset {offset}, {why}",
    )


def _torn(group: Group) -> Finding | None:
    return _torn_below(group) or _torn_end(group) or _torn_apart(group) or _torn_over(group)


def _torn_below(group: Group) -> Finding | None:
    """A batch whose first records would stand below offset 0."""
    placed, appends = group.placements, group.appends
    below = np.flatnonzero(placed.base < 0)
    if not len(below):
        return None
    batch = int(below[0])
    append = int(appends.op_id[placed.append[batch]])
    shown = np.flatnonzero(
        (group.evidence.offset - group.evidence.nth == placed.base[batch]) & (group.evidence.row >= 0)
    )
    return group.finding(
        "torn_batch",
        offset=int(group.evidence.offset[shown[0]]),
        operations=(int(group.evidence.op_id[shown[0]]), append),
        expected=f"room for all records of operation {append}",
        seen=f"{_how(group, int(shown[0]))}, so that its batch begins at {placed.base[batch]}",
    )


def _torn_end(group: Group) -> Finding | None:
    """A claimed end inside a batch."""
    placed, reads = group.placements, group.reads
    batches = np.flatnonzero((placed.last > placed.base) & (placed.append >= 0))
    strong = np.flatnonzero(group.strong)
    if not len(batches) or not len(strong):
        return None
    at = np.searchsorted(placed.base[batches], reads.end[strong], side="left") - 1
    torn = np.flatnonzero((at >= 0) & (reads.end[strong] <= placed.last[batches][np.maximum(at, 0)]))
    if not len(torn):
        return None
    r, b = int(strong[torn[0]]), int(batches[at[torn[0]]])
    append = int(group.appends.op_id[placed.append[b]])
    return group.finding(
        "torn_batch",
        offset=int(reads.end[r]),
        operations=(int(reads.op_id[r]), append),
        expected=f"an end outside the batch [{placed.base[b]}, {placed.last[b] + 1}) of operation {append}",
        seen=f"operation {reads.op_id[r]} claimed end {reads.end[r]}",
    )


def _torn_apart(group: Group) -> Finding | None:
    """Two records of one batch that do not stand as far apart as they were sent."""
    seen = group.evidence
    if group.duplicates or not group.unique:
        return None
    rows = np.flatnonzero((seen.sender >= 0) & ~seen.keyed & ~seen.soft)
    rows = rows[group.appends.kind[seen.sender[rows]] == Kind.SOFT]
    base, nth, sender = (seen.offset - seen.nth)[rows], seen.nth[rows], seen.sender[rows]
    several = np.isin(sender, sender[_differs(sender, base)]) & np.isin(sender, sender[_differs(sender, nth)])
    if not several.any():
        return None
    first = sender[several].min()
    of = np.flatnonzero(sender == first)
    i, j = next((i, j) for i in of for j in of if nth[i] != nth[j] and base[i] != base[j])
    return _pair(
        group,
        "torn_batch",
        (int(rows[i]), int(rows[j])),
        "the records of one batch side by side, in the order sent",
    )


def _differs(key: Array, what: Array) -> Array:
    """Rows whose key has rows with another `what`."""
    order = np.lexsort((what, key))
    rows: Array = order[1:][(np.diff(key[order]) == 0) & (np.diff(what[order]) != 0)]
    return rows


def _torn_over(group: Group) -> Finding | None:
    """A batch that was seen in part, and something else where the rest of it must stand."""
    seen, placed, appends = group.evidence, group.placements, group.appends
    plain = np.flatnonzero(~seen.keyed & ~seen.soft)
    batches = np.flatnonzero((placed.last > placed.base) & (placed.append >= 0))
    if not len(batches):
        return None
    count = (placed.last - placed.base + 1)[batches]
    inner = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    owner = np.repeat(placed.append[batches], count)
    offset = np.concatenate((seen.offset[plain], np.repeat(placed.base[batches], count) + inner))
    value = np.concatenate((seen.value[plain], appends.value[appends.start[owner] + inner]))
    op = np.concatenate((seen.op_id[plain], appends.op_id[owner]))
    settled = np.unique(
        seen.offset[plain][_differs(seen.offset[plain], seen.value[plain])]
    )  # these are inconsistent, not torn
    open_ = np.flatnonzero(~np.isin(offset, settled))
    pair = conflict((offset[open_],), value[open_])
    if pair is None:
        return None
    i, j = (int(open_[k]) for k in pair)
    return group.finding(
        "torn_batch",
        offset=int(offset[i]),
        operations=(int(op[i]), int(op[j])),
        expected="the records of one batch side by side, in the order sent",
        seen=f"offset {offset[i]} must hold value {value[i]} by operation {op[i]} and value {value[j]} by operation {op[j]}",
    )


def _epoch_regressed(group: Group) -> Finding | None:
    seen = group.evidence
    rows = np.flatnonzero(~seen.keyed & ~seen.soft & (seen.epoch >= 0))
    rows = rows[np.lexsort((seen.epoch[rows], seen.offset[rows]))]
    if not len(rows):
        return None
    offset, epoch = seen.offset[rows], seen.epoch[rows]
    highest = np.maximum.accumulate(epoch)
    below = np.searchsorted(offset, offset) - 1
    bad = np.flatnonzero((below >= 0) & (highest[np.maximum(below, 0)] > epoch))
    if not len(bad):
        return None
    j = int(bad[0])
    i = int(np.flatnonzero(epoch[: below[j] + 1] == highest[below[j]])[0])
    pair = (int(rows[i]), int(rows[j]))
    return _pair(
        group, "epoch_regressed_in_log", pair, "leader epochs that do not decrease along the offsets"
    )


_RULES: tuple[Callable[[Group], Finding | None], ...] = (
    _inconsistent,
    _duplicate,
    _phantom,
    _failed_visible,
    _unordered,
    _skipped,
    _outside,
    _torn,
    _epoch_regressed,
)
