"""Steps 1 and 7: the content of each offset, without times.

Owns the rules about content and leader epochs. Those about batches and skipped offsets are in `batches` and
`skips`. Must not know times. There is one function per anomaly; each returns one certificate or None.
"""

from collections.abc import Callable, Iterator

import numpy as np

from fencepost.checkers.log.appends_and_reads import Kind
from fencepost.checkers.log.batches import torn_batch
from fencepost.checkers.log.evidence import conflict, how_of, pair_finding
from fencepost.checkers.log.extras import Fate
from fencepost.checkers.log.group import PartitionLog
from fencepost.checkers.log.skips import skipped_offset
from fencepost.checkers.operation_columns import Array
from fencepost.checkers.statements import READ_UNCOMMITTED
from fencepost.checkers.verdict import Finding


def content_findings(group: PartitionLog) -> Iterator[Finding]:
    """At most one finding for each anomaly of content."""
    for rule in _RULES:
        finding = rule(group)
        if finding is not None:
            yield finding


def _conflicting_evidence(group: PartitionLog, key: str, what: str) -> tuple[int, int] | None:
    """Two pieces of evidence that agree in `key` and differ in `what`. If loss is allowed, they must have the
    same leader epoch."""
    seen = group.evidence
    plain = np.flatnonzero(~seen.keyed & ~seen.soft)
    pair = conflict((getattr(seen, key)[plain],), getattr(seen, what)[plain])
    if pair:
        return int(plain[pair[0]]), int(plain[pair[1]])
    dated = np.flatnonzero(seen.epoch >= 0)
    pair = conflict((getattr(seen, key)[dated], seen.epoch[dated]), getattr(seen, what)[dated])
    return (int(dated[pair[0]]), int(dated[pair[1]])) if pair else None


def _inconsistent(group: PartitionLog) -> Finding | None:
    pair = _conflicting_evidence(group, "offset", "value")
    return pair_finding(group, "inconsistent_offsets", pair, "one value at each offset")


def _duplicate(group: PartitionLog) -> Finding | None:
    if group.duplicates or not group.unique:
        return None
    pair = _conflicting_evidence(group, "value", "offset")
    return pair_finding(group, "duplicate", pair, "each value at one offset")


def _read_record(
    group: PartitionLog, anomaly: str, bad: Array, expected: str, appends: bool
) -> Finding | None:
    """A finding about the first read record that is `bad` (a mask over evidence)."""
    seen = group.evidence
    rows = np.flatnonzero(bad & (seen.row >= 0))
    if not len(rows):
        return None
    i = int(rows[np.argmin(seen.offset[rows])])
    sender = [int(group.appends.op_id[seen.sender[i]])] if appends else []
    what = f"; its append (operation {sender[0]}) failed" if sender else "; no append sent it"
    return group.finding(
        anomaly,
        offset=int(seen.offset[i]),
        operations=(int(seen.op_id[i]), *sender),
        expected=expected,
        seen=how_of(group, i) + what,
    )


def _phantom(group: PartitionLog) -> Finding | None:
    return _read_record(
        group, "phantom_record", group.evidence.sender < 0, "only records that some client sent", False
    )


def _failed_visible(group: PartitionLog) -> Finding | None:
    """Records of failed appends. For an aborted transaction, only reads that did not ask for uncommitted
    records count."""
    seen = group.evidence
    bad = np.zeros(len(seen.sender), np.bool_)
    sent = np.flatnonzero((seen.sender >= 0) & (seen.row >= 0))
    failed = group.appends.kind[seen.sender[sent]] == Kind.FAILED
    aborted = group.extras.fate[seen.sender[sent]] == Fate.ABORTED
    uncommitted = group.extras.isolation[seen.row[sent]] == READ_UNCOMMITTED
    bad[sent] = (failed & ~(aborted & uncommitted)) | (aborted & group.committed[seen.row[sent]])
    return _read_record(group, "failed_append_visible", bad, "no record of an append that failed", True)


def _unordered(group: PartitionLog) -> Finding | None:
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
        seen=f"operation {reads.op_id[row[i]]} returned offset {reads.offset[i]} before "
        f"{reads.offset[i + 1]}",
    )


def _outside(group: PartitionLog) -> Finding | None:
    reads, row = group.reads, group.read_of_record
    no_end = np.iinfo(np.int64).max
    stable = np.where(group.committed & (group.stable >= 0), group.stable, no_end)
    end = np.minimum(np.where(group.strong, reads.end, no_end), stable)
    begin = np.maximum(reads.position, group.log_start)
    bad = np.flatnonzero((reads.offset < begin[row]) | (reads.offset >= end[row]))
    if not len(bad):
        return None
    i = int(bad[0])
    r = row[i]
    bounds = f"[{max(begin[r], 0)}, {end[r] if end[r] < no_end else 'any end'})"
    return group.finding(
        "read_outside_bounds",
        offset=int(reads.offset[i]),
        operations=(int(reads.op_id[r]),),
        expected=f"records within {bounds}",
        seen=f"operation {reads.op_id[r]} returned offset {reads.offset[i]}",
    )


def _epoch_regressed(group: PartitionLog) -> Finding | None:
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
    return pair_finding(
        group, "epoch_regressed_in_log", pair, "leader epochs that do not decrease along the offsets"
    )


_RULES: tuple[Callable[[PartitionLog], Finding | None], ...] = (
    _inconsistent,
    _duplicate,
    _phantom,
    _failed_visible,
    _unordered,
    skipped_offset,
    _outside,
    torn_batch,
    _epoch_regressed,
)
