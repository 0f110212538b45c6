"""Steps 1 and 7: the content of each offset, without times.

Owns the rules about content and leader epochs. Those about batches and skipped offsets are in `batches` and
`skips`. Must not know times. There is one function per anomaly. It gives every place where
its rule is broken, and the one to be reported first.
"""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from fencepost.checkers.log.appends_and_reads import Kind
from fencepost.checkers.log.batches import torn_batches
from fencepost.checkers.log.evidence import conflicts, how_of, pair_finding
from fencepost.checkers.log.extras import Fate
from fencepost.checkers.log.one_log import PartitionLog, sent_again
from fencepost.checkers.log.same_keys import first_rows
from fencepost.checkers.log.skips import skipped_offsets
from fencepost.checkers.operation_columns import Array
from fencepost.checkers.statements import READ_UNCOMMITTED
from fencepost.checkers.verdict import Finding


def content_findings(group: PartitionLog) -> Iterator[Finding]:
    """At most one finding for each anomaly of content."""
    for rule in _RULES:
        yield from islice(rule(group), 1)


def content_offsets(group: PartitionLog, most: int) -> tuple[list[int], bool]:
    """Where the rules about content are broken.

    Args:
        group: the log.
        most: of each rule, at most this many places.

    Returns:
        the offsets, and whether these are all.
    """
    found = [[finding.offset for finding in islice(rule(group), most)] for rule in _RULES]
    return [offset for offsets in found for offset in offsets], all(len(one) < most for one in found)


def _conflicting_evidence(
    group: PartitionLog, key: str, what: str, code: Array, first: Array
) -> Iterator[tuple[int, int]]:
    """Two pieces of evidence that agree in `key` and differ in `what`. If loss is allowed, they must have the
    same leader epoch. code: equal where `key` is; first: of each plain row the first one with the same."""
    seen = group.evidence
    plain = seen.plain
    for i, j in conflicts((getattr(seen, key)[plain],), getattr(seen, what)[plain], first):
        yield int(plain[i]), int(plain[j])
    if len(plain) == len(seen.offset):
        return  # no two of them agree in `key` and differ, so neither do two of one epoch
    dated = np.flatnonzero(seen.epoch >= 0)
    first = first_rows(code[dated])
    for i, j in conflicts((getattr(seen, key)[dated], seen.epoch[dated]), getattr(seen, what)[dated], first):
        yield int(dated[i]), int(dated[j])


def _inconsistent(group: PartitionLog) -> Iterator[Finding]:
    seen = group.evidence
    for pair in _conflicting_evidence(group, "offset", "value", seen.offset, seen.first_plain):
        yield pair_finding(group, "inconsistent_offsets", pair, "one value at each offset")


def _duplicate(group: PartitionLog) -> Iterator[Finding]:
    if group.duplicates or not group.unique:
        return
    code = _value_codes(group)
    first = first_rows(code[group.evidence.plain])
    for pair in _conflicting_evidence(group, "value", "offset", code, first):
        yield pair_finding(group, "duplicate", pair, "each value at one offset")


def _value_codes(group: PartitionLog) -> Array:
    """A number for the value of each piece of evidence, equal for equal values; without large gaps if each
    value was sent once: its place among the values that were sent."""
    seen = group.evidence
    if len(sent_again(group)):
        return seen.value
    strange = np.flatnonzero(seen.sender < 0)
    code: Array = group.appends.start[seen.sender] + seen.nth
    if len(strange):
        code[strange] = -1 - np.unique(seen.value[strange], return_inverse=True)[1].reshape(-1)
    return code


def _read_records(
    group: PartitionLog, anomaly: str, bad: Array, expected: str, appends: bool
) -> Iterator[Finding]:
    """Findings about the read records that are `bad` (a mask over evidence)."""
    seen = group.evidence
    rows = np.flatnonzero(bad & (seen.row >= 0))
    for i in rows[np.argsort(seen.offset[rows], kind="stable")].tolist():
        sender = [int(group.appends.op_id[seen.sender[i]])] if appends else []
        what = f"; its append (operation {sender[0]}) failed" if sender else "; no append sent it"
        yield group.finding(
            anomaly,
            offset=int(seen.offset[i]),
            operations=(int(seen.op_id[i]), *sender),
            expected=expected,
            seen=how_of(group, i) + what,
        )


def _phantom(group: PartitionLog) -> Iterator[Finding]:
    return _read_records(
        group, "phantom_record", group.evidence.sender < 0, "only records that some client sent", False
    )


def _failed_visible(group: PartitionLog) -> Iterator[Finding]:
    """Records of failed appends. For an aborted transaction, only reads that did not ask for uncommitted
    records count."""
    seen = group.evidence
    bad = np.zeros(len(seen.sender), np.bool_)
    sent = np.flatnonzero((seen.sender >= 0) & (seen.row >= 0))
    failed = group.appends.kind[seen.sender[sent]] == Kind.FAILED
    aborted = group.extras.fate[seen.sender[sent]] == Fate.ABORTED
    uncommitted = group.extras.isolation[seen.row[sent]] == READ_UNCOMMITTED
    bad[sent] = (failed & ~(aborted & uncommitted)) | (aborted & group.committed[seen.row[sent]])
    return _read_records(group, "failed_append_visible", bad, "no record of an append that failed", True)


def _unordered(group: PartitionLog) -> Iterator[Finding]:
    reads, row = group.reads, group.read_of_record
    for i in np.flatnonzero((row[1:] == row[:-1]) & (reads.offset[1:] <= reads.offset[:-1])).tolist():
        yield group.finding(
            "unordered_read",
            offset=int(reads.offset[i + 1]),
            operations=(int(reads.op_id[row[i]]),),
            expected="the records of a read in increasing offset order",
            seen=f"operation {reads.op_id[row[i]]} returned offset {reads.offset[i]} before "
            f"{reads.offset[i + 1]}",
        )


def _outside(group: PartitionLog) -> Iterator[Finding]:
    reads, row = group.reads, group.read_of_record
    no_end = np.iinfo(np.int64).max
    stable = np.where(group.committed & (group.stable >= 0), group.stable, no_end)
    end = np.minimum(np.where(group.strong, reads.end, no_end), stable)
    begin = np.maximum(reads.position, group.log_start)
    for i in np.flatnonzero((reads.offset < begin[row]) | (reads.offset >= end[row])).tolist():
        r = row[i]
        bounds = f"[{max(begin[r], 0)}, {end[r] if end[r] < no_end else 'any end'})"
        yield group.finding(
            "read_outside_bounds",
            offset=int(reads.offset[i]),
            operations=(int(reads.op_id[r]),),
            expected=f"records within {bounds}",
            seen=f"operation {reads.op_id[r]} returned offset {reads.offset[i]}",
        )


def _epoch_regressed(group: PartitionLog) -> Iterator[Finding]:
    seen = group.evidence
    plain, first = seen.plain, seen.first_plain
    new = (first == np.arange(len(plain))) | (seen.epoch[plain] != seen.epoch[plain[first]])
    rows = plain[new & (seen.epoch[plain] >= 0)]
    rows = rows[np.lexsort((seen.epoch[rows], seen.offset[rows]))]
    if not len(rows):
        return
    offset, epoch = seen.offset[rows], seen.epoch[rows]
    highest = np.maximum.accumulate(epoch)
    below = np.searchsorted(offset, offset) - 1
    for j in np.flatnonzero((below >= 0) & (highest[np.maximum(below, 0)] > epoch)).tolist():
        i = int(np.flatnonzero(epoch[: below[j] + 1] == highest[below[j]])[0])
        pair = (int(rows[i]), int(rows[j]))
        yield pair_finding(
            group, "epoch_regressed_in_log", pair, "leader epochs that do not decrease along the offsets"
        )


_RULES: tuple[Callable[[PartitionLog], Iterator[Finding]], ...] = (
    _inconsistent,
    _duplicate,
    _phantom,
    _failed_visible,
    _unordered,
    skipped_offsets,
    _outside,
    torn_batches,
    _epoch_regressed,
)
