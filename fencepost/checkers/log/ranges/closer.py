"""A closer look at a log that is too large to check as a whole: the plain rules run on the relevant
operations only.

Owns the rounds until the set of operations is complete. Must not know files: `Source` provides slots and
operations.

The set is complete when three conditions hold. Every operation that refers to a slot in question is kept.
Every operation that sends or shows a value at such a slot is kept, and every slot with such a value or its
batch is in question too. And so are the slots that contradict the time bounds of the kept operations. Then no
omitted operation is in any certificate, and the kept ones contain everything that the whole log says about
each certificate. The plain rules choose among certificates by offset, value, time and row. Omitting rows does
not change these orders, so the rules choose the same certificate as in the whole log.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from attrs import evolve, frozen

from fencepost.checkers.log.appends_and_reads import LogColumns, log_columns
from fencepost.checkers.log.bounds import Bounds, acknowledgements, appended, claimed_ends, shows
from fencepost.checkers.log.chain import chain_findings
from fencepost.checkers.log.content import content_findings
from fencepost.checkers.log.holes import accounted, unfilled
from fencepost.checkers.log.log_rules import rules_of
from fencepost.checkers.log.one_log import PartitionLog, group_of
from fencepost.checkers.log.ranges.around import Moments, Wanted
from fencepost.checkers.log.ranges.decide import RangeSummary, Soft
from fencepost.checkers.log.ranges.holes import runs_of
from fencepost.checkers.log.session import session_findings
from fencepost.checkers.log.side_chains import side_findings
from fencepost.checkers.operation_columns import Array, OperationColumns
from fencepost.checkers.verdict import Finding

ROUNDS = 12
"""The most rounds. Each adds the slots that the operations of the previous round put in question. Reason: two
or three are usual."""
MOST_KEPT = 1_000_000
"""The most operations that are checked together. Reason: this many take a gigabyte."""
FEW = 256
"""If there are too many offsets in question, only this many are looked at."""
TOO_MANY = f"more than {MOST_KEPT} operations bear on what is in question"


@frozen(kw_only=True)
class Source:
    """The source of slots and operations of one log."""

    # From bounds that do not come from slots: the offsets in question, of all ranges (around.in_question).
    in_question: Callable[[Moments], Array]
    # Returns the wanted operations, in order.
    keep: Callable[[Wanted], OperationColumns]
    # From the starts of the runs of holes: the operations that bound each run first (holes.bounding).
    bounding: Callable[[Array], OperationColumns]
    # The summaries of the ranges.
    summaries: Sequence[RangeSummary]
    # The appends that are not firm.
    soft: Soft
    # Whether every offset below the end must hold a record.
    dense: bool


@frozen(kw_only=True)
class Looked:
    """The result of a closer look."""

    # Those of the plain check.
    findings: tuple[Finding, ...] = ()
    # Those of them that are about sessions.
    sessions: tuple[Finding, ...] = ()
    # Why there may be more ("" if there are no more).
    undecided: str = ""


def look_closer(source: Source, log: tuple[str, int], wanted: Wanted) -> Looked:
    """All findings of the plain check on one log. If that needs too many operations, some of the findings or
    none.

    wanted: operations that are in question for reasons that slots do not show.
    """
    asked = source.in_question(Moments.none())
    looked = _complete(source, log, evolve(wanted, offsets=np.union1d(wanted.offsets, asked)))
    if not looked.undecided or not len(asked):
        return looked
    fewer = evolve(wanted, offsets=asked[:FEW], ids=wanted.ids[:FEW], sessions=wanted.sessions[:0])
    some = _complete(source, log, fewer, partly=True)
    return looked if some.undecided else evolve(some, undecided=looked.undecided)


def _complete(source: Source, log: tuple[str, int], wanted: Wanted, *, partly: bool = False) -> Looked:
    """Run the rounds. partly: only for a part of what is in question. Then the findings are correct, but the
    plain check may have more, or others as proof."""
    for _ in range(ROUNDS):
        columns = log_columns(source.keep(wanted))
        if len(columns.appends.op_id) + len(columns.reads.op_id) > MOST_KEPT:
            return Looked(undecided=TOO_MANY)
        group = _group(columns, log)
        more = wanted if group is None else _with(wanted, group)
        if group is not None and not partly and _same(more, wanted):
            more = evolve(wanted, offsets=np.union1d(wanted.offsets, source.in_question(_moments(group))))
        if not _same(more, wanted):
            wanted = more
            continue
        if partly:
            return Looked(findings=tuple(_findings(group)))
        return _judged(source, log, columns, group, wanted.offsets)
    return Looked(undecided=f"the operations in question lead to more of them, {ROUNDS} times")


def _same(one: Wanted, other: Wanted) -> bool:
    names = ("offsets", "values", "senders")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def _with(wanted: Wanted, group: PartitionLog) -> Wanted:
    """`wanted`, extended by what the kept operations put in question."""
    seen, placed, appends = group.evidence, group.placements, group.appends
    inside = np.isin(seen.offset, wanted.offsets)
    there = seen.sender[inside]
    sent = np.isin(group.append_of_value, there[there >= 0])
    values = np.union1d(seen.value[inside], appends.value[sent])
    touched = np.searchsorted(wanted.offsets, placed.base) < np.searchsorted(
        wanted.offsets, placed.last, side="right"
    )
    batches = [np.arange(a, b + 1) for a, b in zip(placed.base[touched], placed.last[touched], strict=True)]
    offsets = [wanted.offsets, seen.offset[np.isin(seen.value, values)], *batches]
    return evolve(
        wanted,
        offsets=np.unique(np.concatenate(offsets)),
        values=np.union1d(wanted.values, values),
        senders=np.unique(group.reads.value),
    )


def _moments(group: PartitionLog) -> Moments:
    """All time bounds of the kept operations. A slot with conflicting statements keeps only one of several
    bounds."""

    def stacked(*parts: Bounds) -> Array:
        return np.array(
            [np.concatenate([getattr(part, name) for part in parts]) for name in ("index", "time")]
        )

    upper = (acknowledgements(group), shows(group), shows(group, below_slot=True))
    return Moments(lower=stacked(appended(group), claimed_ends(group)), upper=stacked(*upper))


def _group(columns: LogColumns, log: tuple[str, int]) -> PartitionLog | None:
    """The log according to these operations."""
    at = _index(columns, log)
    return None if at is None else group_of(columns, rules_of(columns), at)


def _index(columns: LogColumns, log: tuple[str, int]) -> int | None:
    for g in range(columns.groups):
        if (columns.topics[columns.topic[g]], int(columns.partition[g])) == log:
            return g
    return None


def _judged(
    source: Source, log: tuple[str, int], columns: LogColumns, group: PartitionLog | None, offsets: Array
) -> Looked:
    """The findings of the plain rules on the kept operations. offsets: the offsets in question."""
    findings = _findings(group)
    hole, undecided = _hole(source, log, group, offsets)
    findings += [hole] if hole is not None else []
    return Looked(
        findings=tuple(findings), sessions=tuple(_sessions(columns, log, findings)), undecided=undecided
    )


def _findings(group: PartitionLog | None) -> list[Finding]:
    """All findings except those about holes and sessions."""
    if group is None:
        return []
    return [*content_findings(group), *(chain_findings(group) if group.timed else ()), *side_findings(group)]


def _hole(
    source: Source, log: tuple[str, int], group: PartitionLog | None, offsets: Array
) -> tuple[Finding | None, str]:
    runs = runs_of(source.summaries, source.soft, group, offsets)
    if not len(runs.holes.start) or not source.dense:
        return None, ""
    if runs.too_many:
        return None, runs.too_many
    bound = _group(log_columns(source.bounding(runs.holes.start)), log)
    return unfilled(bound, runs.holes) if bound is not None and accounted(bound) else (None, "")


def _sessions(columns: LogColumns, log: tuple[str, int], findings: Sequence[Finding]) -> Iterator[Finding]:
    """Findings about sessions with an anomaly that was not found otherwise."""
    known = {finding.anomaly for finding in findings}
    at = _index(columns, log)
    for g, finding in session_findings(columns, rules_of(columns)):
        if g == at and finding.anomaly not in known:
            yield finding
