"""A closer look at a log that is too large to be examined as a whole: the operations that bear on what is in
question, examined by the plain rules.

Owns the rounds until they are complete. Must not know files: `Source` is where slots and operations come
from.

Complete means: whatever says anything of a slot in question is kept; so is whatever sends or shows a value
that stands at one, and every slot where such a value or its batch stands is in question too; so are the slots
that the bounds in time of what is kept contradict. Then nothing that is left out is in any certificate, and
what is kept says of every certificate all that the whole log says of it. The plain rules choose by orders of
offset, value, time and row, which leaving rows out does not change: among the certificates of the whole log,
which are those of what is kept, they choose the same.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from attrs import evolve, frozen

from fencepost.checkers.log.appends_and_reads import LogColumns, log_columns
from fencepost.checkers.log.bounds import Bounds, acknowledgements, appended, claimed_ends, shows
from fencepost.checkers.log.chain import chain_findings
from fencepost.checkers.log.content import content_findings
from fencepost.checkers.log.group import PartitionLog, group_of
from fencepost.checkers.log.holes import accounted, unfilled
from fencepost.checkers.log.ranges.around import Moments, Wanted
from fencepost.checkers.log.ranges.decide import RangeSummary, Soft
from fencepost.checkers.log.ranges.holes import runs_of
from fencepost.checkers.log.rules import rules_of
from fencepost.checkers.log.session import session_findings
from fencepost.checkers.operation_columns import Array, OperationColumns
from fencepost.checkers.verdict import Finding

ROUNDS = 12
"""Each adds the slots that the operations of the one before put in question; two or three are usual."""
MOST_KEPT = 1_000_000
"""Operations that are examined together: a gigabyte."""
FEW = 256
"""Offsets in question that are looked at where all are too many."""
TOO_MANY = f"more than {MOST_KEPT} operations bear on what is in question"


@frozen(kw_only=True)
class Source:
    """Of one log. in_question(moments): offsets, of all ranges (around.in_question); keep(wanted): these
    operations, in order; bounding(starts): for each run of holes those that bound it first
    (holes.bounding)."""

    in_question: Callable[[Moments], Array]
    keep: Callable[[Wanted], OperationColumns]
    bounding: Callable[[Array], OperationColumns]
    summaries: Sequence[RangeSummary]
    soft: Soft
    dense: bool


@frozen(kw_only=True)
class Looked:
    """findings: those of the plain check, sessions: of them those about sessions; undecided: why more cannot
    be told ("" if all is)."""

    findings: tuple[Finding, ...] = ()
    sessions: tuple[Finding, ...] = ()
    undecided: str = ""


def look_closer(source: Source, log: tuple[str, int], wanted: Wanted) -> Looked:
    """Everything that the plain check says of one log; if that needs too many operations, something of it, or
    nothing. wanted: what is in question for reasons that no slot tells."""
    asked = source.in_question(Moments.none())
    looked = _complete(source, log, evolve(wanted, offsets=np.union1d(wanted.offsets, asked)))
    if not looked.undecided or not len(asked):
        return looked
    fewer = evolve(wanted, offsets=asked[:FEW], ids=wanted.ids[:FEW], sessions=wanted.sessions[:0])
    some = _complete(source, log, fewer, partly=True)
    return looked if some.undecided else evolve(some, undecided=looked.undecided)


def _complete(source: Source, log: tuple[str, int], wanted: Wanted, *, partly: bool = False) -> Looked:
    """The rounds. partly: not for everything in question: what is found holds, the plain check may say more,
    or prove it by others."""
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
    return Looked(undecided=f"what is in question leads to more, {ROUNDS} times")


def _same(one: Wanted, other: Wanted) -> bool:
    names = ("offsets", "values", "senders")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def _with(wanted: Wanted, group: PartitionLog) -> Wanted:
    """And what the operations kept so far put in question."""
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
    """All bounds of what is kept: where slots are strange they tell one of several."""

    def stacked(*parts: Bounds) -> Array:
        return np.array(
            [np.concatenate([getattr(part, name) for part in parts]) for name in ("index", "time")]
        )

    upper = (acknowledgements(group), shows(group), shows(group, below_slot=True))
    return Moments(lower=stacked(appended(group), claimed_ends(group)), upper=stacked(*upper))


def _group(columns: LogColumns, log: tuple[str, int]) -> PartitionLog | None:
    """The log as far as these operations know it."""
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
    """What the plain rules say of what is kept. offsets: that are in question."""
    findings = _findings(group)
    hole, undecided = _hole(source, log, group, offsets)
    findings += [hole] if hole is not None else []
    return Looked(
        findings=tuple(findings), sessions=tuple(_sessions(columns, log, findings)), undecided=undecided
    )


def _findings(group: PartitionLog | None) -> list[Finding]:
    """All but those about holes and sessions."""
    if group is None:
        return []
    return [*content_findings(group), *(chain_findings(group) if group.timed else ())]


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
    """Those of an anomaly that is not found otherwise."""
    known = {finding.anomaly for finding in findings}
    at = _index(columns, log)
    for g, finding in session_findings(columns, rules_of(columns)):
        if g == at and finding.anomaly not in known:
            yield finding
