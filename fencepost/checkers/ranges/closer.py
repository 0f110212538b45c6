"""A closer look at a log that is too large to be examined as a whole: few of its operations, examined by the plain rules.

Owns: the rounds until what is said of the certificates' operations is complete, and what may then be told. Must not know files: `Source` is where slots and
operations come from. A certificate is two operations and what they said, so it holds whatever else the log has; only `lost_write` says that no read
shows a record, and every read of the records in question is kept for it.
"""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from fencepost.checkers.columns import Array, OperationColumns
from fencepost.checkers.log.chain import chain_findings
from fencepost.checkers.log.columns import Kind, log_columns
from fencepost.checkers.log.content import content_findings
from fencepost.checkers.log.group import Group, group_of
from fencepost.checkers.log.rules import rules_of
from fencepost.checkers.ranges.around import KINDS, Near, Peaks, latest_of
from fencepost.checkers.verdict import Finding

ROUNDS = 4
"""Each adds the places of the certificates found in the one before; they are complete after one or two."""
MOST_KEPT = 1_000_000
"""Operations that are examined together."""


@frozen(kw_only=True, eq=False)
class Kept:
    """What one look through all operations finds for some offsets and values. ids: of operations; batches: `offsets` and the rest of the batches there;
    values: that the reads among them showed."""

    ids: Array
    batches: Array
    values: Array


@frozen(kw_only=True)
class Source:
    """Of one log. peaks(): of each range, in order; near(before): of each range; keep(offsets, values): see Kept; fetch(ids): these operations, in order."""

    peaks: Callable[[], Sequence[Peaks]]
    near: Callable[[Sequence[Peaks]], Sequence[Near]]
    keep: Callable[[Array, Array], Kept]
    fetch: Callable[[Array], OperationColumns]


def look_closer(source: Source, offsets: Array, log: tuple[str, int], *, timed: bool) -> tuple[Finding, ...]:
    """Findings that hold of the whole log; () where that cannot be told. offsets: that are in question for reasons of other places."""
    offsets = _in_question(source, offsets, timed=timed)
    none = np.empty(0, np.int64)
    for _ in range(ROUNDS):
        offsets = source.keep(offsets, none).batches
        shown = source.keep(offsets, none)
        kept = source.keep(offsets, shown.values)
        if len(kept.ids) > MOST_KEPT:
            return ()
        group = _group(source.fetch(kept.ids), log)
        if group is None:
            return ()
        findings = [*content_findings(group), *(chain_findings(group) if group.timed else ())]
        places = _places(group, findings)
        if np.isin(places, offsets).all():
            return tuple(findings)
        offsets = np.union1d(offsets, places)
    return ()


def _in_question(source: Source, offsets: Array, *, timed: bool) -> Array:
    """Those of all rules within ranges, and of the widest contradictions in time."""
    peaks = source.peaks()
    before = [latest_of([])]
    for one in peaks:
        before.append(latest_of([before[-1], one]))
    found = source.near(before[: len(peaks)])
    asked = [offset for one in found for offset in one.offsets]
    for then, one in zip(before, peaks, strict=False):
        if 0 <= one.first_epoch[0] < then.highest_epoch[0]:
            asked += [one.first_epoch[1], then.highest_epoch[1]]
    for kind in range(KINDS) if timed else ():
        gap, low, high = max(
            (one.widest[kind] for one in found), key=lambda widest: widest[0], default=(0, 0, 0)
        )
        asked += [low, high] if gap > 0 else []
    return np.union1d(offsets, np.array(asked, np.int64))


def _group(operations: OperationColumns, log: tuple[str, int]) -> Group | None:
    """The log as far as these operations know it."""
    columns = log_columns(operations)
    rules = rules_of(columns)
    for g in range(columns.groups):
        if (columns.topics[columns.topic[g]], int(columns.partition[g])) == log:
            return group_of(columns, rules, g)
    return None


def _places(group: Group, findings: Sequence[Finding]) -> Array:
    """The offsets of acknowledged appends that the findings name, and all offsets of values that stand twice."""
    appends, seen = group.appends, group.evidence
    named = np.isin(appends.op_id, [op_id for finding in findings for op_id in finding.operations])
    rows = np.flatnonzero(named & (appends.kind == Kind.FIRM)).tolist()
    counts = np.diff(appends.start)
    found = [np.arange(appends.base[a], appends.base[a] + counts[a]) for a in rows]
    twice = [finding.offset for finding in findings if finding.anomaly == "duplicate"]
    found.append(seen.offset[np.isin(seen.value, seen.value[np.isin(seen.offset, twice)])])
    return np.unique(np.concatenate([np.empty(0, np.int64), *found]))


def merge_kept(many: Sequence[Kept]) -> Kept:
    """Of several batches, as one."""
    none = np.empty(0, np.int64)
    return Kept(
        ids=np.unique(np.concatenate([none, *(one.ids for one in many)])),
        batches=np.unique(np.concatenate([none, *(one.batches for one in many)])),
        values=np.unique(np.concatenate([none, *(one.values for one in many)])),
    )
