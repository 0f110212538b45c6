"""The five forms of a rule, and how each is judged against the timeline.

Owns the forms, the counts of what was judged and what was excused, and the findings. Must not know any rule:
those are rows (rows/). A row is excused by a disturbance of its subject, and by nothing else.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from attrs import define, field, frozen

from fencepost.checkers.invariants.findings import Findings
from fencepost.record.facts import Facts
from fencepost.record.settings import MILLISECOND, Settings
from fencepost.record.timeline import FOR_EVER, Calm, Disturbance, Kind, Named, Subject, Timeline

CHECK = "liveness"


class Form(StrEnum):
    """What a row says."""

    HOLD = "must hold"
    """A state, in calm of its subject, from the bound on until the calm ends."""
    FOLLOW = "must follow"
    """What a trigger leads to, within the bound, in calm of its subject."""
    NEVER = "must not happen"
    """Nothing of this kind, in calm of its subject."""
    CAUSE = "needs a cause"
    """An event uses up an outer cause. Judged at any time."""
    DONE = "done needs its fact"
    """What is reported as complete is true at that moment. Judged at any time."""


@define(kw_only=True)
class Case:
    """One thing that a row is asked about. There are hundreds in a trace: a frozen class takes thrice the
    time to make."""

    subject: Named
    # HOLD: since when the state is missing. FOLLOW: when the trigger was. Else: when it happened.
    since: int
    # HOLD, FOLLOW: until when it was missing; FOR_EVER: until the end.
    until: int = FOR_EVER
    # DONE and NEVER: whether it is as it should be, so that it counts as judged and is no finding.
    fine: bool = False
    # What should have been, and what was, one clause each.
    expected: str = ""
    seen: str = ""
    topic: str | None = None
    partition: int = -1
    offset: int = -1
    # Nanoseconds beyond the row's bound.
    more: int = 0
    # Who decides it, and in which incarnation: a cause explains one reaction for each.
    decider: object = None
    events: tuple[int, ...] = ()
    operations: tuple[int, ...] = ()


def _none(of: Settings) -> int:
    return 0


@frozen(kw_only=True)
class Row:
    """One rule."""

    # Its anomaly; the table of anomalies says in words what breaks the promise.
    name: str
    form: Form
    subject: Subject
    # All that the trace has to ask it about.
    cases: Callable[[Facts, Timeline], Iterable[Case]]
    # Nanoseconds from the trigger, or from the beginning of the calm if that is later.
    bound: Callable[[Settings], int] = _none
    # Disturbances that do not count.
    through: frozenset[Kind] = frozenset()
    # CAUSE: what explains it.
    causes: frozenset[Kind] = frozenset()
    # Which systems answer it, and by what.
    where: str = "every system"
    # Whether its cases are what is wrong only, so that each stretch of calm that is long enough is judged.
    only_wrong: bool = False


def came(facts: Facts, since: int, until: int, bound: int) -> bool:
    """Whether what a HOLD or FOLLOW waited for was there in time, in whatever calm: rows may pass such cases
    over before they put them in words, unless cases are counted (Facts.counting).

    Args:
        facts: of the trace.
        since, until: of the case, nanoseconds.
        bound: of the row, with what the case has more; nanoseconds.
    """
    return min(until, facts.end) - since <= bound


IN_TROUBLE = "in trouble"
"""What came true or did not happen in a disturbance: nothing was judged, and nothing had to be excused."""


@define
class Count:
    """How often a row was judged, and how often a disturbance excused what would have been a finding."""

    judged: int = 0
    excused: int = 0


@define
class Judging:
    """One trace under the rows."""

    facts: Facts
    timeline: Timeline
    findings: Findings = field(factory=lambda: Findings(CHECK))
    counts: dict[str, Count] = field(factory=dict)
    _bounds: dict[str, int] = field(factory=dict)
    # Causes that explained a reaction: row, subject, who decided, cause.
    used: set[tuple[str, Named, object, Disturbance]] = field(factory=set)

    def ask(self, row: Row) -> None:
        """Judge everything that a row is asked about."""
        count = self.counts.setdefault(row.name, Count())
        judge = _JUDGES[row.form]
        if row.only_wrong and self.facts.counting:
            count.judged += sum(self._rests(row))
        for case in row.cases(self.facts, self.timeline):
            if not self.facts.counting and self._came(row, case):
                continue
            if (case.since if case.until == FOR_EVER else case.until) < self.facts.begun:
                continue  # over before the run began
            wrong = judge(self, row, case)
            if wrong is None:
                count.excused += 1
            if wrong is None or wrong == IN_TROUBLE:
                continue
            count.judged += not row.only_wrong
            if wrong:
                self._find(row, case, wrong)

    def _came(self, row: Row, case: Case) -> bool:
        """Whether all was as it should be, in whatever calm."""
        if row.form not in (Form.HOLD, Form.FOLLOW):
            return case.fine
        return came(self.facts, case.since, case.until, self._bound(row) + case.more)

    def _bound(self, row: Row) -> int:
        known = self._bounds.get(row.name)
        if known is None:
            known = self._bounds[row.name] = row.bound(self.facts.settings)
        return known

    def _rests(self, row: Row) -> Iterator[int]:
        """The stretches of calm that are long enough, for each subject."""
        bound = self._bound(row)
        for name in self.facts.names_of(row.subject):
            calms = self.timeline.calms((row.subject, name), row.through)
            yield sum(calm.end - max(calm.begin, self.facts.begun) > bound for calm in calms)

    def _find(self, row: Row, case: Case, why: str) -> None:
        self.findings.add(
            row.name,
            expected=f"{case.expected}{why}",
            seen=case.seen,
            topic=case.topic,
            partition=case.partition,
            offset=case.offset,
            events=case.events,
            operations=case.operations,
        )

    def _lasting(self, row: Row, case: Case) -> str | None:
        """HOLD and FOLLOW: "" if it came in time, None if a disturbance excuses that it did not."""
        bound = self._bound(row) + case.more
        until = min(case.until, self.facts.end)
        judged = False
        for calm in self._calms(row, case):
            begin = max(case.since, calm.begin)
            if begin > until:
                break
            due = begin + bound
            if until <= min(due, calm.end):
                judged = judged or case.until <= calm.end
            elif due < calm.end:
                return f" within {bound // MILLISECOND} ms{_since(calm, case)}"
        if judged:
            return ""
        in_time = until - case.since <= bound
        return IN_TROUBLE if in_time or not self._long_enough(row, case, bound) else None

    def _long_enough(self, row: Row, case: Case, bound: int) -> bool:
        """Whether any calm of the subject is: a plan without one does not evaluate the row."""
        return any(calm.end - calm.begin > bound for calm in self.timeline.calms(case.subject, row.through))

    def _calms(self, row: Row, case: Case) -> Iterator[Calm]:
        for calm in self.timeline.calms(case.subject, row.through):
            if calm.end >= case.since:
                yield calm

    def _sudden(self, row: Row, case: Case) -> str | None:
        calm = self.timeline.calm_at(case.subject, case.since, row.through)
        bound = self._bound(row) + case.more
        if calm is None or case.since - calm.begin < bound:
            return IN_TROUBLE if case.fine or not self._long_enough(row, case, bound) else None
        return "" if case.fine else _since(calm, case)

    def _caused(self, row: Row, case: Case) -> str | None:
        """A lasting cause explains any number of reactions until its end and bound. Another one is used up:
        it explains one reaction of each subject and each incarnation of who decides."""
        if case.fine:
            return ""
        late = self._bound(row) + case.more
        found = [
            one
            for one in self.timeline.touching(case.subject)
            if one.kind in row.causes and one.begin <= case.since <= one.end + late
        ]
        lasting = [one for one in found if one.kind in LASTING]
        for one in found:
            use = row.name, case.subject, case.decider, one
            if one.kind not in LASTING and use not in self.used:
                if not lasting:
                    self.used.add(use)
                return ""
        if not lasting:
            return ", for nothing that was recorded explains it"
        return IN_TROUBLE if any(one.kind in THROUGHOUT for one in lasting) else None

    def _done(self, row: Row, case: Case) -> str | None:
        return "" if case.fine else " by then"


LASTING = frozenset({Kind.NOISE, Kind.FAULT, Kind.START, Kind.BUSY, Kind.LATENT, Kind.LINKS})
"""Causes that explain any number of reactions until their end and bound."""
THROUGHOUT = frozenset({Kind.NOISE, Kind.START})
"""Disturbances of a whole plan, or of its beginning: what is explained by them was never judged."""
_JUDGES: dict[Form, Callable[[Judging, Row, Case], str | None]] = {
    Form.HOLD: Judging._lasting,
    Form.FOLLOW: Judging._lasting,
    Form.NEVER: Judging._sudden,
    Form.CAUSE: Judging._caused,
    Form.DONE: Judging._done,
}


def _since(calm: Calm, case: Case) -> str:
    if calm.before is None:
        return ", as nothing was disturbed"
    ago = (max(case.since, calm.begin) - calm.before.end) // MILLISECOND
    return f", as nothing disturbed it since {calm.before.what}, which was over {ago} ms before"
