"""The evidence about one log: statements "this value is at this offset", and the batches that follow from
them.

Owns these two relations, which the rules of content and time share. Must not know the rules. Nothing here is
indexed by offset: everything is sorted, so offsets may have any size.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
from attrs import frozen

from fencepost.checkers.log.appends_and_reads import Appends, Kind, Reads
from fencepost.checkers.log.same_keys import first_rows
from fencepost.checkers.operation_columns import Array
from fencepost.checkers.sorting import place_of
from fencepost.checkers.verdict import Finding


@frozen(kw_only=True, eq=False, slots=False)
class Evidence:
    """One row per statement "this value is at this offset"."""

    # The offset.
    offset: Array
    # The value id.
    value: Array
    # The leader epoch; -1 if not known.
    epoch: Array
    # The operation that made the statement.
    op_id: Array
    # The row of the append that sent the value (-1: none).
    sender: Array
    # The index of the record in that append.
    nth: Array
    # The row of the read that showed it (-1: an acknowledgement).
    row: Array
    # Whether loss is allowed at this offset.
    keyed: Array
    # Whether an append that is not firm made the statement. It then holds only for its (epoch, offset).
    soft: Array

    @cached_property
    def plain(self) -> Array:
        """The rows that hold for their offset whatever the epoch."""
        rows: Array = np.flatnonzero(~self.keyed & ~self.soft)
        return rows

    @cached_property
    def first_plain(self) -> Array:
        """For each plain row, the first plain row at its offset; both as positions in `plain`."""
        return first_rows(self.offset[self.plain])


@frozen(kw_only=True, eq=False)
class Placements:
    """One row per batch that is in the log where no loss is allowed, in the order of base offsets.

    Attributes:
        append: the row of its append (-1: not known).
        last: the offset of its last record.
        acknowledged: whether its append is firm and was acknowledged with this base offset.
    """

    base: Array
    last: Array
    append: Array
    acknowledged: Array

    def slot_of(self, offset: Array) -> tuple[Array, Array]:
        """Base and last offset of the batch at each offset; the offset itself if there is no batch."""
        if not len(self.base):
            return offset, offset
        at = np.maximum(np.searchsorted(self.base, offset, side="right") - 1, 0)
        inside = (self.base[at] <= offset) & (offset <= self.last[at])
        return np.where(inside, self.base[at], offset), np.where(inside, self.last[at], offset)


class LogRows(Protocol):
    """The rows of one log, as one_log.py takes them out of the columns."""

    @property
    def appends(self) -> Appends:
        """Its appends."""
        ...

    @property
    def reads(self) -> Reads:
        """Its reads."""
        ...

    @property
    def append_of_value(self) -> Array:
        """The append row of each value."""
        ...

    @property
    def read_of_record(self) -> Array:
        """The read row of each record that was read."""
        ...

    @property
    def standing(self) -> Array:
        """For each append whether its records may be in the log."""
        ...

    @property
    def unique(self) -> bool:
        """Whether each value was sent once."""
        ...

    @property
    def evidence(self) -> Evidence:
        """The statements of its rows about offsets."""
        ...

    def loss_allowed(self, offset: Array) -> Array:
        """Which offsets may be lost."""
        ...

    def finding(
        self, anomaly: str, *, offset: int, operations: tuple[int, ...], expected: str, seen: str
    ) -> Finding:
        """A finding about this log.

        Args:
            anomaly: its name.
            offset: the offset that it is about.
            operations: op ids of the proof, the convicting ones first.
            expected, seen: one clause each.

        Returns:
            the finding.
        """
        ...


def evidence_of(group: LogRows) -> Evidence:
    """The evidence from acknowledgements and reads of a log."""
    appends, reads = group.appends, group.reads
    with_offset = (appends.kind != Kind.FAILED) & (appends.base >= 0)
    with_offset &= (appends.kind == Kind.FIRM) | (appends.epoch >= 0)
    sent = np.flatnonzero(with_offset[group.append_of_value])
    by = group.append_of_value[sent]
    nth = sent - appends.start[by]
    offset = np.concatenate((appends.base[by] + nth, reads.offset))
    sender, sender_nth = _senders(group, by, appends.base[by] + nth, appends.value[sent])
    shown = group.read_of_record
    return Evidence(
        offset=offset,
        value=np.concatenate((appends.value[sent], reads.value)),
        epoch=np.concatenate((appends.epoch[by], reads.record_epoch)),
        op_id=np.concatenate((appends.op_id[by], reads.op_id[shown])),
        sender=np.concatenate((by, sender)),
        nth=np.concatenate((nth, sender_nth)),
        row=np.concatenate((np.full(len(by), -1), shown)),
        keyed=group.loss_allowed(offset),
        soft=np.concatenate((appends.kind[by] != Kind.FIRM, np.zeros(len(shown), np.bool_))),
    )


def _senders(group: LogRows, by: Array, told_offset: Array, told_value: Array) -> tuple[Array, Array]:
    """The sender of each record that was read: the earliest append of that value that did not fail, else one
    that failed. If values repeat: preferably the firm append that was acknowledged with this offset."""
    appends, values = group.appends, group.reads.value
    order = np.argsort(appends.value, kind="stable")
    sent = appends.value[order]
    if (sent[1:] == sent[:-1]).any():
        failed = appends.kind[group.append_of_value] == Kind.FAILED
        order = np.lexsort((appends.invoke[group.append_of_value], failed, appends.value))
    at = place_of(sent, values)
    found = at >= 0
    flat = np.where(found, order[at] if len(order) else -1, -1)
    sender = np.where(found, group.append_of_value[flat] if len(order) else -1, -1)
    nth = np.where(found, flat - appends.start[sender], 0)
    if not group.unique:
        firm = appends.kind[by] == Kind.FIRM
        exact = {(o, v): (a, n) for o, v, a, n in zip(
            told_offset[firm].tolist(), told_value[firm].tolist(), by[firm].tolist(),
            (told_offset - appends.base[by])[firm].tolist(), strict=True)}  # fmt: skip
        for i, key in enumerate(zip(group.reads.offset.tolist(), values.tolist(), strict=True)):
            sender[i], nth[i] = exact.get(key, (sender[i], nth[i]))
    return sender, nth


def placements_of(group: LogRows) -> Placements:
    """The batches that follow from the evidence."""
    seen = group.evidence
    appends = group.appends
    rows = seen.plain
    sender = seen.sender[rows]
    acknowledged = seen.row[rows] < 0
    known = sender >= 0
    whole = np.zeros(len(rows), np.bool_)
    whole[known] = acknowledged[known] | (group.unique & group.standing[sender[known]])
    if not group.unique and len(appends.kind):  # a read of a firm append's own offset identifies that append
        whole |= (
            (sender >= 0)
            & (appends.base[sender] + seen.nth[rows] == seen.offset[rows])
            & (appends.kind[sender] == Kind.FIRM)
        )
    base = np.where(whole, seen.offset[rows] - seen.nth[rows], seen.offset[rows])
    count = (
        np.where(whole, np.diff(appends.start)[sender], 1)
        if len(appends.kind)
        else np.ones(len(rows), np.int64)
    )
    append = np.where(whole, sender, -1)
    first = first_rows(append)  # acknowledgements come first, and all of one append give one base
    new = np.flatnonzero((append < 0) | (base != base[first]) | (first == np.arange(len(rows))))
    base, last, append, acknowledged = base[new], (base + count - 1)[new], append[new], acknowledged[new]
    order = np.lexsort((~acknowledged, append, last, base))  # of equal ones, the acknowledged one is first
    base, last, append = base[order], last[order], append[order]
    kept = ~group.loss_allowed(last)
    kept[1:] &= (np.diff(base) != 0) | (np.diff(last) != 0) | (np.diff(append) != 0)
    return Placements(
        base=base[kept], last=last[kept], append=append[kept], acknowledged=acknowledged[order][kept]
    )


def conflicts(keys: tuple[Array, ...], what: Array, first: Array | None = None) -> Iterator[tuple[int, int]]:
    """Pairs of rows with equal keys and different `what`.

    Args:
        keys: of the rows.
        what: in which rows with equal keys may differ.
        first: for each row the first one with the same first key, if it is known.

    Returns:
        row numbers in the order of the keys; at least one pair for each key with such rows.
    """
    first = first_rows(keys[0]) if first is None else first
    suspect = np.zeros(len(what), np.bool_)
    suspect[first[what[first] != what]] = True
    rows = np.flatnonzero(suspect[first])
    if not len(rows):
        return
    order = rows[np.lexsort((what[rows], *(key[rows] for key in reversed(keys))))]
    for at in np.flatnonzero(_equal_neighbours(keys, order) & (what[order][1:] != what[order][:-1])).tolist():
        yield int(order[at]), int(order[at + 1])


def _equal_neighbours(keys: tuple[Array, ...], order: Array) -> Array:
    """For each row but the first, in this order, whether its keys are those of the row before."""
    same = np.ones(len(order) - 1, np.bool_)
    for key in keys:
        same &= key[order][1:] == key[order][:-1]
    return same


def how_of(group: LogRows, i: int) -> str:
    """Evidence `i` of `group` as text."""
    seen = group.evidence
    verb = "was acknowledged: value" if seen.row[i] < 0 else "read value"
    epoch = f" (leader epoch {seen.epoch[i]})" if seen.epoch[i] >= 0 else ""
    return (
        f"operation {seen.op_id[i]} {verb} {seen.value[i]} {'is ' if seen.row[i] < 0 else ''}at offset "
        f"{seen.offset[i]}{epoch}"
    )


def pair_finding(group: LogRows, anomaly: str, pair: tuple[int, int], expected: str) -> Finding:
    """A finding about two pieces of evidence.

    Args:
        group: the log.
        anomaly: its name.
        pair: the rows of the evidence.
        expected: one clause.

    Returns:
        the finding.
    """
    i, j = pair
    seen = group.evidence
    return group.finding(
        anomaly,
        offset=int(seen.offset[i]),
        operations=(int(seen.op_id[i]), int(seen.op_id[j])),
        expected=expected,
        seen=f"{how_of(group, i)}; {how_of(group, j)}",
    )
