"""One log taken out of the columns for a closer look: its rows, its rules, and derived columns that every
rule needs.

Owns the value that the rules of `content`, `skips`, `chain`, `side_chains` and `holes` share. Must not know
the rules themselves.
"""

from functools import cached_property
from typing import Any

import numpy as np
from attrs import field, frozen

from fencepost.checkers.log.appends_and_reads import Appends, Kind, LogColumns, Reads
from fencepost.checkers.log.evidence import Evidence, Placements, evidence_of, placements_of
from fencepost.checkers.log.extras import LONG_AGO, PER_APPEND, PER_READ, Extras, Fate
from fencepost.checkers.log.log_rules import Profile, Rules, loss_ranges
from fencepost.checkers.log.log_transactions import Ends
from fencepost.checkers.operation_columns import NONE, Array
from fencepost.checkers.statements import READ_COMMITTED
from fencepost.checkers.verdict import Finding

CHECK = "log"


@frozen(kw_only=True, eq=False)
class PartitionLog:
    """The log of one partition in one trace."""

    # The topic.
    topic: str
    # The partition.
    partition: int
    # The real-time profile that applies.
    profile: Profile
    # Whether every offset below the end holds a record.
    dense: bool
    # Whether records may occur twice.
    duplicates: bool
    # Whether each value was sent once.
    unique: bool
    # Clock uncertainty in nanoseconds.
    uncertainty: int
    # Ranges [start, end) of offsets that may be lost; disjoint, in order.
    loss: list[tuple[int, int]]
    # The appends, one group.
    appends: Appends
    # The reads, one group.
    reads: Reads
    # The extras of this group. Per append and per read, with default values if the log is not special.
    extras: Extras
    # Time bounds on the ends of transactions.
    ends: Ends
    # For each sent value (flat), its append row.
    append_of_value: Array = field(init=False)
    # For each record read (flat), its read row.
    read_of_record: Array = field(init=False)
    # Which appends may be in the log: those that did not fail, and those that failed with their transaction.
    standing: Array = field(init=False)
    # Which reads' claims may be trusted, if they make any.
    trusted: Array = field(init=False)
    # Which reads claim an end that may be trusted.
    strong: Array = field(init=False)
    # Which reads are read_committed.
    committed: Array = field(init=False)
    # For each read, the trusted log start that it claims; -1 if there is none.
    log_start: Array = field(init=False)
    # For each read, the trusted last stable offset that it claims; -1 if there is none.
    stable: Array = field(init=False)
    # For each read, the offset below which retention explains missing records.
    licence: Array = field()

    @append_of_value.default
    def _append_of_value(self) -> Array:
        return np.repeat(np.arange(len(self.appends.kind)), np.diff(self.appends.start))

    @read_of_record.default
    def _read_of_record(self) -> Array:
        return np.repeat(np.arange(len(self.reads.op_id)), np.diff(self.reads.start))

    @standing.default
    def _standing(self) -> Array:
        standing: Array = (self.appends.kind != Kind.FAILED) | (self.extras.fate == Fate.ABORTED)
        return standing

    @trusted.default
    def _trusted(self) -> Array:
        trusted: Array = self.reads.strong | (self.profile is Profile.STRONG)
        return trusted

    @strong.default
    def _strong(self) -> Array:
        strong: Array = (self.reads.end >= 0) & self.trusted
        return strong

    @committed.default
    def _committed(self) -> Array:
        committed: Array = self.extras.isolation == READ_COMMITTED
        return committed

    @log_start.default
    def _log_start(self) -> Array:
        return np.where(self.trusted, self.extras.log_start, NONE)

    @stable.default
    def _stable(self) -> Array:
        return np.where(self.trusted, self.extras.stable, NONE)

    @licence.default
    def _licence(self) -> Array:
        return np.where(self.log_start >= 0, self.log_start, self.extras.licence)

    @cached_property
    def evidence(self) -> Evidence:
        """The statements about offsets. Made on first use, because counting hardly ever needs them."""
        return evidence_of(self)

    @cached_property
    def placements(self) -> Placements:
        """The batches that follow from the evidence."""
        return placements_of(self)

    @property
    def special(self) -> bool:
        """Whether the extras matter for this log."""
        return bool(self.extras.special)

    @property
    def compacted(self) -> bool:
        """Whether older records of a key may be gone."""
        return bool(self.extras.compacted)

    @property
    def timed(self) -> bool:
        """Whether real-time rules apply."""
        return self.profile is not Profile.CONTENT

    def loss_allowed(self, offset: Array) -> Array:
        """Which offsets are in a range that may be lost."""
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
        """A finding about this log. An operation that convicts itself is named once.

        Args:
            anomaly: its name.
            offset: the offset that it is about.
            operations: op ids of the proof, the convicting ones first.
            expected, seen: one clause each.
            uncertainty: the clock uncertainty in nanoseconds that would explain it (-1: none).

        Returns:
            the finding.
        """
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


def group_of(columns: LogColumns, rules: Rules, g: int) -> PartitionLog:
    """Group `g`, with its rows numbered from 0."""
    a, b = columns.appends.first[g : g + 2].tolist()
    r, s = columns.reads.first[g : g + 2].tolist()
    appends, reads = columns.appends, columns.reads
    v, w = appends.start[a], appends.start[b]
    i, j = reads.start[r], reads.start[s]
    flat = {"offset", "value", "record_epoch"}
    return PartitionLog(
        extras=_extras_of(columns.extras, g, slice(a, b), slice(r, s)),
        ends=columns.ends._replace(of=columns.ends.of[a:b]),
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


def _extras_of(extras: Extras, g: int, appends: slice, reads: slice) -> Extras:
    """The extras of group `g`."""
    defaults = {"tombstone": False, "fate": Fate.PLAIN, "ended": LONG_AGO}
    values: dict[str, Any] = {"keys": extras.keys}
    for names, rows in ((PER_APPEND, appends), (PER_READ, reads)):
        for name in names:
            column = getattr(extras, name)
            count = rows.stop - rows.start
            values[name] = (
                column[rows] if extras.special[g] else np.full(count, defaults.get(name, NONE), column.dtype)
            )
    for name in ("special", "retention", "compacted", "transactional", "licence"):
        values[name] = getattr(extras, name)[g]
    return Extras(**values)


def value_sent_twice(group: PartitionLog) -> str:
    """If values must be unique: the contradiction by a value that two appends sent, both of which may be in
    the log ("" if none)."""
    again = sent_again(group)
    if not len(again):
        return ""
    first, second = group.appends.op_id[group.append_of_value[again[:2]]]
    return sent_twice(int(group.appends.value[again[0]]), int(first), int(second))


def sent_again(group: PartitionLog) -> Array:
    """If values must be unique: which of the sent values were sent before, each after the place of the one
    before it; in the order of values. An append that failed for certain sent nothing: an application may send
    its value again."""
    values = group.appends.value
    if not group.unique:
        return np.empty(0, np.int64)
    order = np.argsort(values, kind="stable")
    order = order[group.standing[group.append_of_value[order]]]
    twice = np.flatnonzero(values[order][1:] == values[order][:-1])
    return np.ravel(np.column_stack((order[twice], order[twice + 1])))


def sent_twice(value: int, first: int, second: int) -> str:
    """The text of a contradiction: values are claimed to be unique, but two operations sent one.

    Args:
        value: the value id.
        first, second: the op ids.

    Returns:
        one sentence.
    """
    return (
        f"value {value} was sent twice (operations {first} and {second}) though values are said to be unique"
    )
