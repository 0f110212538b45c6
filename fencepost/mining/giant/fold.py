"""The log check of one giant history: row groups fold into partial slots, slot ranges merge them, one pass
over the ranges' summaries ends it.

Owns: which files carry what between the steps. Must not know: Spark (a `Spread` runs the steps), rules
(checkers/log/ranges). Every step may be done again, by another process: files come into place by a rename.

    FOLDER/pieces/LOG/NUMBER/PLACE-BATCH-LOW.npy    partial slots of one batch from offset LOW on, for slot
                                                    range NUMBER of a log
    FOLDER/soft/LOG/PLACE-BATCH.npy                 its appends that are not firm
    FOLDER/soft/LOG.*.npy                           those of all batches, in the order of `decide.Soft`
"""

import hashlib
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.log.accounts import Totals, weakness
from fencepost.checkers.log.appends_and_reads import NOT_ACKNOWLEDGED, log_columns
from fencepost.checkers.log.log_rules import Profile, rules_of
from fencepost.checkers.log.ranges.around import Wanted
from fencepost.checkers.log.ranges.decide import Demands, RangeSummary, Soft, decide, ranges_of, soft_of
from fencepost.checkers.log.ranges.partial import (
    MOVED,
    NOT_OF_SLOTS,
    RANGE_SLOTS,
    SPARSE,
    TWICE,
    partial_of,
    slots_of,
)
from fencepost.checkers.log.ranges.slots import LONG_AGO
from fencepost.checkers.log.ranges.verdict import reasons_of, sessions_in_question, twice, unread
from fencepost.checkers.operation_columns import Array, columns_of_table
from fencepost.mining.giant.giant_rows import CODED, COLUMNS, LogKey, Spread, own_batches
from fencepost.mining.giant.repeats import overlap, repeated_id, repeated_value
from fencepost.mining.inputs.contradictions import contradictions
from fencepost.mining.inputs.ungrouped_parts import Giant
from fencepost.traces.trace import Trace

SOFT_PARTS = ("rows", "by_value", "sorted_values", "with_offset", "told_offset")


@frozen(kw_only=True, eq=False)
class Share:
    """What one batch says about one log, in addition to its files; fields without a comment as in
    ranges.Partial."""

    # Topic and partition.
    log: LogKey
    demands: tuple[bool, bool, bool]
    ranges: tuple[int, ...]
    gaps: Array
    values: tuple[int, ...]
    shown: tuple[int, ...]
    span: tuple[int, ...]
    largest: int
    # Number of its row group.
    place: int
    ids: Array
    offsets: Array
    sessions: Array
    regressed: Array
    reasons: tuple[str, ...]


@frozen(kw_only=True, eq=False)
class Folded:
    """The result of one batch."""

    operations: int
    # Lowest and highest operation number.
    ids: tuple[int, int]
    # How the trace contradicts itself; "" if it does not.
    broken: str
    # How many of each.
    appends: int
    acknowledged: int
    reads: int
    # Whether any operation is about logs.
    asked: bool
    shares: tuple[Share, ...]


def key_of_log(log: LogKey) -> str:
    """A log's name in names of files."""
    return hashlib.sha256(f"{log[0]}-{log[1]}".encode()).hexdigest()[:16]


def _save(path: Path, array: Array) -> None:
    """Save completely or not at all, also if another process writes the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(descriptor, "wb") as file:
        np.save(file, array, allow_pickle=False)
    Path(temporary).replace(path)


@frozen(kw_only=True)
class Fold:
    """The first step, over one row group after another."""

    giant: Giant
    # The trace without operations.
    header: Trace
    folder: Path
    width: int = RANGE_SLOTS

    def __call__(self, number: int) -> list[Folded]:
        """Row group `number` of the giant. Raises TraceError."""
        rows = own_batches(self.giant, self.giant.places[number], COLUMNS, CODED)
        return [
            self._fold(number, f"{number:06}-{count:06}", table)
            for count, table in enumerate(rows)
            if table.num_rows
        ]

    def _fold(self, place: int, name: str, table: pa.Table) -> Folded:
        operations = columns_of_table(table, (self.header,))
        columns = log_columns(operations)
        rules = rules_of(columns)
        shares = []
        for g in range(columns.groups):
            log = columns.topics[columns.topic[g]], int(columns.partition[g])
            own = partial_of(operations, columns, rules, g, width=self.width)
            key = key_of_log(log)
            for number in own.ranges:
                low, slots = slots_of(columns, rules, g, number, width=self.width)
                _save(self.folder / "pieces" / key / str(number) / f"{name}-{low}.npy", slots)
            if len(own.soft):
                _save(self.folder / "soft" / key / f"{name}.npy", own.soft)
            timed = rules.profile[g] != Profile.CONTENT
            shares.append(
                Share(
                    log=log,
                    demands=(bool(timed), bool(rules.dense[g]), bool(rules.duplicates[g])),
                    ranges=own.ranges,
                    gaps=own.gaps,
                    values=own.values,
                    shown=own.shown,
                    span=own.span,
                    place=place,
                    largest=own.largest,
                    ids=own.ids,
                    offsets=own.offsets,
                    sessions=own.sessions,
                    regressed=own.regressed,
                    reasons=own.reasons,
                )
            )
        ids = operations.op_id
        return Folded(
            operations=len(ids),
            ids=(int(ids.min()), int(ids.max())),
            broken=contradictions(table).get(self.giant.trace_id, ""),
            appends=len(columns.appends.kind),
            acknowledged=int((columns.acknowledged != NOT_ACKNOWLEDGED).sum()),
            reads=len(columns.reads.op_id),
            asked=bool(columns.asked.any()),
            shares=tuple(shares),
        )


def _soft_path(folder: Path, log: LogKey, part: str) -> Path:
    return folder / "soft" / f"{key_of_log(log)}.{part}.npy"


def _keep_soft(folder: Path, log: LogKey) -> None:
    parts = sorted((folder / "soft" / key_of_log(log)).glob("*.npy"))
    soft = soft_of(np.load(path, mmap_mode="r", allow_pickle=False) for path in parts)
    for part in SOFT_PARTS:
        _save(_soft_path(folder, log, part), getattr(soft, part))


def soft_at(folder: Path, log: LogKey) -> Soft:
    """The arrays of a log as `_keep_soft` saved them; mapped, so that tasks share the memory. folder: of the
    files; log: its key."""
    return Soft(
        **{
            part: np.load(_soft_path(folder, log, part), mmap_mode="r", allow_pickle=False)
            for part in SOFT_PARTS
        }
    )


@frozen(kw_only=True, eq=False)
class Decide:
    """The second step, over one slot range of one log after another."""

    folder: Path
    log: LogKey
    demands: Demands
    gaps: Array

    def __call__(self, number: int) -> RangeSummary:
        """Slot range `number`."""
        return decide(number, self.pieces(number), soft_at(self.folder, self.log), self.gaps, self.demands)

    def pieces(self, number: int) -> Iterator[tuple[int, Array]]:
        """All partial slots that touch the range's window, with the offset of the first."""
        reach = self.demands.margin // self.demands.width + 1 if self.demands.margin else 0
        for near in range(number - reach, number + reach + 1):
            for path in sorted((self.folder / "pieces" / key_of_log(self.log) / str(near)).glob("*.npy")):
                yield int(path.stem.rsplit("-", 1)[1]), np.load(path, mmap_mode="r", allow_pickle=False)


@frozen(kw_only=True, eq=False)
class LogWork:
    """A suspicious log; fields without a comment as in Decide."""

    log: LogKey
    # Summaries of its ranges, in order.
    summaries: tuple[RangeSummary, ...]
    demands: Demands
    gaps: Array
    # Suspicious slots that no range covers.
    wanted: Wanted
    # Shares of its batches.
    shares: tuple[Share, ...]

    def places(self, wanted: Wanted) -> list[int]:
        """The row groups that may hold any of it."""
        return sorted({share.place for share in self.shares if _may_hold(share, wanted)})


def _any_in(span: tuple[int, ...], numbers: Array) -> bool:
    """Whether any of the numbers (sorted) is between the two."""
    return bool(span) and bool(np.searchsorted(numbers, span[0]) < np.searchsorted(numbers, span[1], "right"))


def _may_hold(share: Share, wanted: Wanted) -> bool:
    return (
        bool(len(wanted.sessions) and len(share.sessions))
        or bool(np.isin(share.ids, wanted.ids).any())
        or _any_in(share.span, wanted.offsets)
        or any(_any_in(span, wanted.values) for span in (share.values, share.shown))
        or _any_in(share.values, wanted.senders)
    )


@frozen(kw_only=True)
class Found:
    """The result of the steps."""

    operations: int
    # How the trace contradicts itself; "" if it does not.
    broken: str
    # The value that was sent twice to a log although values are unique; "" if none.
    repeated: str
    # Why logs need a closer look.
    reasons: dict[LogKey, tuple[str, ...]]
    # Logs about which slots can say more.
    suspects: tuple[LogWork, ...]
    # Why an Ok would mean nothing; "" if it would.
    weak: str
    # How many ranges were merged.
    ranges: int


def judge_ranges(giant: Giant, header: Trace, folder: Path, spread: Spread) -> Found:
    """All steps. folder: for what they leave to each other. Raises TraceError."""
    width = RANGE_SLOTS
    fold = Fold(giant=giant, header=header, folder=folder, width=width)
    folded = [one for many in spread(fold, range(len(giant.places))) for one in many]
    broken = next((one.broken for one in folded if one.broken), "")
    if not broken and overlap([one.ids for one in folded]):
        broken = repeated_id(giant, [one.ids for one in folded], spread)
    shares: dict[LogKey, list[Share]] = defaultdict(list)
    for one in folded:
        for share in one.shares:
            shares[share.log].append(share)
    reasons: dict[LogKey, tuple[str, ...]] = {}
    suspects, ranges, repeated = [], 0, ""
    missing: list[tuple[str, int, int, int]] = []
    later = False
    for log, mine in sorted(shares.items()):
        local = [reason for share in mine for reason in share.reasons]
        values = [share.values for share in mine if share.values]
        if TWICE in local or (header.unique_values and overlap(values)):
            again = repeated_value(giant, log, values, spread)
            local += [TWICE] * bool(again)
            repeated = repeated or again
        numbers, demands = _demands(mine, width)
        if len(numbers) > 64 + 2 * len({number for share in mine for number in share.ranges}):
            local.append(SPARSE)
        if NOT_OF_SLOTS.isdisjoint(local):
            _keep_soft(folder, log)
            gaps = np.concatenate([share.gaps for share in mine])
            summaries = spread(Decide(folder=folder, log=log, demands=demands, gaps=gaps), numbers)
            ranges += len(summaries)
            sessions = np.concatenate([share.sessions for share in mine])
            local += reasons_of(summaries, soft_at(folder, log), sessions, demands)
            lacking = unread(summaries)
            if len(lacking):
                local += [MOVED] * (demands.duplicates and not header.plan)
                missing.append((*log, len(lacking), int(lacking[0])))
                later |= any(found.ended != LONG_AGO for found in summaries)
            if local:
                wanted = _wanted(mine, twice(summaries, soft_at(folder, log)), sessions)
                suspects.append(
                    LogWork(
                        log=log,
                        summaries=tuple(summaries),
                        demands=demands,
                        gaps=gaps,
                        wanted=wanted,
                        shares=tuple(mine),
                    )
                )
        reasons[log] = tuple(dict.fromkeys(local))
    operations = sum(one.operations for one in folded)
    return Found(
        operations=operations,
        broken=broken,
        repeated=repeated,
        reasons=reasons,
        suspects=tuple(suspects),
        weak=weakness(header, _totals(folded), missing, later=later),
        ranges=ranges,
    )


def _totals(folded: Sequence[Folded]) -> Totals:
    return Totals(
        appends=sum(one.appends for one in folded),
        acknowledged=sum(one.acknowledged for one in folded),
        reads=sum(one.reads for one in folded),
        asked=any(one.asked for one in folded),
    )


def _wanted(shares: Sequence[Share], offsets: Array, sessions: Array) -> Wanted:
    """What a closer look begins with, in addition to slots. offsets: of appends that are in the log twice."""
    none = np.empty(0, np.int64)
    regressed = [share.regressed for share in shares]
    return Wanted(
        offsets=np.unique(np.concatenate([offsets, *(share.offsets for share in shares)])),
        values=none,
        senders=none,
        ids=np.unique(np.concatenate([share.ids for share in shares])),
        sessions=np.unique(np.concatenate([sessions_in_question(sessions), *regressed]), axis=0),
    )


def _demands(shares: Sequence[Share], width: int) -> tuple[list[int], Demands]:
    """The ranges to merge, and what to ask of them."""
    timed, dense, duplicates = shares[0].demands
    largest = max(share.largest for share in shares)
    touched = {number for share in shares for number in share.ranges}
    numbers, demands = ranges_of(
        touched, timed=timed, dense=dense, duplicates=duplicates, width=width, largest=largest
    )
    return numbers, demands
