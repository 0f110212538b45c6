"""`fencepost shrink`: reduces a plan while it still shows the same anomaly."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import rich_click as click
from attrs import frozen

from fencepost.console.files import read_bytes
from fencepost.console.options import (
    LARGEST_SEED,
    NumberRange,
    bug_option,
    checks_option,
    jobs_option,
    json_option,
    profile_option,
    split_names,
)
from fencepost.console.output import Output, add_row, table
from fencepost.report.commands import replay_plan
from fencepost.traces.errors import ExitCode, FencepostError, TraceError
from fencepost.traces.plan import Plan

if TYPE_CHECKING:
    from fencepost.campaign.shrink.oracle import ShownAnomaly
    from fencepost.campaign.shrink.shrink import Shrunk
    from fencepost.campaign.workers.results import CampaignResult, Job
    from fencepost.traces.trace import Trace

TRACES = ".jsonl"


@frozen
class ShrinkRequest:
    """The plan to shrink, and its name in messages. expected: the anomaly of the recorded run, "" if there is
    no record."""

    plan: Plan
    where: str
    expected: str = ""


@click.command("shrink")
@click.argument("source", type=click.Path(path_type=Path), required=False, metavar="[PLAN|TRACES]")
@click.option("--trace", "trace_id", type=click.IntRange(0, LARGEST_SEED), help="A run of TRACES, by its id.")
@click.option("--seed", type=click.IntRange(0, LARGEST_SEED), help="The swarm's plan of a seed instead.")
@bug_option
@profile_option
@click.option("--anomaly", metavar="NAME", default="", help="What must remain. [default: the run's anomaly]")
@checks_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("out/shrunk.json"),
    show_default=True,
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
    as_json: bool,
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
      fencepost shrink --seed 20 --bug KIP-101 --out small.json
      # your own plan, one minute at most
      fencepost shrink mine.json --seconds 60
      # by its rate: a run against Apache Kafka, ten minutes at most
      fencepost shrink out/kafka --trace 17 --seconds 600
      # then look at it
      fencepost replay --plan small.json
    """
    from fencepost.campaign.bugs import parts_with
    from fencepost.campaign.shrink.oracle import target_of
    from fencepost.cli.campaign.again import real_job_of, shrink_real

    output = Output(as_json)
    real = real_job_of(source)
    if source is not None and real is not None:
        return shrink_real(source, real, trace_id, _known(anomaly), out, seconds, output)
    names = split_names(checks)
    request = _request(source, trace_id, seed, bugs, profile, names)
    parts_with(request.plan.cluster.bugs)
    shown = target_of(
        request.plan, anomaly=_known(anomaly), checks=names, expected=request.expected, where=request.where
    )
    result = shrink_with_bar(request.plan, shown, out, output, jobs=jobs, seconds=seconds)
    if not result.interrupted:
        shown = target_of(
            result.plan, anomaly=shown.target.anomaly, checks=shown.target.checks, where=str(out)
        )
    code = ExitCode.INTERRUPTED if result.interrupted else ExitCode.FINDINGS
    replay = replay_plan(out, checks=names or (), anomaly=shown.target.anomaly if shown.target.among else "")
    _tell(result, shown, out, replay, output)
    output.emit(_as_dict(result, shown, out, replay, code))
    return code


def shrink_with_bar(
    plan: Plan, shown: "ShownAnomaly", out: Path, output: Output, *, jobs: int, seconds: float | None = None
) -> "Shrunk":
    """Shrink a plan with a progress bar. shown: the anomaly to keep; out: the file for the best plan so far;
    jobs: processes; seconds: time limit, None for none."""
    from fencepost.campaign.shrink.shrink import shrink
    from fencepost.campaign.shrink.text import write_plan
    from fencepost.campaign.shrink.workers import Workers

    write_plan(out, plan)
    size = _size(plan)
    workers = Workers(target=shown.target, jobs=jobs, seconds=seconds)
    try:
        with output.progress(f"shrinking to {shown.target.anomaly}", size) as bar:
            return shrink(
                plan,
                workers,
                on_better=lambda better: write_plan(out, better),
                on_progress=lambda now: bar.to(
                    size - now.operations - now.faults,
                    f"{now.operations} operations, {now.faults} faults left, {now.runs} runs",
                ),
            )
    finally:
        workers.close()


def shrink_found(
    result: "CampaignResult", job: "Job", folder: Path, output: Output, jobs: int
) -> tuple[list[dict[str, Any]], ExitCode]:
    """Shrink the first run of each anomaly of a campaign. result, job: of the campaign; folder: the
    campaign's; jobs: processes. Returns a row per anomaly, and the exit code of campaign and shrinking."""
    from fencepost.campaign.shrink.oracle import target_of
    from fencepost.campaign.workers.plans import plan_of

    rows = table("shrunk", ">seed", ">operations", ">faults", ">runs", ">seconds", "see it")
    done: list[dict[str, Any]] = []
    code = result.exit_code
    firsts: dict[str, int] = {}
    for seed, anomaly in result.failing:
        firsts.setdefault(anomaly, seed)
    for anomaly, seed in sorted(firsts.items()):
        if code is ExitCode.INTERRUPTED:
            break
        plan, out = plan_of(job, seed), folder / f"shrunk-{seed}.json"
        try:
            shown = target_of(plan, checks=job.checks, expected=anomaly, where=f"seed {seed}")
        except FencepostError as error:  # the campaign also reports a run that did not repeat
            output.note(str(error))
            continue
        small = shrink_with_bar(plan, shown, out, output, jobs=jobs)
        before, after = _counts(plan), _counts(small.plan)
        sizes = [f"{before[name]} -> {after[name]}" for name in ("operations", "faults")]
        add_row(
            rows,
            anomaly,
            seed,
            *sizes,
            small.runs,
            f"{small.wall_s:.1f}",
            replay_plan(out, checks=job.checks or ()),
        )
        done.append({"anomaly": anomaly, "seed": seed, "out": str(out), "before": before, "after": after})
        code = ExitCode.INTERRUPTED if small.interrupted else code
    if done:
        output.say("", rows)
    return done, code


def _size(plan: Plan) -> int:
    return len(plan.operations) + len(plan.faults)


def _known(anomaly: str) -> str:
    """Raises UsageError for an unknown anomaly."""
    from fencepost.traces.anomalies import BY_NAME

    if anomaly and anomaly not in BY_NAME:
        raise click.UsageError(f"expected --anomaly as a name of docs/reference/verdicts.md, saw {anomaly!r}")
    return anomaly


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
        trace = _stored(source, trace_id)
        text: str | bytes = trace.plan
        expected = "" if bugs else _anomaly_of(trace, checks)
        where = f"trace {trace.trace_id} of {source}"
    elif trace_id is not None:
        raise click.UsageError("expected --trace with traces, saw it with a plan")
    else:
        text, where, expected = read_bytes(source), str(source), ""
    from fencepost.traces.plan_json import plan_from_json

    plan = plan_from_json(text, where=where)
    if bugs:
        plan = attrs.evolve(plan, cluster=attrs.evolve(plan.cluster, bugs=bugs))
    return ShrinkRequest(plan, where, expected)


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


def _counts(plan: Plan) -> dict[str, int]:
    """The size of a plan."""
    return {
        "operations": len(plan.operations),
        "faults": len(plan.faults),
        "clients": len({one.process for one in plan.operations}),
        "brokers": plan.cluster.brokers,
        "partitions": sum(topic.partitions for topic in plan.cluster.topics),
        "safety_ms": plan.safety_ms,
    }


def _tell(result: "Shrunk", shown: "ShownAnomaly", out: Path, replay: str, output: Output) -> None:
    rows = table("", ">before", ">after")
    before, after = _counts(result.original), _counts(result.plan)
    for name, value in before.items():
        add_row(rows, name.replace("_", " "), value, after[name])
    output.say(rows, "")
    finding = shown.finding
    output.say(f"{result.anomaly}: expected {finding.expected}; saw {finding.seen}")
    how = "" if result.finished else ", not to the end"
    output.say(f"{result.runs} runs in {result.wall_s:.1f} s{how}; the plan is {out}", f"See it: {replay}")
    if result.interrupted:
        output.note("interrupted; the best plan so far is kept")


def _as_dict(
    result: "Shrunk", shown: "ShownAnomaly", out: Path, replay: str, code: ExitCode
) -> dict[str, Any]:
    from fencepost.traces.plan_json import plan_to_json

    return {
        "anomaly": result.anomaly,
        "before": _counts(result.original),
        "after": _counts(result.plan),
        "runs": result.runs,
        "rounds": result.rounds,
        "wall_s": round(result.wall_s, 1),
        "finished": result.finished,
        "interrupted": result.interrupted,
        "finding": attrs.asdict(shown.finding),
        "plan": msgspec.json.decode(plan_to_json(result.plan)),
        "out": str(out),
        "replay": replay,
        "exit_code": int(code),
    }
