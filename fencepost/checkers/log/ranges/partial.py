"""One batch's share of one log: partial slots by range, and everything that slots cannot express.

Owns `Partial`. Must not know files, or how shares are combined. Reasons say why the log needs a closer look.
As in the screen of the batch form, they may suspect a correct log but must never miss a wrong one.
"""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.accounts import leader_may_lose
from fencepost.checkers.log.appends_and_reads import LEADER, Appends, Kind, LogColumns, Reads
from fencepost.checkers.log.log_rules import Profile, Rules
from fencepost.checkers.log.ranges.slots import empty, fold
from fencepost.checkers.log.session import regressions
from fencepost.checkers.operation_columns import FUNCTIONS, Array, OperationColumns
from fencepost.traces.operations import Function

RANGE_SLOTS = 1 << 21
"""Offsets of one range, the unit of merging: its slots take 128 MiB."""
SPARSEST = 16
"""A log with fewer than one record in this many ranges' worth of offsets is checked by sorting instead (as in
log.spans)."""
LARGEST_BATCH = 1 << 16
"""A log with an append of more records is checked as a whole. Reason: a range is merged with this much of its
neighbours."""
MOST_GAPS = 1 << 20
"""A log with sparse offsets and more gaps in the reads of one batch is checked as a whole."""
_TXN = FUNCTIONS.index(Function.TXN)

LOSS, REPEATS, SPECIAL, TXNS = (
    "loss is allowed in it",
    "its values are not unique",
    "retention, compaction, transactions or last stable offsets below the end",
    "transactions",
)
SPARSE, LARGE, MANY, TWICE, UNKEPT, MOVED = (
    "offsets too sparse for slots",
    "batches too large",
    "too many gaps in its reads",
    "a value sent twice",
    "records that only their leader acknowledged",
    "records that no read shows where they were acknowledged, though they may occur twice",
)
NOT_OF_SLOTS = frozenset((LOSS, REPEATS, SPECIAL, TXNS, SPARSE, LARGE, MANY, TWICE, UNKEPT, MOVED))
"""Reasons that make the slots of a log useless."""
S_VALUE, S_INVOKE, S_FAILED, S_COUNT, S_NTH, S_BASE, S_EPOCH, S_CLOCK = range(8)
"""Columns of `Partial.soft`, one row per record of an append that is not firm: its value; the append's
invocation, whether it failed, its number of records, the index of this record; the acknowledged base offset
and leader epoch (-1 if none); the clock."""


@frozen(kw_only=True, eq=False)
class Partial:
    """One batch's share of one log."""

    # The number of appends and reads.
    rows: int
    # Numbers of the slot ranges that it refers to.
    ranges: tuple[int, ...]
    # The records of appends that are not firm; an append's records are contiguous.
    soft: Array
    # Ranges [start, stop) that reads passed over.
    gaps: Array
    # The lowest and highest value that it sent (empty: none).
    values: tuple[int, ...]
    # The lowest and highest value that it read (empty: none).
    shown: tuple[int, ...]
    # The lowest and highest offset that it refers to or passes over (empty: none).
    span: tuple[int, ...]
    # Records of the largest append.
    largest: int
    # Op ids of reads that are wrong by themselves: all reads that are out of order, and the first of every
    # other kind.
    ids: Array
    # Offsets of reads that are out of order, which slots may not contain.
    offsets: Array
    # Per (process, session, epoch): the first invocation, the last completion, and the lowest and highest end
    # and position.
    sessions: Array
    # The (process, session, epoch) that go back within the batch.
    regressed: Array
    # Reasons for suspicion.
    reasons: tuple[str, ...]


def rows_of_group(columns: LogColumns, g: int) -> tuple[Appends, Reads]:
    """The appends and reads of one group, numbered from 0.

    Args:
        columns: the logs.
        g: the group.

    Returns:
        views of its rows.
    """
    a, b = columns.appends.first[g : g + 2].tolist()
    r, s = columns.reads.first[g : g + 2].tolist()
    appends, reads = columns.appends, columns.reads
    v, w = appends.start[a], appends.start[b]
    i, j = reads.start[r], reads.start[s]
    cut = {name: column[a:b] for name, column in appends._asdict().items()}
    cut |= {
        "first": _sealed(0, b - a),
        "start": _begun(appends.start[a : b + 1] - v),
        "value": appends.value[v:w],
    }
    non_empty = {name: column[r:s] for name, column in reads._asdict().items()}
    non_empty |= {"first": _sealed(0, s - r), "start": _begun(reads.start[r : s + 1] - i)}
    non_empty |= {name: getattr(reads, name)[i:j] for name in ("offset", "value", "record_epoch")}
    return Appends(**cut), Reads(**non_empty)


def _sealed(*values: int) -> Array:
    return _begun(np.array(values, np.int64))


def _begun(array: Array) -> Array:
    """Read-only like all columns, so that kernels compile once."""
    array.flags.writeable = False
    return array


def partial_of(
    operations: OperationColumns, columns: LogColumns, rules: Rules, g: int, *, width: int = RANGE_SLOTS
) -> Partial:
    """The share of group `g`. width: offsets of a range."""
    appends, reads = rows_of_group(columns, g)
    profile, dense = Profile(int(rules.profile[g])), bool(rules.dense[g])
    strong = (reads.end >= 0) & (reads.strong | (profile is Profile.STRONG))
    reasons = list(_plain_reasons(operations, columns, rules, g))
    wrong, gaps, offsets = _of_reads(reads, strong, dense)
    reasons += wrong
    session = profile is Profile.SESSION
    regressed = (
        _regressed(reads, columns.traces[columns.trace[g]].concurrent_processes) if session else _NO_KEYS
    )
    reasons += ["a session that goes back"] * bool(len(regressed))
    counts = np.diff(appends.start)
    largest = int(counts.max(initial=0))
    ranges = _ranges(appends, reads, strong, width)
    items = len(appends.value) + len(reads.offset) + 2 * len(reads.op_id)
    if len(ranges) > 64 + SPARSEST * items // width:
        ranges, reasons = np.empty(0, np.int64), [*reasons, SPARSE]
    if largest > LARGEST_BATCH or len(gaps) > MOST_GAPS:
        reasons.append(LARGE if largest > LARGEST_BATCH else MANY)
        gaps = gaps[:0]
    values = appends.value
    increasing = bool((np.diff(values) > 0).all())
    if not increasing and bool(rules.unique[g]) and len(np.unique(values)) < len(values):
        reasons.append(TWICE)
    return Partial(
        rows=len(appends.kind) + len(reads.op_id),
        ranges=tuple(ranges.tolist()),
        soft=_soft(appends, counts),
        gaps=gaps,
        values=_extremes(values),
        shown=_extremes(reads.value),
        span=_span(appends, reads, strong),
        largest=largest,
        ids=np.array([op_id for ids in wrong.values() for op_id in ids], np.int64),
        offsets=offsets,
        sessions=_sessions(reads) if session else np.empty((0, 9), np.int64),
        regressed=regressed,
        reasons=tuple(reasons),
    )


def _extremes(numbers: Array) -> tuple[int, ...]:
    return (int(numbers.min()), int(numbers.max())) if len(numbers) else ()


def _span(appends: Appends, reads: Reads, strong: Array) -> tuple[int, ...]:
    """As Partial.span."""
    placed = np.flatnonzero((appends.kind != Kind.FAILED) & (appends.base >= 0))
    base, ends = appends.base[placed], reads.end[strong]
    last = base + np.diff(appends.start)[placed] - 1
    began = reads.position[reads.position >= 0]
    return _extremes(np.concatenate((base, last, reads.offset, began, ends - 1, ends)))


def _plain_reasons(operations: OperationColumns, columns: LogColumns, rules: Rules, g: int) -> Iterator[str]:
    """Reasons that slots cannot express, and violations within this batch."""
    trace = int(columns.trace[g])
    if rules.keyed[g]:
        yield LOSS
    if not rules.unique[g]:
        yield REPEATS
    if columns.extras.special[g] and not _ends_only(columns, g):
        yield SPECIAL
    if ((operations.function == _TXN) & (operations.trace == trace)).any():
        yield TXNS
    a, b = columns.appends.first[g : g + 2].tolist()
    if (columns.acknowledged[a:b] == LEADER).any() and not leader_may_lose(columns.traces[trace]):
        yield UNKEPT


def _ends_only(columns: LogColumns, g: int) -> bool:
    """Whether the log is special only by last stable offsets that equal the end that the read claims as well.
    They say nothing that the ends do not say. Clients read committed records by default, also where nothing
    is transactional."""
    extras = columns.extras
    if extras.compacted[g] or extras.transactional[g] or extras.licence[g] > 0:
        return False
    r, s = columns.reads.first[g : g + 2].tolist()
    stable = extras.stable[r:s]
    return bool(((stable < 0) | (stable == columns.reads.end[r:s])).all())


_NO_KEYS = np.empty((0, 3), np.int64)


def _regressed(reads: Reads, concurrent: bool) -> Array:
    """The (process, session, epoch) with an end or a position that goes back within the batch."""
    found = []
    for column in (reads.end, reads.position):
        rows = np.flatnonzero((reads.epoch >= 0) & (column >= 0))
        key = np.array((reads.process[rows], reads.session[rows], reads.epoch[rows]), np.int64)
        at_once = np.full(len(rows), concurrent)
        earlier = regressions(key, reads.invoke[rows], reads.completion[rows], column[rows], at_once)
        found.append(key[:, earlier >= 0].T)
    return np.unique(np.concatenate([_NO_KEYS, *found]), axis=0)


def _of_reads(reads: Reads, strong: Array, dense: bool) -> tuple[dict[str, list[int]], Array, Array]:
    """Op ids of reads that are wrong by themselves (as Partial.ids), the gaps that reads pass over, and the
    offsets of reads out of order."""
    non_empty = np.flatnonzero(np.diff(reads.start) > 0)
    reader = np.repeat(np.arange(len(reads.op_id)), np.diff(reads.start))
    first, position = reads.offset[reads.start[non_empty]], reads.position[non_empty]
    inner = np.ones(max(len(reads.offset) - 1, 0), np.bool_)
    inner[reads.start[non_empty][1:] - 1] = False
    step = np.diff(reads.offset)
    wrong: dict[str, list[int]] = {}
    fallen = np.unique(reader[:-1][inner & (step <= 0)])
    if len(fallen):
        wrong["a read out of order"] = reads.op_id[fallen].tolist()
    beyond = (reads.offset < reads.position[reader]) | (strong[reader] & (reads.offset >= reads.end[reader]))
    if beyond.any():
        wrong["a read outside its bounds"] = [int(reads.op_id[reader[np.argmax(beyond)]])]
    late = (position >= 0) & (first > position)
    jumped = np.flatnonzero(inner & (step > 1))
    if dense and (late.any() or len(jumped)):
        passing = min(*non_empty[late][:1].tolist(), *reader[jumped][:1].tolist(), len(reads.op_id) - 1)
        wrong["a read that passes over offsets"] = [int(reads.op_id[passing])]
    start = np.concatenate((position[late], reads.offset[jumped] + 1))
    stop = np.concatenate((first[late], reads.offset[jumped + 1]))
    gaps = np.column_stack((start, stop)).astype(np.int64)
    return wrong, gaps, np.unique(reads.offset[np.isin(reader, fallen)])


def _ranges(appends: Appends, reads: Reads, strong: Array, width: int) -> Array:
    """Numbers of the ranges that contain anything."""
    firm = np.flatnonzero(appends.kind == Kind.FIRM)
    non_empty = np.flatnonzero(np.diff(reads.start) > 0)
    first, last = reads.offset[reads.start[non_empty]], reads.offset[reads.start[non_empty + 1] - 1]
    wide = np.flatnonzero((last // width - first // width > 1) | (last < first))
    inner = [reads.offset[reads.start[r] : reads.start[r + 1]] for r in non_empty[wide].tolist()]
    ends = reads.end[strong]
    base = appends.base[firm]
    reach = base + np.diff(appends.start)[firm] - 1
    between = [
        np.arange(a, b + 1) * width
        for a, b in zip((base // width).tolist(), (reach // width).tolist(), strict=True)
        if b - a > 1
    ]
    touched = (
        np.concatenate((base, reach, first, last, ends, np.maximum(ends - 1, 0), *inner, *between)) // width
    )
    if not len(touched):
        return touched
    low, high = int(touched.min()), int(touched.max())
    if high - low > len(touched):
        return np.unique(touched)
    present = np.zeros(high - low + 1, np.bool_)  # no sort: millions of rows are in a few ranges
    present[touched - low] = True
    return np.flatnonzero(present) + low


def _soft(appends: Appends, counts: Array) -> Array:
    rows = np.flatnonzero(appends.kind != Kind.FIRM)
    count = counts[rows]
    owner = np.repeat(rows, count)
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    failed = appends.kind[owner] == Kind.FAILED
    base = np.where(failed, -1, appends.base[owner])
    return np.column_stack(
        (
            appends.value[appends.start[owner] + nth],
            appends.invoke[owner],
            failed,
            counts[owner],
            nth,
            base,
            appends.epoch[owner],
            appends.clock[owner],
        )
    ).astype(np.int64)


def _sessions(reads: Reads) -> Array:
    """Process, session, epoch; first invocation, last completion; lowest and highest end; lowest and highest
    position (of known ones)."""
    rows = np.flatnonzero(reads.epoch >= 0)
    if not len(rows):
        return np.empty((0, 9), np.int64)
    key = np.array((reads.process[rows], reads.session[rows], reads.epoch[rows]), np.int64)
    keys, of = np.unique(key, axis=1, return_inverse=True)
    of = of.reshape(-1)
    highest, lowest = int(np.iinfo(np.int64).max), int(np.iinfo(np.int64).min)
    found = np.full((keys.shape[1], 6), highest, np.int64)
    found[:, (1, 3, 5)] = lowest
    every = np.ones(len(rows), np.bool_)
    ends, positions = reads.end[rows], reads.position[rows]
    for column, value, non_empty in (
        (0, reads.invoke[rows], every),
        (2, ends, ends >= 0),
        (4, positions, positions >= 0),
    ):
        np.minimum.at(found[:, column], of[non_empty], value[non_empty])
    for column, value, non_empty in (
        (1, reads.completion[rows], every),
        (3, ends, ends >= 0),
        (5, positions, positions >= 0),
    ):
        np.maximum.at(found[:, column], of[non_empty], value[non_empty])
    return np.column_stack((keys.T, found))


def slots_of(
    columns: LogColumns, rules: Rules, g: int, number: int, *, width: int = RANGE_SLOTS
) -> tuple[int, Array]:
    """The partial slots of one range of a group.

    Args:
        columns: the logs.
        rules: the rules that apply to each group.
        g: the group.
        number: the range.
        width: offsets of a range.

    Returns:
        the offset of the first slot, and the slots from the lowest used one to the highest.
    """
    appends, reads = rows_of_group(columns, g)
    all_strong = bool(rules.profile[g] == Profile.STRONG)
    low, high = _extent(appends, reads, all_strong, number * width, (number + 1) * width)
    slots = empty(max(high - low, 0))
    fold(appends, reads, all_strong, low, slots)
    return low, slots


@compiled
def _extent(appends: Appends, reads: Reads, all_strong: bool, start: int, stop: int) -> tuple[int, int]:
    """The lowest offset within [start, stop) that an operation refers to, and the one after the highest."""
    low, high = stop, start
    for a in range(len(appends.kind)):
        if appends.kind[a] == 0:
            begin, end = appends.base[a], appends.base[a] + appends.start[a + 1] - appends.start[a]
            if begin < stop and end > start:
                low, high = min(low, max(begin, start)), max(high, min(end, stop))
    for r in range(len(reads.op_id)):
        if reads.start[r + 1] > reads.start[r]:
            begin, end = reads.offset[reads.start[r]], reads.offset[reads.start[r + 1] - 1] + 1
            if begin < stop and end > start:
                low, high = min(low, max(begin, start)), max(high, min(end, stop))
        if reads.end[r] >= 0 and (reads.strong[r] or all_strong):
            begin, end = max(reads.end[r] - 1, 0), reads.end[r] + 1
            if begin < stop and end > start:
                low, high = min(low, max(begin, start)), max(high, min(end, stop))
    return low, high
