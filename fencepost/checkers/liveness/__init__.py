"""The check of liveness: what must come true, what must not happen, what needs a cause, and when "done" may
be said.

Owns the list of rows and the verdict. Each row is one rule (rows/), in one of five forms (forms.py), judged
against one timeline of disturbances (record/timeline.py) within one table of bounds (record/bounds.py). It
knows no system: a row is asked wherever the trace has what it asks about. In the events each topic has a name
of its own (model/lives). Operations and what brokers answered stay as they are: a row that compares them asks
which topic of the name was there (Facts.life).
"""

from collections.abc import Iterable

from attrs import evolve

from fencepost.checkers.liveness.anytime import judge_anytime
from fencepost.checkers.liveness.forms import CHECK, Count, Judging, Row
from fencepost.checkers.liveness.live import answers_only, live_findings
from fencepost.checkers.liveness.progress import progress_findings
from fencepost.checkers.liveness.rows import ROWS
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.model.lives import events_with_lives
from fencepost.record.facts import facts_of
from fencepost.record.settings import settings_of
from fencepost.record.timeline import timeline_of
from fencepost.traces.trace import Trace, plain

__all__ = ["CHECK", "ROWS", "counts_of", "judge"]


def judge(trace: Trace, rows: Iterable[Row] = ROWS) -> Verdict:
    """Ask a trace all rows. One whose settings nobody recorded has no bounds: it is asked for progress,
    within what its claims say, and if it has nothing but answers of brokers, for what a live cluster owes.

    Args:
        trace: the trace.
        rows: the rules.
    """
    if trace.claims.assumption_broken:
        return Verdict(
            decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=trace.claims.assumption_broken
        )
    trace = evolve(trace, events=events_with_lives(trace.events))
    judging = _judged(trace, rows)
    if judging is None:
        found = () if trace.plan else progress_findings(trace)
        if answers_only(trace.events) and not trace.plan:
            found = (*found, *live_findings(trace.events))
    else:
        if trace.plan:
            judge_anytime(judging.findings, trace, judging.facts)
        found = tuple(
            evolve(one, topic=one.topic and plain(one.topic)) for one in judging.findings.found.values()
        )
    return Verdict(decision=Decision.ILLEGAL if found else Decision.OK, check=CHECK, findings=found)


def counts_of(trace: Trace, rows: Iterable[Row] = ROWS) -> dict[str, Count]:
    """How often each row was judged in a trace, and how often excused; empty without settings."""
    judging = _judged(evolve(trace, events=events_with_lives(trace.events)), rows, counting=True)
    return {} if judging is None else judging.counts


def _judged(trace: Trace, rows: Iterable[Row], *, counting: bool = False) -> Judging | None:
    settings = settings_of(trace.plan, trace.events)
    if settings is None:
        return None
    facts = facts_of(enumerate(trace.events), trace.operations, settings)
    facts.counting = counting
    judging = Judging(facts, timeline_of(facts))
    for row in rows:
        judging.ask(row)
    return judging
