"""`fencepost model tlc to-plan`: turns a counterexample into a plan that the implementation can run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import rich_click as click

from fencepost.cli.model.tlc.tlc_words import as_dict, java_options, progress_words, run_options, tell_toolbox
from fencepost.console.options import FILE, default_option, json_option
from fencepost.console.output import Output
from fencepost.model.tlc import RunOptions, RunOutcome
from fencepost.report.commands import replay_plan
from fencepost.traces.decoding import from_json
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.whole_file import write_whole

if TYPE_CHECKING:
    from fencepost.campaign.counterexample.search import Fruitless, Reproduction
    from fencepost.campaign.counterexample.story import Story
    from fencepost.traces.protections import Protection


@click.command("to-plan", short_help="Turn a counterexample into a plan for the implementation.")
@click.option("--drop", metavar="PROTECTION", help="The protection to remove, by its name or its bug.")
@click.option(
    "--counterexample",
    "file",
    type=FILE,
    help="The output of `model tlc check Replication --json` or `model explore replication --json`, instead "
    "of a new run of TLC.",
)
@default_option("--replicas", type=click.IntRange(2, 5), default=3, help="For a new run of TLC.")
@default_option(
    "--epochs", type=click.IntRange(1, 5), default=2, help="Leader epochs beyond the first, for a new run."
)
@click.option("--out", type=FILE, required=True, help="The plan, as JSON.")
@default_option(
    "--drafts", type=click.IntRange(1, 100_000), default=2_000, help="How many plans to try at most."
)
@default_option("--seed", type=click.IntRange(0, 2**20), default=1, help="Of the drafts.")
@java_options
@json_option
def to_plan_command(
    drop: str | None,
    file: Path | None,
    replicas: int,
    epochs: int,
    out: Path,
    drafts: int,
    seed: int,
    output: Output,
    **java: Any,
) -> ExitCode:
    """Turn a counterexample of a dropped protection into a plan: appends, and faults that produce the same
    order of events.

    The model gives the order of events, not their durations. So plans with this order and different timings
    are run, until the implementation with the planted bug shows an anomaly of the bug's invariant and the
    healthy one shows nothing. Only then is a plan written. Exit code 3 if none of the drafts
    does.

    \b
    Examples
      fencepost model tlc to-plan --drop KIP-279 --out kip-279.json
      # from an existing counterexample
      fencepost model explore replication --constant epochs=2 --drop KIP-101 --json > found.json
      fencepost model tlc to-plan --counterexample found.json --out kip-101.json
    """
    from fencepost.campaign.counterexample.search import Reproduction, protection_of, reproduce
    from fencepost.traces.plan_json import plan_to_json

    named = protection_of(drop) if drop is not None else None
    if file is not None:
        story = _read(file, named)
    elif named is not None:
        found = _ask_tlc(named, replicas, epochs, run_options(**java), output)
        if isinstance(found, ExitCode):
            return found
        story = found
    else:
        raise click.UsageError("expected --drop or --counterexample, saw neither")
    protection = named or _dropped(story)
    _tell_story(story, protection, output)
    with output.progress("drafts", drafts) as bar:
        answer = reproduce(story, protection.bug, seed, drafts, bar.to)
    if isinstance(answer, Reproduction):
        write_whole(out, plan_to_json(answer.plan) + "\n")
    return _tell(answer, protection, out, output)


def _read(file: Path, named: "Protection | None") -> "Story":
    from fencepost.campaign.counterexample.story import read_counterexample

    try:
        found = from_json(file.read_bytes())
    except FileNotFoundError:
        raise FencepostError(
            expected="a counterexample as JSON", seen="no such file", where=str(file)
        ) from None
    except msgspec.DecodeError as error:
        raise FencepostError(expected="a counterexample as JSON", seen=str(error), where=str(file)) from None
    return read_counterexample(found, (named.name,) if named is not None else (), str(file))


def _dropped(story: "Story") -> "Protection":
    from fencepost.campaign.counterexample.search import protection_of

    if len(story.constants.drop) != 1:
        raise FencepostError(
            expected="a counterexample with one protection dropped",
            seen=", ".join(sorted(story.constants.drop)) or "none",
            where="--counterexample",
            hint="name the protection with --drop",
        )
    (name,) = story.constants.drop
    return protection_of(name)


def _ask_tlc(
    protection: "Protection", replicas: int, epochs: int, options: RunOptions, output: Output
) -> "Story | ExitCode":
    """The steps of TLC's counterexample; the exit code if there is none."""
    from fencepost.campaign.counterexample.story import read_counterexample
    from fencepost.model.replication.replication_state import Constants
    from fencepost.model.tla.dropped import shortest_counterexample

    constants = Constants(replicas=replicas, epochs=epochs, drop=frozenset({protection.name}))
    tell_toolbox(output, options)
    with output.progress("checking", 1) as bar:
        result = shortest_counterexample(
            constants, protection.breaks, options, lambda progress: bar.to(0, progress_words(progress))
        )
    if result.outcome is RunOutcome.VIOLATED:
        output.note(f"TLC: {result.reason}; {result.steps} steps, {result.seconds:.1f} s")
        return read_counterexample(as_dict(result), constants.drop, "TLC's answer")
    if result.outcome is RunOutcome.HOLDS:
        raise FencepostError(
            expected=f"a counterexample without {protection.name}",
            seen=f"none with {replicas} replicas and epochs 0..{epochs}",
            where="Replication.tla",
            hint="more --epochs or --replicas",
        )
    output.say(f"{result.outcome}: {result.reason}")
    code = ExitCode.UNDECIDED if result.outcome is RunOutcome.UNDECIDED else ExitCode.USAGE
    return output.end(code, {"outcome": str(result.outcome), "reason": result.reason})


# ---- reporting


def _words(action: tuple[Any, ...]) -> str:
    return f"{action[0]}({', '.join(map(str, action[1:]))})"


def _tell_story(story: "Story", protection: "Protection", output: Output) -> None:
    output.say(f"without {protection.name} ({protection.bug}), by leader epochs:")
    for era in range(story.eras):
        steps = ", ".join(_words(step.action) for step in story.steps if step.era == era)
        output.say(f"  {era}: {steps or 'nothing'}")


def _tell(
    answer: "Reproduction | Fruitless", protection: "Protection", out: Path, output: Output
) -> ExitCode:
    from fencepost.campaign.counterexample.search import Fruitless

    if isinstance(answer, Fruitless):
        output.say(
            f"no plan: {answer.drafts} drafts, {answer.runs} runs"
            f"{f', of which {answer.near} showed something without the bug, too' if answer.near else ''}; "
            f"another --seed tries others"
        )
        return output.end(ExitCode.UNDECIDED, {"plan": None, **attrs.asdict(answer)})
    finding = answer.finding
    faults, appends = len(answer.plan.faults), sum(one.function == "append" for one in answer.plan.operations)
    output.say(
        f"draft {answer.drafts} of {answer.runs} runs: {appends} appends, {faults} faults",
        f"with {protection.bug} planted: {finding.anomaly}: expected {finding.expected}; saw {finding.seen}",
        f"without: {', '.join(f'{verdict.check} {verdict.decision.value}' for verdict in answer.healthy)}",
        f"{out} is written; see it with",
        f"  {replay_plan(out, bugs=(protection.bug,), anomaly=finding.anomaly)}",
        f"  {replay_plan(out)}",
    )
    return output.end(
        ExitCode.NOTHING_FOUND,
        {
            "plan": str(out),
            "bug": protection.bug,
            "protection": protection.name,
            "drafts": answer.drafts,
            "runs": answer.runs,
            "anomaly": finding.anomaly,
            "with_bug": [attrs.asdict(verdict) for verdict in answer.sick],
            "without_bug": [attrs.asdict(verdict) for verdict in answer.healthy],
        },
    )
