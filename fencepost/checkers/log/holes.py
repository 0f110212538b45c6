"""Step 5, for dense offsets: can unknown appends that no read showed fill the holes below the known end in
time?

Owns the counting of holes and the bounded exact fit of batches. Must not know other anomalies of the log. An
unseen append can fill a hole if its invocation is not after the hole's deadline: the earliest upper bound at
or above the hole. So each candidate can fill all holes from some offset on. With single records, the j-th
hole needs j candidates that can fill it or an earlier hole; this condition suffices. With batches the problem
is bin packing: the count is necessary, and a search within `FIT_STEPS` decides or gives up.
"""

from collections.abc import Callable

import numpy as np
from attrs import frozen

from fencepost.checkers.log.appends_and_reads import Kind
from fencepost.checkers.log.bounds import Bounds, acknowledgements, shows
from fencepost.checkers.log.one_log import PartitionLog
from fencepost.checkers.operation_columns import Array
from fencepost.checkers.verdict import Finding

FIT_STEPS = 20_000
"""Steps of the search for an exact fit. Reason: ordinary logs need a few hundred."""

MAX_SEGMENTS = 200
"""With more runs of holes than this, no fit of batches is tried. Reason: the search goes as deep as there are
batches."""


@frozen(kw_only=True, eq=False)
class Holes:
    """The holes of a log and the appends that may fill them."""

    # First offset of each run of holes. A run has one deadline; runs are in order.
    start: Array
    # Number of holes in each run.
    length: Array
    # Whether a batch may continue into the run from the one before. True if only a claimed log start or last
    # stable offset separates them, not an end.
    joined: Array
    # Whether a batch may continue beyond the last run.
    open_ended: bool
    # Records of each candidate append.
    size: Array
    # Invocation time of each candidate in nanoseconds.
    invoke: Array
    # Clock of each candidate.
    clock: Array


def accounted(group: PartitionLog) -> bool:
    """Whether every offset below the known end must hold a record."""
    return group.dense and not group.duplicates and group.unique and not group.loss


def hole_finding(group: PartitionLog) -> tuple[Finding | None, str]:
    """A finding if the holes cannot be filled, and why this is undecided ("" if it is decided)."""
    return unfilled(group, _holes(group)) if accounted(group) else (None, "")


def unfilled(group: PartitionLog, holes: Holes) -> tuple[Finding | None, str]:
    """As `hole_finding`, for these holes. group: of its operations, only those matter that bound the time at
    which the log grew beyond a run."""
    if not len(holes.start):
        return None, ""
    reach = _reach(group, holes)
    fits = _fits(holes, reach(group.uncertainty))
    if fits is None:
        return None, f"{group.topic}-{group.partition}: too many ways to fit unknown batches into the holes"
    if fits:
        return None, ""
    return _finding(group, holes, reach), ""


def _holes(group: PartitionLog) -> Holes:
    appends, placed, reads = group.appends, group.placements, group.reads
    ends = reads.end[group.strong]
    beside = max(group.log_start.max(initial=0), group.stable.max(initial=0))  # neither is above the end
    firmly = int(max(placed.last.max(initial=-1) + 1, ends.max(initial=0)))
    known = max(firmly, int(beside))
    # Offsets where a run of holes may begin: after a batch, at a claimed end, at 0. covered: how far batches
    # reach before it.
    begin = _distinct(np.concatenate(([0], placed.last + 1, ends)))
    begin = begin[begin < known]
    covered = np.concatenate(([-1], np.maximum.accumulate(placed.last)))[
        np.searchsorted(placed.base, begin, side="right")
    ]
    begin = begin[covered < begin]
    stops = _distinct(np.concatenate((placed.base, ends, [known])))
    stop = stops[np.searchsorted(stops, begin, side="right")]
    open_ = (appends.kind == Kind.SOFT) & ~np.isin(np.arange(len(appends.kind)), placed.append)
    runs = ~np.isin(begin, placed.base)
    start, stop = _parted(begin[runs], stop[runs], np.concatenate((group.log_start, group.stable)))
    return Holes(
        start=start,
        length=stop - start,
        joined=~np.isin(start, begin),
        open_ended=known > firmly,
        size=np.diff(appends.start)[open_],
        invoke=appends.invoke[open_],
        clock=appends.clock[open_],
    )


def _distinct(values: Array) -> Array:
    """The values in order, each once. (np.unique hashes them first, which takes four times as long here.)"""
    ordered = np.sort(values)
    found: Array = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return found


def _parted(start: Array, stop: Array, cuts: Array) -> tuple[Array, Array]:
    """The runs [start, stop), split at the `cuts` that are inside one."""
    cuts = np.unique(cuts)
    run = np.searchsorted(start, cuts, side="right") - 1
    inside = (
        (run >= 0) & (cuts < stop[run]) & (cuts > start[run]) if len(start) else np.zeros(len(cuts), np.bool_)
    )
    starts = np.sort(np.concatenate((start, cuts[inside])))
    stops = np.sort(np.concatenate((stop, cuts[inside])))
    return starts, stops


def _reach(group: PartitionLog, holes: Holes) -> Callable[[int], Array]:
    """For a clock uncertainty, the first run of holes that each candidate can fill in time."""
    if not group.timed:
        return lambda uncertainty: np.zeros(len(holes.size), np.int64)
    parts = (acknowledgements(group), shows(group))
    names = ("index", "time", "clock", "row")
    high = Bounds(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def reach(uncertainty: int) -> Array:
        first = np.zeros(len(holes.size), np.int64)
        clocks = np.unique(holes.clock) if uncertainty else np.zeros(1, np.int64)
        for clock in clocks.tolist():
            mine = holes.clock == clock if uncertainty else np.ones(len(holes.size), np.bool_)
            slack = np.where(high.clock == clock, 0, 2 * uncertainty)
            deadline = _deadlines(high.index, high.time + slack, holes.start)
            first[mine] = np.searchsorted(deadline, holes.invoke[mine], side="left")
        return first

    return reach


def _deadlines(index: Array, time: Array, at: Array) -> Array:
    """For each offset in `at`, the earliest bound at or above it."""
    order = np.argsort(index, kind="stable")
    earliest = np.minimum.accumulate(time[order][::-1])[::-1]
    earliest = np.append(earliest, np.iinfo(np.int64).max)
    return earliest[np.searchsorted(index[order], at, side="left")]


def _counts_suffice(holes: Holes, first: Array) -> bool:
    """Whether, up to each run, there are at least as many records of candidates as holes."""
    supply = np.cumsum(np.bincount(first, weights=holes.size, minlength=len(holes.start) + 1))[
        : len(holes.start)
    ]
    return bool((supply >= np.cumsum(holes.length)).all())


def _fits(holes: Holes, first: Array) -> bool | None:
    """Whether candidates can fill all runs exactly. None if the search gives up."""
    if not _counts_suffice(holes, first):
        return False
    if (holes.size == 1).all():
        return True
    return _search(holes, first) if len(holes.start) <= MAX_SEGMENTS else None


def _search(holes: Holes, first: Array) -> bool | None:
    """Depth-first search: fill the runs in order, largest batches first, and remember states that failed.

    A state is (run, holes left in it, used candidates of each kind). Candidates of one size and reach are
    equivalent.
    """
    kinds, counts = np.unique(np.array((-holes.size, first)), axis=1, return_counts=True)
    sizes, reaches, supply = (-kinds[0]).tolist(), kinds[1].tolist(), counts.tolist()
    lengths, joined = holes.length.tolist(), holes.joined.tolist()
    failed: set[tuple[int, int, tuple[int, ...]]] = set()
    stack = [(0, lengths[0], tuple(supply))]
    for _ in range(FIT_STEPS):
        if not stack:
            return False
        state = stack.pop()
        if state in failed:
            continue
        failed.add(state)
        run, left, remaining = state
        if left == 0:
            if run + 1 == len(lengths):
                return True
            stack.append((run + 1, lengths[run + 1], remaining))
            continue
        for kind in reversed(range(len(sizes))):
            if remaining[kind] and reaches[kind] <= run:
                at, rest = run, left - sizes[kind]
                while rest < 0 and at + 1 < len(lengths) and joined[at + 1]:
                    at, rest = at + 1, rest + lengths[at + 1]
                if rest >= 0 or (holes.open_ended and at + 1 == len(lengths)):
                    rest = max(rest, 0)
                    stack.append((at, rest, (*remaining[:kind], remaining[kind] - 1, *remaining[kind + 1 :])))
    return None if stack else False


def _finding(group: PartitionLog, holes: Holes, reach: Callable[[int], Array]) -> Finding:
    first = reach(group.uncertainty)
    supply = np.cumsum(np.bincount(first, weights=holes.size, minlength=len(holes.start) + 1))[
        : len(holes.start)
    ]
    short = np.flatnonzero(supply < np.cumsum(holes.length))
    run = int(short[0]) if len(short) else len(holes.start) - 1
    offset, wanted, had = int(holes.start[run]), int(holes.length[: run + 1].sum()), int(supply[run])
    witness = _witness(group, offset)
    what = "and could fill them in time" if len(short) else "in batches that do not fit"
    return group.finding(
        "unaccounted_offset",
        offset=offset,
        operations=witness,
        expected=f"unknown appends for the {wanted} holes up to offset {offset + int(holes.length[run]) - 1}",
        seen=f"unknown appends of {had} records that no read showed {what}",
        uncertainty=_clears(group, holes, reach),
    )


def _witness(group: PartitionLog, offset: int) -> tuple[int, ...]:
    """The operation that first proved that the log reaches beyond `offset`."""
    candidates = []
    for bounds, relation in ((acknowledgements(group), group.appends), (shows(group), group.reads)):
        above = np.flatnonzero(bounds.index >= offset)
        if len(above):
            i = above[np.argmin(bounds.time[above])]
            candidates.append((int(bounds.time[i]), int(relation.op_id[bounds.row[i]])))
    return (min(candidates)[1],) if candidates else ()


def _clears(group: PartitionLog, holes: Holes, reach: Callable[[int], Array]) -> int:
    """The smallest uncertainty with which the holes can be filled, by bisection; -1 if there is none."""
    low = group.uncertainty
    times = np.concatenate((holes.invoke, group.appends.invoke, group.reads.completion))
    high = low + int(times.max(initial=0)) - int(min(times.min(initial=0), 0)) + 1
    if not group.timed or _fits(holes, reach(high)) is False:
        return -1
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(holes, reach(middle)) is False:
            low = middle
        else:
            high = middle
    return high
