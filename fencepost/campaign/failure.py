"""A run that failed, explained to a person and kept in a folder: trace, plan, the shrunk plan, its trace, and
the report.

Owns: what is kept, and the order in which a failure is explained. Must not know who asked (pytest_plugin), or
how shrinking and judging work.

    FOLDER/trace.jsonl    the run, saved before it is judged
    FOLDER/plan.json      its plan
    FOLDER/shrunk.json    the smallest plan that shows the same anomaly
    FOLDER/shrunk.jsonl   the trace of that
    FOLDER/trace.html     the page in which the run is watched; shrunk.html if the plan was shrunk
    FOLDER/report.txt     what the failure says
"""

from contextlib import suppress
from pathlib import Path

from attrs import evolve, frozen

from fencepost.campaign.shrink.oracle import InProcess, ShownAnomaly, target_of
from fencepost.campaign.shrink.shrink import Shrunk, shrink
from fencepost.campaign.shrink.text import short_plan, write_plan
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision, Verdict, by_rank, combine
from fencepost.report.commands import check_traces, replay_plan
from fencepost.report.explain import explain
from fencepost.traces.errors import FencepostError
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Trace
from fencepost.traces.whole_file import write_whole
from fencepost.viewer import Shown, page_next_to

TRACE, PLAN, SHRUNK, SHRUNK_TRACE, REPORT = (
    "trace.jsonl",
    "plan.json",
    "shrunk.json",
    "shrunk.jsonl",
    "report.txt",
)
MOST_LINES = 60
"""Of the timeline in a report; the replay command shows more."""


class RunFailedError(AssertionError):
    """A run with a finding, or one that proves nothing. The text is the whole report."""

    def __init__(self, text: str, verdict: Verdict) -> None:
        super().__init__(text)
        self.verdict = verdict


@frozen(kw_only=True)
class Keeping:
    """How a failure is treated."""

    # Of its artefacts.
    folder: Path
    # Time to shrink for, 0 for not at all.
    shrink_s: float
    # Its name on pytest's command line.
    test: str = ""


def assert_ok(trace: Trace, keeping: Keeping, checks: tuple[str, ...] = DEFAULT_CHECKS) -> Verdict:
    """Save a run, then judge it. Of a run that is Ok nothing is kept.

    Args:
        trace: the run.
        keeping: where to save it, and for how long to shrink.
        checks: names of the checks to ask.

    Returns:
        The verdict, which is Ok.

    Raises:
        RunFailedError: for any other verdict, with the report. Its parts are left in the folder.
    """
    keeping.folder.mkdir(parents=True, exist_ok=True)
    write_traces(keeping.folder / TRACE, [trace])
    verdict = combine(judge(trace, checks))
    if verdict.decision is Decision.OK:
        (keeping.folder / TRACE).unlink()
        with suppress(OSError):  # somebody else keeps something there
            keeping.folder.rmdir()
        return verdict
    text = _report(trace, verdict, keeping, checks if checks != DEFAULT_CHECKS else ())
    write_whole(keeping.folder / REPORT, text + "\n")
    raise RunFailedError(text, verdict)


def _report(trace: Trace, verdict: Verdict, keeping: Keeping, checks: tuple[str, ...]) -> str:
    """checks: the judges that were asked, () for the usual ones."""
    if not trace.plan:
        return _without_plan(trace, verdict, keeping, checks)
    plan = plan_from_json(trace.plan)
    path = keeping.folder / PLAN
    write_plan(path, plan)
    if verdict.decision is not Decision.ILLEGAL:
        return _without_plan(trace, verdict, keeping, checks)
    shown = _again(plan, verdict, checks)
    if shown is None:
        in_words = _without_plan(trace, verdict, keeping, checks)
        return f"{in_words}\n\nits plan did not show this again: the trace is all there is"
    small = _shrunk(shown, plan, keeping)
    kept = keeping.folder / TRACE
    if small is not None:
        kept = keeping.folder / SHRUNK_TRACE
        path = keeping.folder / SHRUNK
        write_plan(path, small.plan)
        shown = target_of(small.plan, anomaly=shown.target.anomaly, checks=shown.target.checks)
        write_traces(kept, [shown.trace])
    named = "" if not shown.target.among else shown.target.anomaly
    replay = replay_plan(path, checks=checks, anomaly=named)
    in_words = explain(shown.finding, shown.trace, replay=replay, most_lines=MOST_LINES).plain()
    found = evolve(verdict, findings=(shown.finding,))
    watch = page_next_to(kept, Shown(trace=shown.trace, verdicts=(found,), replay=replay))
    return "\n".join([in_words, "", *_plan_in_words(small, plan), f"kept in {keeping.folder}", watch])


def _without_plan(trace: Trace, verdict: Verdict, keeping: Keeping, checks: tuple[str, ...]) -> str:
    """Of a trace that is judged again as it is, not run again."""
    again = check_traces(keeping.folder / TRACE, checks=checks)
    watch = page_next_to(keeping.folder / TRACE, Shown(trace=trace, verdicts=(verdict,)))
    if not verdict.findings:
        return f"{verdict.decision.value}: {verdict.reason}\n\njudge it again: {again}\n{watch}"
    finding = by_rank(verdict.findings)[0]
    return explain(finding, trace, replay=again, most_lines=MOST_LINES).plain() + f"\n\n{watch}"


def _again(plan: Plan, verdict: Verdict, checks: tuple[str, ...]) -> ShownAnomaly | None:
    """The run of the plan, if it shows the same as the trace."""
    try:
        return target_of(plan, anomaly=verdict.anomaly or "", checks=checks or None)
    except FencepostError:
        return None


def _shrunk(shown: ShownAnomaly, plan: Plan, keeping: Keeping) -> Shrunk | None:
    if keeping.shrink_s <= 0:
        return None
    small = shrink(plan, InProcess(target=shown.target, seconds=keeping.shrink_s))
    if small.interrupted:
        raise KeyboardInterrupt
    return small


def _plan_in_words(small: Shrunk | None, plan: Plan) -> list[str]:
    if small is None:
        return [f"The plan has {len(plan.operations)} operations and {len(plan.faults)} faults."]
    end = "" if small.finished else ", which were not enough to finish"
    return [
        f"Shrunk plan: {len(small.plan.operations)} of {len(plan.operations)} operations,"
        f" {len(small.plan.faults)} of {len(plan.faults)} faults ({small.runs} runs in {small.wall_s:.1f} "
        f"s{end})",
        short_plan(small.plan),
    ]
