"""One log taken out of the columns for a closer look: its rows, its rules, and who sent and who showed what.

Owns the relations that the rules of `content`, `chain` and `holes` share. Must not know the rules themselves. Nothing here addresses by
offset: everything is sorted, so any offsets will do.
"""

import numpy as np
from attrs import field, frozen

from fencepost.checkers.columns import Array
from fencepost.checkers.log.columns import Appends, Kind, LogColumns, Reads
from fencepost.checkers.log.rules import Profile, Rules, loss_ranges
from fencepost.checkers.verdict import Finding

CHECK = "log"


@frozen(kw_only=True, eq=False)
class Evidence:
    """One row per statement "this value stood at this offset". sender: the append row that sent the value (-1: nobody), nth: which of its
    records; row: the read row that showed it (-1: an acknowledgement); keyed: loss is allowed at that offset; soft: said by an append that is
    not firm, so it holds only under its (epoch, offset)."""

    offset: Array
    value: Array
    epoch: Array
    op_id: Array
    sender: Array
    nth: Array
    row: Array
    keyed: Array
    soft: Array


@frozen(kw_only=True, eq=False)
class Placements:
    """One row per batch that stands in the log where no loss is allowed, in order of base. append: its row (-1: a record whose append cannot be
    told); last: the offset of its last record; acknowledged: its append is firm and was told this base."""

    base: Array
    last: Array
    append: Array
    acknowledged: Array

    def slot_of(self, offset: Array) -> tuple[Array, Array]:
        """Base and last offset of the batch that holds each offset; the offset itself where none does."""
        if not len(self.base):
            return offset, offset
        at = np.maximum(np.searchsorted(self.base, offset, side="right") - 1, 0)
        inside = (self.base[at] <= offset) & (offset <= self.last[at])
        return np.where(inside, self.base[at], offset), np.where(inside, self.last[at], offset)


@frozen(kw_only=True, eq=False)
class Group:
    """The log of one partition in one trace."""

    topic: str
    partition: int
    profile: Profile
    dense: bool
    duplicates: bool
    unique: bool
    uncertainty: int
    loss: list[tuple[int, int]]
    appends: Appends
    reads: Reads
    append_of_value: Array = field(init=False)
    """For each sent value (flat), its append row."""
    read_of_record: Array = field(init=False)
    """For each record read (flat), its read row."""
    strong: Array = field(init=False)
    """Which reads claim an end that may be trusted."""
    evidence: Evidence = field(init=False)
    placements: Placements = field(init=False)

    def __attrs_post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        reads = self.reads
        put("append_of_value", np.repeat(np.arange(len(self.appends.kind)), np.diff(self.appends.start)))
        put("read_of_record", np.repeat(np.arange(len(reads.op_id)), np.diff(reads.start)))
        put("strong", (reads.end >= 0) & (reads.strong | (self.profile is Profile.STRONG)))
        put("evidence", _evidence(self))
        put("placements", _placements(self))

    @property
    def timed(self) -> bool:
        """Is anything demanded of real time?"""
        return self.profile is not Profile.CONTENT

    def loss_allowed(self, offset: Array) -> Array:
        """Which offsets lie in a range whose loss is allowed."""
        allowed = np.zeros(len(offset), np.bool_)
        for start, end in self.loss:
            allowed |= (start <= offset) & (offset < end)
        return allowed

    def below_loss(self, offset: Array) -> Array:
        """Each offset, moved down to the nearest one where no loss is allowed; -1 if there is none."""
        moved = offset.copy()
        for start, end in reversed(self.loss):
            moved[(start <= moved) & (moved < end)] = start - 1
        return moved

    def finding(
        self,
        anomaly: str,
        *,
        offset: int,
        operations: tuple[int, ...],
        expected: str,
        seen: str,
        uncertainty: int = -1,
    ) -> Finding:
        """A finding about this log; an operation that convicts itself is named once."""
        return Finding(
            anomaly=anomaly,
            check=CHECK,
            expected=expected,
            seen=seen,
            topic=self.topic,
            partition=self.partition,
            offset=offset,
            operations=tuple(dict.fromkeys(operations)),
            uncertainty_ns=uncertainty,
        )


def group_of(columns: LogColumns, rules: Rules, g: int) -> Group:
    """Group `g`, its rows numbered from 0."""
    a, b = columns.appends.first[g : g + 2].tolist()
    r, s = columns.reads.first[g : g + 2].tolist()
    appends, reads = columns.appends, columns.reads
    v, w = appends.start[a], appends.start[b]
    i, j = reads.start[r], reads.start[s]
    flat = {"offset", "value", "record_epoch"}
    return Group(
        topic=columns.topics[columns.topic[g]],
        partition=int(columns.partition[g]),
        profile=Profile(int(rules.profile[g])),
        dense=bool(rules.dense[g]),
        duplicates=bool(rules.duplicates[g]),
        unique=bool(rules.unique[g]),
        uncertainty=int(rules.uncertainty[g]),
        loss=loss_ranges(columns, g),
        appends=Appends(
            **{
                name: getattr(appends, name)[a:b]
                for name in Appends._fields
                if name not in ("first", "start", "value")
            },
            first=np.array([0, b - a]),
            start=appends.start[a : b + 1] - v,
            value=appends.value[v:w],
        ),
        reads=Reads(
            **{
                name: getattr(reads, name)[r:s]
                for name in Reads._fields
                if name not in ("first", "start", *flat)
            },
            **{name: getattr(reads, name)[i:j] for name in sorted(flat)},
            first=np.array([0, s - r]),
            start=reads.start[r : s + 1] - i,
        ),
    )


def value_sent_twice(group: Group) -> str:
    """Where values are unique: which one two appends sent ("" if none)."""
    values = group.appends.value
    order = np.argsort(values, kind="stable")
    twice = np.flatnonzero(values[order][1:] == values[order][:-1])
    if not group.unique or not len(twice):
        return ""
    first, second = group.appends.op_id[group.append_of_value[order[twice[0] : twice[0] + 2]]]
    return f"value {values[order[twice[0]]]} was sent twice (operations {first} and {second}) though values are said to be unique"


def _evidence(group: Group) -> Evidence:
    appends, reads = group.appends, group.reads
    told = np.flatnonzero((appends.kind != Kind.FAILED) & (appends.base >= 0))
    told = told[(appends.kind[told] == Kind.FIRM) | (appends.epoch[told] >= 0)]
    sent = np.flatnonzero(np.isin(group.append_of_value, told))
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


def _senders(group: Group, by: Array, told_offset: Array, told_value: Array) -> tuple[Array, Array]:
    """Who sent each record that was read: the earliest append of that value that did not fail (else one that did); where values repeat,
    rather the firm append that was told that very offset."""
    appends, values = group.appends, group.reads.value
    failed = appends.kind[group.append_of_value] == Kind.FAILED
    order = np.lexsort((appends.invoke[group.append_of_value], failed, appends.value))
    at = np.searchsorted(appends.value[order], values)
    found = at < len(order)
    found[found] = appends.value[order[at[found]]] == values[found]
    flat = np.where(found, order[np.minimum(at, len(order) - 1)] if len(order) else -1, -1)
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


def _placements(group: Group) -> Placements:
    seen = group.evidence
    appends = group.appends
    rows = np.flatnonzero(~seen.keyed & ~seen.soft)
    sender = seen.sender[rows]
    acknowledged = seen.row[rows] < 0
    whole = (sender >= 0) & (acknowledged | (group.unique & (appends.kind[sender] != Kind.FAILED)))
    if not group.unique:  # a read of a firm append's own offset names that append
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
    table = np.unique(np.array((base, base + count - 1, append, ~acknowledged), np.int64), axis=1)
    kept = np.ones(table.shape[1], np.bool_)
    kept[1:] = (np.diff(table[:3], axis=1) != 0).any(
        axis=0
    )  # acknowledged placements sort before merely shown ones
    base, last, append, unacknowledged = table[:, kept]
    clear = ~group.loss_allowed(last)
    return Placements(
        base=base[clear], last=last[clear], append=append[clear], acknowledged=unacknowledged[clear] == 0
    )
