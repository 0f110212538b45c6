"""The log check of one giant history: row groups fold into partial slots, slot ranges merge them, one pass over the ranges' summaries ends it.

Owns: which files carry what between the steps, and the two questions that are not about slots (is an operation or a value there twice?). Must not know: Spark
(a `Spread` runs the steps), rules (checkers/ranges). Every step may be done again, by another process: files come into place by a rename.

    FOLDER/pieces/LOG/NUMBER/PLACE-BATCH-LOW.npy    partial slots of one batch from offset LOW on, for slot range NUMBER of a log
    FOLDER/soft/LOG/PLACE-BATCH.npy                 its appends that are not firm
    FOLDER/soft/LOG.*.npy                           those of all batches, in the order of `decide.Soft`
"""

import hashlib
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from fencepost.checkers.columns import Array, columns_of_table
from fencepost.checkers.judges import CHECKS
from fencepost.checkers.log.columns import log_columns
from fencepost.checkers.log.rules import Profile, rules_of
from fencepost.checkers.ranges.decide import Demands, RangeSummary, Soft, decide, ranges_of, soft_of
from fencepost.checkers.ranges.partial import NOT_OF_SLOTS, RANGE_SLOTS, SPARSE, TWICE, partial_of, slots_of
from fencepost.checkers.ranges.verdict import reasons_of, twice
from fencepost.mining.contradictions import contradictions
from fencepost.mining.loose import Giant, Place, batches_of
from fencepost.traces.trace import Trace

T, R = TypeVar("T"), TypeVar("R")
Spread = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""spread(function, items): function(item) of each item, in order, somewhere."""
COLUMNS = list(CHECKS["log"].operation_columns)
IDS_AT_ONCE = 1 << 24
"""Operation numbers or values that are compared at once."""
SOFT_PARTS = ("rows", "by_value", "sorted_values", "told", "told_offset")
Log = tuple[str, int]
"""Topic and partition."""


@frozen(kw_only=True, eq=False)
class Share:
    """What one batch says of one log, beside its files. The rest as in ranges.Partial."""

    log: Log
    demands: tuple[bool, bool, bool]
    ranges: tuple[int, ...]
    gaps: Array
    values: tuple[int, ...]
    largest: int
    offsets: Array
    sessions: Array
    reasons: tuple[str, ...]


@frozen(kw_only=True, eq=False)
class Folded:
    """What one batch came to. ids: lowest and highest operation number; broken: how the trace contradicts itself ("" if it does not)."""

    operations: int
    ids: tuple[int, int]
    broken: str
    shares: tuple[Share, ...]


def key_of_log(log: Log) -> str:
    """A log's name in names of files."""
    return hashlib.sha256(f"{log[0]}-{log[1]}".encode()).hexdigest()[:16]


def _save(path: Path, array: Array) -> None:
    """Whole or not there, whoever else writes the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(descriptor, "wb") as file:
        np.save(file, array, allow_pickle=False)
    Path(temporary).replace(path)


CODED = ("function", "topic", "key", "argument", "isolation", "records.list.element.topic")
"""Columns of few words, that are numbers from the file on."""


def own_batches(
    giant: Giant, place: Place, columns: list[str], dictionary: tuple[str, ...] = ()
) -> Iterator[pa.Table]:
    """The giant's rows of a row group, few at a time. dictionary: columns to read so. Raises TraceError."""
    names = sorted({"trace_id", *columns})
    for batch in batches_of(place.path, "operations", place.group, names, dictionary=dictionary):
        rows = pa.Table.from_batches([batch])
        mine = rows.column("trace_id").to_numpy() == giant.trace_id
        yield rows if mine.all() else rows.filter(pa.array(mine))


@frozen(kw_only=True)
class Fold:
    """The first step, over one row group after another. header: the trace without operations."""

    giant: Giant
    header: Trace
    folder: Path
    width: int = RANGE_SLOTS

    def __call__(self, number: int) -> list[Folded]:
        """Row group `number` of the giant. Raises TraceError."""
        rows = own_batches(self.giant, self.giant.places[number], COLUMNS, CODED)
        return [
            self._fold(f"{number:06}-{count:06}", table) for count, table in enumerate(rows) if table.num_rows
        ]

    def _fold(self, name: str, table: pa.Table) -> Folded:
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
                    largest=own.largest,
                    offsets=own.offsets,
                    sessions=own.sessions,
                    reasons=own.reasons,
                )
            )
        ids = operations.op_id
        return Folded(
            operations=len(ids),
            ids=(int(ids.min()), int(ids.max())),
            broken=contradictions(table).get(self.giant.trace_id, ""),
            shares=tuple(shares),
        )


def _soft_path(folder: Path, log: Log, part: str) -> Path:
    return folder / "soft" / f"{key_of_log(log)}.{part}.npy"


def _keep_soft(folder: Path, log: Log) -> None:
    parts = sorted((folder / "soft" / key_of_log(log)).glob("*.npy"))
    soft = soft_of(np.load(path, mmap_mode="r", allow_pickle=False) for path in parts)
    for part in SOFT_PARTS:
        _save(_soft_path(folder, log, part), getattr(soft, part))


def soft_at(folder: Path, log: Log) -> Soft:
    """As `_keep_soft` left them; mapped, so that tasks share the memory."""
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
    log: Log
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
    """A suspected log. numbers: of its ranges; offsets: in question for what no range tells; the rest as in Decide."""

    log: Log
    numbers: tuple[int, ...]
    demands: Demands
    gaps: Array
    offsets: Array


@frozen(kw_only=True)
class Found:
    """What the steps came to. broken: how the trace contradicts itself; reasons: why logs need a closer look; suspects: those of which slots can tell more;
    ranges: how many were merged."""

    operations: int
    broken: str
    reasons: dict[Log, tuple[str, ...]]
    suspects: tuple[LogWork, ...]
    ranges: int


def judge_ranges(
    giant: Giant, header: Trace, folder: Path, spread: Spread, *, width: int = RANGE_SLOTS
) -> Found:
    """All steps. folder: for what they leave to each other. Raises TraceError."""
    fold = Fold(giant=giant, header=header, folder=folder, width=width)
    folded = [one for many in spread(fold, range(len(giant.places))) for one in many]
    broken = next((one.broken for one in folded if one.broken), "")
    if not broken and _overlap([one.ids for one in folded]):
        broken = _repeated_id(giant, folded, spread)
    shares: dict[Log, list[Share]] = defaultdict(list)
    for one in folded:
        for share in one.shares:
            shares[share.log].append(share)
    reasons: dict[Log, tuple[str, ...]] = {}
    suspects, ranges = [], 0
    for log, mine in sorted(shares.items()):
        local = [reason for share in mine for reason in share.reasons]
        if header.unique_values and _overlap([share.values for share in mine if share.values]):
            local += [TWICE] * _repeated_value(giant, log, mine, spread)
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
            offsets = np.unique(np.concatenate([twice(summaries), *(share.offsets for share in mine)]))
            if local:
                suspects.append(
                    LogWork(log=log, numbers=tuple(numbers), demands=demands, gaps=gaps, offsets=offsets)
                )
        reasons[log] = tuple(dict.fromkeys(local))
    operations = sum(one.operations for one in folded)
    return Found(
        operations=operations, broken=broken, reasons=reasons, suspects=tuple(suspects), ranges=ranges
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


def _overlap(spans: Sequence[tuple[int, ...]]) -> bool:
    """Whether two of these spans of numbers have any in common."""
    ordered = sorted(spans)
    return any(after[0] <= before[1] for before, after in pairwise(ordered))


def _spans(spans: Sequence[tuple[int, ...]], many: int) -> list[tuple[int, int]]:
    """[low, high) that hold about IDS_AT_ONCE of `many` numbers each."""
    low, high = min(span[0] for span in spans), max(span[1] for span in spans) + 1
    step = max(1, (high - low) // max(1, -(-many // IDS_AT_ONCE)))
    return [(start, min(start + step, high)) for start in range(low, high, step)]


def _repeated_id(giant: Giant, folded: Sequence[Folded], spread: Spread) -> str:
    spans = _spans([one.ids for one in folded], sum(one.operations for one in folded))
    firsts = [found for found in spread(partial(first_repeated_id, giant), spans) if found is not None]
    return f"operation {min(firsts)[1]} shares its op id with another operation" if firsts else ""


def first_repeated_id(giant: Giant, span: tuple[int, int]) -> tuple[int, int] | None:
    """(row, op id) of the first operation whose number, within [low, high), an earlier one has."""
    rows, ids, before = [], [], 0
    for place in giant.places:
        for table in own_batches(giant, place, ["op_id"]):
            found = table.column("op_id").to_numpy()
            inside = np.flatnonzero((found >= span[0]) & (found < span[1]))
            rows.append(inside + before)
            ids.append(found[inside])
            before += len(found)
    row, op_id = np.concatenate(rows), np.concatenate(ids)
    order = np.argsort(op_id, kind="stable")
    again = order[1:][np.diff(op_id[order]) == 0]
    return (int(row[again.min()]), int(op_id[again.min()])) if len(again) else None


def _repeated_value(giant: Giant, log: Log, shares: Sequence[Share], spread: Spread) -> bool:
    spans = _spans([share.values for share in shares if share.values], giant.operations)
    return any(spread(partial(some_repeated_value, giant, log), spans))


def some_repeated_value(giant: Giant, log: Log, span: tuple[int, int]) -> bool:
    """Whether two appends to the log sent the same value within [low, high)."""
    found = []
    for place in giant.places:
        for table in own_batches(giant, place, COLUMNS):
            columns = log_columns(
                columns_of_table(table.filter(pc.equal(table.column("function"), pa.scalar("append"))))
            )
            for g in range(columns.groups):
                if (columns.topics[columns.topic[g]], int(columns.partition[g])) == log:
                    a, b = columns.appends.first[g : g + 2].tolist()
                    values = columns.appends.value[columns.appends.start[a] : columns.appends.start[b]]
                    found.append(values[(values >= span[0]) & (values < span[1])])
    values = np.sort(np.concatenate(found))
    return bool((np.diff(values) == 0).any())
