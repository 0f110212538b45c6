"""Step 6, two more chains of bounds: the log start and the last stable offset.

Owns their bounds and certificates. q_k is the time at which the log start passed offset k, s_k that at which
the last stable offset did. Both only rise, and neither is above the end, so p_k <= q_k and p_k <= s_k (their
upper bounds are upper bounds of p_k too: `bounds.shows`). Only trusted claims count, because a new leader's
log start and high watermark lag after an election. A record that a read_committed read returned is below the
last stable offset, without any claim. While a transaction is being written, its records are not below it.
"""

from collections.abc import Iterator

import numpy as np

from fencepost.checkers.durations import moment
from fencepost.checkers.log.bounds import Bounds, Pair, worst_pair
from fencepost.checkers.log.extras import Fate
from fencepost.checkers.log.log_rules import Profile
from fencepost.checkers.log.one_log import PartitionLog
from fencepost.checkers.log.parts import gather
from fencepost.checkers.operation_columns import Array
from fencepost.checkers.verdict import Finding


def side_findings(group: PartitionLog) -> Iterator[Finding]:
    """At most one finding for each anomaly of log start and last stable offset."""
    if not group.special:
        return
    for name, claimed, anomaly in (
        ("log start", group.extras.log_start, "log_start_above_end"),
        ("last stable offset", group.extras.stable, "last_stable_above_end"),
    ):
        yield from _above_end(group, name, claimed, anomaly)
    if not group.timed:
        return
    yield from _log_start_regressed(group)
    if group.profile is Profile.STRONG:
        yield from _read_below_log_start(group)
    yield from _last_stable_regressed(group)
    yield from _open_transaction(group)


def _claims(group: PartitionLog, claimed: Array, *, passed: bool) -> Bounds:
    """Bounds from trusted claims of an offset x: x - 1 is passed at completion (upper bounds); x is not
    passed at invocation (lower bounds)."""
    reads = group.reads
    row = np.flatnonzero(claimed >= 0)
    if passed:
        index = group.below_loss(claimed[row] - 1)
        bounds = Bounds(index=index, time=reads.completion[row], clock=reads.clock[row], row=row)
        return bounds.where(index >= 0)
    bounds = Bounds(index=claimed[row], time=reads.invoke[row], clock=reads.clock[row], row=row)
    return bounds.where(~group.loss_allowed(bounds.index))


def _stable_shown(group: PartitionLog) -> Bounds:
    """Upper bounds of the last stable offset: trusted claims, and the last record of each read_committed
    read."""
    reads = group.reads
    claims = _claims(group, group.stable, passed=True)
    row = np.flatnonzero((np.diff(reads.start) > 0) & group.committed)
    every = np.flatnonzero(np.diff(reads.start) > 0)
    highest = (
        np.maximum.reduceat(reads.offset, reads.start[every])[group.committed[every]] if len(every) else row
    )
    index = group.below_loss(highest)
    shown = Bounds(index=index, time=reads.completion[row], clock=reads.clock[row], row=row).where(index >= 0)
    names = ("index", "time", "clock", "row")
    return Bounds(**{n: np.concatenate((getattr(claims, n), getattr(shown, n))) for n in names})


def _above_end(group: PartitionLog, name: str, claimed: Array, anomaly: str) -> Iterator[Finding]:
    reads = group.reads
    above = np.flatnonzero((reads.end >= 0) & (claimed > reads.end))
    if len(above):
        r = int(above[0])
        yield group.finding(
            anomaly,
            offset=int(claimed[r]),
            operations=(int(reads.op_id[r]),),
            expected=f"a {name} at or below the end {reads.end[r]}",
            seen=f"operation {reads.op_id[r]} claimed both, with {name} {claimed[r]}",
        )


def _log_start_regressed(group: PartitionLog) -> Iterator[Finding]:
    low, high = (_claims(group, group.log_start, passed=passed) for passed in (False, True))
    pair = worst_pair(low, high, group.uncertainty)
    yield from _regressed(group, pair, group.log_start, "log start", "log_start_regressed")


def _last_stable_regressed(group: PartitionLog) -> Iterator[Finding]:
    pair = worst_pair(_claims(group, group.stable, passed=False), _stable_shown(group), group.uncertainty)
    yield from _regressed(group, pair, group.stable, "last stable offset", "last_stable_offset_regressed")


def _regressed(
    group: PartitionLog, pair: Pair | None, claimed: Array, name: str, anomaly: str
) -> Iterator[Finding]:
    if pair is None:
        return
    reads, later, earlier = group.reads, pair.low, pair.high
    yield group.finding(
        anomaly,
        offset=int(claimed[later]),
        operations=(int(reads.op_id[later]), int(reads.op_id[earlier])),
        expected=f"no {name} below {_reach(group, earlier, claimed)}, which operation "
        f"{reads.op_id[earlier]} had shown by "
        f"{reads.completion[earlier]}",
        seen=f"operation {reads.op_id[later]}, invoked at {moment(reads.invoke[later])}, claimed {name} "
        f"{claimed[later]}",
        uncertainty=pair.uncertainty,
    )


def _reach(group: PartitionLog, read: int, claimed: Array) -> int:
    """The log start or last stable offset that a read showed, as text."""
    records = group.reads.offset[group.reads.start[read] : group.reads.start[read + 1]]
    shown = [int(o) + 1 for o in records] if claimed is group.stable and group.committed[read] else []
    return max([int(claimed[read]), *shown])


def _read_below_log_start(group: PartitionLog) -> Iterator[Finding]:
    """In the strong profile: a read that began after a log start was shown returned a record below it."""
    reads = group.reads
    row = np.flatnonzero(np.diff(reads.start) > 0)
    lowest = np.minimum.reduceat(reads.offset, reads.start[row]) if len(row) else row
    low = Bounds(index=lowest, time=reads.invoke[row], clock=reads.clock[row], row=row)
    pair = worst_pair(
        low.where(~group.loss_allowed(lowest)),
        _claims(group, group.log_start, passed=True),
        group.uncertainty,
    )
    if pair is None:
        return
    r, earlier = pair.low, pair.high
    offset = int(reads.offset[reads.start[r] : reads.start[r + 1]].min())
    yield group.finding(
        "read_below_log_start",
        offset=offset,
        operations=(int(reads.op_id[r]), int(reads.op_id[earlier])),
        expected=f"no record below {group.log_start[earlier]}, the log start that operation "
        f"{reads.op_id[earlier]} had shown by "
        f"{reads.completion[earlier]}",
        seen=f"operation {reads.op_id[r]}, invoked at {moment(reads.invoke[r])}, returned offset {offset}",
        uncertainty=pair.uncertainty,
    )


def _open_transaction(group: PartitionLog) -> Iterator[Finding]:
    """A read_committed read, or a claimed last stable offset, beyond a record of a transaction that was still
    being written."""
    placed, extras, appends, ends = group.placements, group.extras, group.appends, group.ends
    known = np.flatnonzero(placed.append >= 0)
    known = known[extras.fate[placed.append[known]] == Fate.COMMITTED]
    start, bound = gather(ends.start, ends.of[placed.append[known]])
    of = np.repeat(known, np.diff(start))
    low = Bounds(
        index=placed.base[of], time=ends.time[bound], clock=ends.clock[bound], row=np.arange(len(of))
    )
    pair = worst_pair(low, _stable_shown(group), group.uncertainty)
    if pair is None:
        return
    a, r = int(placed.append[of[pair.low]]), pair.high
    reads = group.reads
    base = int(placed.base[placed.append == a].min())
    yield group.finding(
        "open_transaction_read",
        offset=base,
        operations=(int(reads.op_id[r]), int(appends.op_id[a]), int(extras.transaction[a])),
        expected=f"nothing at or above {base} for read_committed readers before transaction "
        f"{extras.transaction[a]} could end at {low.time[pair.low]}",
        seen=f"operation {reads.op_id[r]} had gone to {_reach(group, r, group.stable)} by "
        f"{reads.completion[r]}",
        uncertainty=pair.uncertainty,
    )
