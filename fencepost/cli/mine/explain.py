"""`fencepost mine explain`: one bug of a mining, and what it needs to happen."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import rich_click as click

from fencepost.console.options import ANY_PATH, NumberRange, default_option, jobs_option, json_option
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode, FencepostError, TraceError

if TYPE_CHECKING:
    from fencepost.campaign.causes.cause import Cause
    from fencepost.mining.triage.bugs import Bug
    from fencepost.traces.trace import Trace

SECONDS = 60.0
"""Default time for shrinking."""


@click.command("explain", short_help="What the traces of a bug share, and where they went wrong.")
@click.argument("mined", type=ANY_PATH, metavar="MINED")
@default_option("--bug", "number", type=click.IntRange(min=1), default=1, help="Its number.")
@default_option(
    "--seconds",
    type=NumberRange(min=0),
    metavar="S",
    default=SECONDS,
    help="Shrink the plan for so long first; 0: use it as it is.",
)
@jobs_option
@json_option
def command(mined: Path, number: int, seconds: float, jobs: int, output: Output) -> ExitCode:
    """Report what the traces of a bug share, and why its smallest run fails.

    The plan of its smallest trace is shrunk. Then the nearest plans are run:
    one protection more, or one fault, delay or operation less. The run of the
    closest plan that passes is compared with the failing run: the first event
    on the convicting partition that differs, and what followed up to the
    verdict. For a trace without a plan, only what its bug's traces share is
    reported.

    \b
    Examples
      fencepost mine out/broken --out out/mine
      fencepost mine explain out/mine --bug 2
      fencepost mine explain out/mine --bug 1 --seconds 10 --json
    """
    from fencepost.mining.triage.bugs import read_bugs

    bugs = read_bugs(mined).bugs
    if not bugs:
        raise TraceError(expected="a mining that found a bug", seen="none", where=str(mined))
    found = next((bug for bug in bugs if bug.number == number), None)
    if found is None:
        raise TraceError(expected=f"--bug from 1 to {len(bugs)}", seen=str(number), where=str(mined))
    for line in found.lines():
        output.say(line)
    cause, why = _cause(found, mined, output, seconds, jobs)
    output.say("")
    for line in _lines(cause, why):
        output.say(line)
    return output.end(
        ExitCode.FINDINGS,
        {
            "bug": msgspec.to_builtins(attrs.asdict(found)),
            "cause": _as_dict(cause) if cause is not None else None,
            "why_not": why,
        },
    )


def _lines(cause: "Cause | None", why: str) -> list[str]:
    from fencepost.campaign.causes.cause import lines_of

    return list(lines_of(cause)) if cause is not None else [f"no cause by neighbours: {why}"]


def _trace(bug: "Bug") -> "Trace | None":
    """The bug's smallest trace, None if it comes from a file. Raises TraceError if its folder is gone."""
    from fencepost.traces.store import TraceStore

    source = Path(bug.smallest.source)
    if not source.is_dir():
        return None
    return TraceStore.open(source).read(bug.smallest.trace_id)


def _cause(bug: "Bug", mined: Path, output: Output, seconds: float, jobs: int) -> "tuple[Cause | None, str]":
    """The cause, or in words why none was found."""
    from fencepost.campaign.causes.cause import MOST_RUNS, cause_of
    from fencepost.campaign.shrink.oracle import target_of
    from fencepost.cli.campaign.shrinking import shrink_with_bar
    from fencepost.traces.plan_json import plan_from_json

    trace = _trace(bug)
    if trace is None or not trace.plan:
        return None, "the trace has no plan that could be run again"
    plan = plan_from_json(trace.plan)
    try:
        shown = target_of(plan, where=f"trace {trace.trace_id} of {bug.smallest.source}")
    except FencepostError as error:
        return None, f"its plan does not show it again ({error})"
    if seconds > 0:
        kept = mined / f"bug-{bug.number}.json"
        plan = shrink_with_bar(plan, shown, kept, output, jobs=jobs, seconds=seconds).plan
        shown = target_of(plan, anomaly=shown.target.anomaly, checks=shown.target.checks, where=str(kept))
        output.say(f"  plan:      {kept} ({len(plan.operations)} operations, {len(plan.faults)} faults)")
    with output.progress("neighbours", MOST_RUNS) as bar:
        return cause_of(plan, shown, bar.to), ""


def _as_dict(cause: "Cause") -> dict[str, Any]:
    from fencepost.campaign.causes.cause import operation_line
    from fencepost.report.explain import event_line

    def one(passing: Any) -> dict[str, Any]:
        where = passing.parting
        return {
            "kind": passing.neighbour.kind,
            "says": passing.neighbour.says,
            "parts_at": None if where is None else where.position,
            "event": None if where is None else event_line(cause.failing.events[where.position]),
            "name": None if where is None else cause.failing.events[where.position].name.value,
            "instead": event_line(where.instead) if where and where.instead else None,
            "answers": [operation_line(each) if each else None for each in passing.answered or ()],
            "chain": [] if where is None else [event_line(cause.failing.events[at]) for at in where.chain],
        }

    return {
        "tried": cause.tried,
        "operations": len(cause.plan.operations),
        "faults": len(cause.plan.faults),
        "passing": [one(passing) for passing in cause.passing],
    }
