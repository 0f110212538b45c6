"""`fencepost shrink`: reduces a plan while it still shows the same anomaly."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import rich_click as click
from attrs import frozen

from fencepost.cli.campaign.shrinking import counts, shrink_with_bar
from fencepost.console.named_files import read_plan, with_bugs
from fencepost.console.options import (
    ANY_PATH,
    FILE,
    LARGEST_SEED,
    NumberRange,
    bug_option,
    checks_option,
    default_option,
    jobs_option,
    json_option,
    known_anomaly,
    profile_option,
    split_names,
    trace_option,
)
from fencepost.console.output import Output, add_row, table
from fencepost.report.commands import replay_plan
from fencepost.traces.errors import ExitCode, TraceError
from fencepost.traces.plan import Plan

if TYPE_CHECKING:
    from fencepost.campaign.shrink.oracle import ShownAnomaly
    from fencepost.campaign.shrink.shrink import Shrunk
    from fencepost.traces.trace import Trace

TRACES = ".jsonl"


@frozen
class ShrinkRequest:
    """The plan to shrink, and its name in messages."""

    plan: Plan
    where: str
    # The anomaly of the recorded run, "" if there is no record.
    expected: str = ""


@click.command("shrink")
@click.argument("source", type=ANY_PATH, required=False, metavar="[PLAN|TRACES]")
@trace_option("A run of TRACES, by its id.")
@click.option("--seed", type=click.IntRange(0, LARGEST_SEED), help="The swarm's plan of a seed instead.")
@bug_option
@profile_option
@click.option("--anomaly", metavar="NAME", default="", help="What must remain. [default: the run's anomaly]")
@checks_option
@default_option(
    "--out",
    type=FILE,
    default=Path("out/shrunk.json"),
    help="File for the plan; it has the best plan so far at any time.",
)
@jobs_option
@click.option(
    "--seconds",
    type=NumberRange(min=0, min_open=True),
    metavar="S",
    help="Stop after this time with the best plan so far. [default: when nothing more can be removed]",
)
@json_option
def command(
    source: Path | None,
    trace_id: int | None,
    seed: int | None,
    bugs: tuple[str, ...],
    profile: str,
    anomaly: str,
    checks: str | None,
    out: Path,
    jobs: int,
    seconds: float | None,
    output: Output,
) -> ExitCode:
    """Reduce operations, faults, clients, topics, partitions, brokers, options, durations and numbers as long
    as the run still shows the same anomaly.

    Each candidate is run and judged. It counts only if the anomaly that names it is the one that
    named the first run (--anomaly chooses another one of its findings). The result does not depend on
    --jobs. Ctrl-C leaves the best plan so far. The exit code is 1, because the resulting plan shows a
    finding, or 2 if the given plan shows none.

    \b
    Examples
      # the plan of a stored run
      fencepost shrink out/broken --trace 17
      # of a seed, without any record
      fencepost shrink --seed 23 --bug KIP-101 --out small.json
      # your own plan, one minute at most
      fencepost shrink mine.json --seconds 60
      # by its rate: a run against Apache Kafka, ten minutes at most
      fencepost shrink out/kafka --trace 17 --seconds 600
      # then look at it
      fencepost replay --plan small.json
    """
    from fencepost.bugs import parts_with
    from fencepost.campaign.shrink.oracle import target_of
    from fencepost.cli.campaign.again import real_job_of, shrink_real

    real = real_job_of(source)
    if source is not None and real is not None:
        return shrink_real(source, real, trace_id, known_anomaly(anomaly), out, seconds, output)
    names = split_names(checks)
    request = _request(source, trace_id, seed, bugs, profile, names)
    parts_with(request.plan.cluster.bugs)
    shown = target_of(
        request.plan,
        anomaly=known_anomaly(anomaly),
        checks=names,
        expected=request.expected,
        where=request.where,
    )
    result = shrink_with_bar(request.plan, shown, out, output, jobs=jobs, seconds=seconds)
    if not result.interrupted:
        shown = target_of(
            result.plan, anomaly=shown.target.anomaly, checks=shown.target.checks, where=str(out)
        )
    code = ExitCode.INTERRUPTED if result.interrupted else ExitCode.FINDINGS
    replay = replay_plan(out, checks=names or (), anomaly=shown.target.anomaly if shown.target.among else "")
    _tell(result, shown, out, replay, output)
    return output.end(code, _as_dict(result, shown, out, replay))


def _request(
    source: Path | None,
    trace_id: int | None,
    seed: int | None,
    bugs: tuple[str, ...],
    profile: str,
    checks: tuple[str, ...] | None,
) -> ShrinkRequest:
    """The plan that the options name. Raises UsageError, FencepostError."""
    if (source is None) == (seed is None):
        raise click.UsageError(
            "expected a plan, traces or --seed, saw " + ("none" if source is None else "two of them")
        )
    if seed is not None:
        from fencepost.campaign.swarm.swarm import swarm

        if trace_id is not None:
            raise click.UsageError("expected --trace with traces, saw it with --seed")
        return ShrinkRequest(swarm(seed, profile, bugs), f"seed {seed}")
    assert source is not None
    if profile != "default":
        raise click.UsageError("expected --profile with --seed, saw it with a plan")
    if source.is_dir() or source.suffix == TRACES:
        from fencepost.traces.plan_json import plan_from_json

        trace = _stored(source, trace_id)
        expected, where = "" if bugs else _anomaly_of(trace, checks), f"trace {trace.trace_id} of {source}"
        plan = plan_from_json(trace.plan, where=where)
    elif trace_id is not None:
        raise click.UsageError("expected --trace with traces, saw it with a plan")
    else:
        plan, where, expected = read_plan(source), str(source), ""
    return ShrinkRequest(with_bugs(plan, bugs) if bugs else plan, where, expected)


def _anomaly_of(trace: "Trace", checks: tuple[str, ...] | None) -> str:
    """The anomaly that names a recorded run; "" if there is none."""
    from fencepost.checkers.judges import DEFAULT_CHECKS, judge
    from fencepost.checkers.verdict import combine

    return combine(judge(trace, checks or DEFAULT_CHECKS)).anomaly or ""


def _stored(source: Path, trace_id: int | None) -> "Trace":
    """A recorded run with its plan. Raises UsageError, TraceError."""
    if source.is_dir():
        from fencepost.traces.store import TraceStore

        if trace_id is None:
            raise click.UsageError("expected --trace ID with a folder of traces, saw none")
        trace = TraceStore.open(source).read(trace_id)
    else:
        from fencepost.traces.jsonlines import read_traces

        found = [one for one in read_traces(source) if trace_id in (None, one.trace_id)]
        if len(found) != 1:
            wanted = "one trace" if trace_id is None else f"one trace {trace_id}"
            raise TraceError(
                expected=wanted, seen=str(len(found)), where=str(source), hint="choose one with --trace"
            )
        trace = found[0]
    if not trace.plan:
        raise TraceError(
            expected="a plan to shrink",
            seen="a trace without one",
            where=f"trace {trace.trace_id} of {source}",
            hint="a foreign history has no plan; `fencepost check` finds the fewest operations that convict",
        )
    return trace


def _tell(result: "Shrunk", shown: "ShownAnomaly", out: Path, replay: str, output: Output) -> None:
    rows = table("", ">before", ">after")
    before, after = counts(result.original), counts(result.plan)
    for name, value in before.items():
        add_row(rows, name.replace("_", " "), value, after[name])
    output.say(rows, "")
    finding = shown.finding
    output.say(f"{result.anomaly}: expected {finding.expected}; saw {finding.seen}")
    how = "" if result.finished else ", not to the end"
    output.say(f"{result.runs} runs in {result.wall_s:.1f} s{how}; the plan is {out}", f"See it: {replay}")
    if result.interrupted:
        output.note("interrupted; the best plan so far is kept")


def _as_dict(result: "Shrunk", shown: "ShownAnomaly", out: Path, replay: str) -> dict[str, Any]:
    from fencepost.traces.plan_json import plan_to_json

    return {
        "anomaly": result.anomaly,
        "before": counts(result.original),
        "after": counts(result.plan),
        "runs": result.runs,
        "rounds": result.rounds,
        "wall_s": round(result.wall_s, 1),
        "finished": result.finished,
        "interrupted": result.interrupted,
        "finding": attrs.asdict(shown.finding),
        "plan": msgspec.json.decode(plan_to_json(result.plan)),
        "out": str(out),
        "replay": replay,
    }
