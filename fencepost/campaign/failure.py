"""A run that failed, told to a person and kept in a folder: trace, plan, the shrunk plan, its trace, and the report.

Owns: what is kept, and the order in which a failure is told. Must not know who asked (pytest_plugin), or how shrinking and judging work.

    FOLDER/trace.jsonl    the run, saved before it is judged
    FOLDER/plan.json      its plan
    FOLDER/shrunk.json    the smallest plan that shows the same anomaly
    FOLDER/shrunk.jsonl   the trace of that
    FOLDER/report.txt     what the failure says
"""

import shlex
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from fencepost.campaign.shrink.oracle import InProcess, ShownAnomaly, target_of
from fencepost.campaign.shrink.shrink import Shrunk, shrink
from fencepost.campaign.shrink.text import short_plan, write_plan
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision, Verdict, combine
from fencepost.report.explain import explain
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.errors import FencepostError
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Trace

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
    """How a failure is treated. folder: of its artefacts; shrink_s: time to shrink for, 0 for not at all."""

    folder: Path
    shrink_s: float


def assert_ok(trace: Trace, keeping: Keeping, checks: tuple[str, ...] = DEFAULT_CHECKS) -> Verdict:
    """Save a run, then judge it; only Ok passes. Raises RunFailedError with the report, whose parts are left in the folder."""
    keeping.folder.mkdir(parents=True, exist_ok=True)
    write_traces(keeping.folder / TRACE, [trace])
    verdict = combine(judge(trace, checks))
    if verdict.decision is Decision.OK:
        (keeping.folder / TRACE).unlink()
        with suppress(OSError):  # somebody else keeps something there
            keeping.folder.rmdir()
        return verdict
    text = _report(trace, verdict, keeping)
    (keeping.folder / REPORT).write_text(text + "\n", encoding="utf-8")
    raise RunFailedError(text, verdict)


def _report(trace: Trace, verdict: Verdict, keeping: Keeping) -> str:
    if not trace.plan:
        return _without_plan(trace, verdict, keeping)
    plan = plan_from_json(trace.plan)
    path = keeping.folder / PLAN
    write_plan(path, plan)
    if verdict.decision is not Decision.ILLEGAL:
        why = f"{verdict.decision.value}: {verdict.reason}"
        return f"{why}\n\nsee it: {_replay(path)}"
    shown = _again(plan, verdict)
    if shown is None:
        told = _without_plan(trace, verdict, keeping)
        return f"{told}\n\nits plan did not show this again: the trace is all there is"
    small = _shrunk(shown, plan, keeping)
    if small is not None:
        path = keeping.folder / SHRUNK
        write_plan(path, small.plan)
        shown = target_of(small.plan, anomaly=shown.target.anomaly, checks=shown.target.checks)
        write_traces(keeping.folder / SHRUNK_TRACE, [shown.trace])
    told = explain(shown.finding, shown.trace, replay=_replay(path), most_lines=MOST_LINES).plain()
    return "\n".join([told, "", *_plan_in_words(small, plan), f"kept in {keeping.folder}"])


def _without_plan(trace: Trace, verdict: Verdict, keeping: Keeping) -> str:
    """Of a trace that cannot be run again."""
    again = f"fencepost check {shlex.quote(str(keeping.folder / TRACE))}"
    if not verdict.findings:
        return f"{verdict.decision.value}: {verdict.reason}\n\njudge it again: {again}"
    finding = min(verdict.findings, key=lambda one: BY_NAME[one.anomaly].rank)
    return explain(finding, trace, replay=again, most_lines=MOST_LINES).plain()


def _again(plan: Plan, verdict: Verdict) -> ShownAnomaly | None:
    """The run of the plan, if it shows the same as the trace."""
    try:
        return target_of(plan, anomaly=verdict.anomaly or "")
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
        f" {len(small.plan.faults)} of {len(plan.faults)} faults ({small.runs} runs in {small.wall_s:.1f} s{end})",
        short_plan(small.plan),
    ]


def _replay(path: Path) -> str:
    return f"fencepost replay --plan {shlex.quote(str(path))}"
