"""`fencepost campaign bugs`: the zoo of planted bugs, and how many seeds each takes to be found."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from fencepost.cli.campaign.driving import drive_with_bar
from fencepost.console.options import FOLDER, default_option, jobs_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode, FencepostError, strongest, unknown_name

if TYPE_CHECKING:
    from fencepost.bugs import PlantedBug
    from fencepost.bugs.storage import LogBug
    from fencepost.campaign.driver.campaign_driver import Campaign
    from fencepost.campaign.hunting.log_hunt import LogHunt
    from fencepost.campaign.hunting.swarm_hunt import Hunt
    from fencepost.campaign.workers.results import CampaignResult

COMPLAINT_WIDTH = 72


@click.group("bugs", short_help="The planted bugs: what they break, how fast they are found.")
def command() -> None:
    """Documented bugs of Kafka's replication and controller, planted on purpose.

    Each removes one protection of the reference implementation. A checker that has never failed proves
    nothing. So the general swarm must find every bug, and must find nothing in the healthy implementation.
    The log machine finds the bugs of the log; it does to one log everything that a broker and a disk can do.

    \b
    Examples
      fencepost campaign bugs list
      fencepost campaign bugs show KIP-101
      fencepost campaign bugs hunt KIP-101
      # a bug of the log, shown as a script that can be run
      fencepost campaign bugs hunt KAFKA-6975
      # all of them, with a track record
      fencepost campaign bugs hunt --seeds 2000 --out out/bugs
    """


@command.command("list", short_help="What there is.")
@json_option
def list_bugs(output: Output) -> ExitCode:
    """List the planted bugs: id, the invariant that breaks, the missing protection.

    \b
    Examples
      fencepost campaign bugs list
      fencepost campaign bugs list --json
    """
    from fencepost.bugs import BUGS
    from fencepost.bugs.storage import LOG_BUGS

    rows = table("bug", "breaks", "found by", "the protection that is missing")
    for bug in BUGS.values():
        protection = bug.protection
        add_row(rows, bug.bug, protection.breaks, "swarm", _with_mark(protection.says, bug.injected))
    for log_bug in LOG_BUGS.values():
        protection = log_bug.protection
        says = _with_mark(protection.says, log_bug.injected)
        add_row(rows, log_bug.bug, protection.breaks, "log machine", says)
    output.say(rows)
    return output.end(
        ExitCode.NOTHING_FOUND,
        {
            "bugs": [_swarm_bug(bug) for bug in BUGS.values()],
            "log_bugs": [_log_bug(bug) for bug in LOG_BUGS.values()],
        },
    )


@command.command("show", short_help="Everything about one bug.")
@click.argument("bug", metavar="ID")
@json_option
def show_bug(bug: str, output: Output) -> ExitCode:
    """Show one planted bug: the missing protection, the invariant that it breaks, what happens then, how it
    shows, and how to see it.

    \b
    Examples
      fencepost campaign bugs show KIP-101
      fencepost campaign bugs show KAFKA-6975 --json
    """
    from fencepost.bugs import BUGS
    from fencepost.bugs.storage import LOG_BUGS

    _check_ids((bug,))
    known = _log_bug(LOG_BUGS[bug]) if bug in LOG_BUGS else {}
    if bug in BUGS:
        both = {"found_by": "swarm and log machine"} if known else {}
        known = _swarm_bug(BUGS[bug]) | both
    hunt = f"fencepost campaign bugs hunt {bug}"
    rows = table("", "")
    for name, value in {"bug": bug, **known, "measure it": hunt}.items():
        if name == "injected" and not value:
            continue
        words = ", ".join(value) if isinstance(value, list) else value
        add_row(rows, name.replace("_", " "), words)
    output.say(rows)
    return output.end(ExitCode.NOTHING_FOUND, {**known, "hunt": hunt})


def _swarm_bug(bug: "PlantedBug") -> dict[str, Any]:
    more = {"anomalies": sorted(bug.anomalies), "family": bug.family}
    return _of_any(bug) | more | {"found_by": "swarm"}


def _log_bug(bug: "LogBug") -> dict[str, Any]:
    return _of_any(bug) | {"found_by": "log machine"}


def _of_any(bug: "PlantedBug | LogBug") -> dict[str, Any]:
    return {
        "bug": bug.bug,
        "breaks": bug.protection.breaks,
        "protection": bug.protection.name,
        "says": bug.protection.says,
        "injected": bug.injected,
        "story": _story(bug.part),
    }


def _with_mark(says: str, injected: str) -> str:
    """What is missing; of an injected bug, that nothing is."""
    return f"{says} (injected)" if injected else says


def _story(part: type) -> str:
    """What happened in Kafka, from the docstring of the planted part."""
    return " ".join((part.__doc__ or "").split())


@command.command("hunt", short_help="Measure how many seeds each takes.")
@click.argument("bugs", nargs=-1, metavar="[ID]...")
@default_option(
    "--seeds", type=click.IntRange(1, 1_000_000), default=2_000, help="Seeds to try at most, from 0."
)
@default_option(
    "--ranges",
    type=click.IntRange(1, 100),
    default=1,
    help="Hunt in this many ranges of seeds, and report the median.",
)
@default_option(
    "--examples",
    type=click.IntRange(1, 1_000_000),
    default=4_000,
    help="Examples of the log machine to try at most, for a bug of the log.",
)
@default_option("--shrink/--no-shrink", default=True, help="Shorten the scripts of log bugs.")
@jobs_option
@click.option("--out", type=FOLDER, help="Keep the track record here; bugs in it are not hunted again.")
@json_option
def hunt(
    bugs: tuple[str, ...],
    seeds: int,
    ranges: int,
    examples: int,
    shrink: bool,
    jobs: int,
    out: Path | None,
    output: Output,
) -> ExitCode:
    """Hunt planted bugs, and measure how many seeds of the general swarm the first finding takes, or how many
    examples of the log machine.

    Seeds are those of any campaign (docs/results/track-record.md). With --out the record survives a Ctrl-C.

    \b
    Examples
      fencepost campaign bugs hunt KIP-101 --seeds 200
      fencepost campaign bugs hunt --ranges 3 --out out/bugs --json
    """
    from fencepost.campaign.hunting.log_hunt import read_log_record
    from fencepost.campaign.hunting.swarm_hunt import read_record

    _check_ids(bugs)
    record, log_record = read_record(out, seeds, ranges), read_log_record(out, examples)
    hunts = _hunt_swarm_bugs(bugs, seeds, ranges, jobs, record, out, output)
    log_hunts = []
    if not any(found.interrupted for found in hunts):
        log_hunts = _hunt_log_bugs(bugs, examples, shrink, log_record, out, output)
    if hunts:
        _show(hunts, output)
    _show_log_hunts(log_hunts, out, output)
    code = strongest({found.exit_code for found in hunts} | {found.exit_code for found in log_hunts})
    return output.end(
        code,
        {
            "hunts": [attrs.asdict(found) for found in hunts],
            "log_hunts": [attrs.asdict(found) for found in log_hunts],
        },
    )


def _check_ids(bugs: tuple[str, ...]) -> None:
    """Raises FencepostError for an id that is in neither table."""
    from fencepost.bugs import BUGS
    from fencepost.bugs.storage import LOG_BUGS

    known = BUGS.keys() | LOG_BUGS.keys()
    for bug in bugs:
        if bug not in known:
            raise FencepostError(
                expected=f"one of {', '.join(sorted(known))}",
                seen=unknown_name(bug, known),
                where="planted bugs",
                hint="`fencepost campaign bugs list` shows them",
            )


def _hunt_swarm_bugs(
    bugs: tuple[str, ...],
    seeds: int,
    ranges: int,
    jobs: int,
    record: "dict[str, Hunt]",
    out: Path | None,
    output: Output,
) -> "list[Hunt]":
    from fencepost.bugs import BUGS
    from fencepost.campaign.hunting.swarm_hunt import hunt_ranges, write_record
    from fencepost.processes import forking

    def drive(campaign: "Campaign", name: str) -> "CampaignResult":
        return drive_with_bar(campaign, output, name)

    hunts = []
    with forking.kept():  # a campaign for each bug
        for bug in [bug for bug in bugs if bug in BUGS] if bugs else BUGS:
            found = record.get(bug) or hunt_ranges(BUGS[bug], seeds, ranges, jobs, drive)
            hunts.append(found)
            if found.interrupted:
                break
            record[bug] = found
            write_record(out, record)
    return hunts


def _hunt_log_bugs(
    bugs: tuple[str, ...],
    examples: int,
    shrink: bool,
    record: "dict[str, LogHunt]",
    out: Path | None,
    output: Output,
) -> "list[LogHunt]":
    from fencepost.bugs.storage import LOG_BUGS
    from fencepost.campaign.hunting.log_hunt import hunt_log_bug, write_log_record

    hunts = []
    for bug in [bug for bug in bugs if bug in LOG_BUGS] if bugs else LOG_BUGS:
        found = record.get(bug)
        if found is None:
            with output.progress(bug, examples) as bar:
                found = hunt_log_bug(bug, examples, shrink, bar.to)
        hunts.append(found)
        if found.interrupted:
            break
        record[bug] = found
        write_log_record(out, record)
    return hunts


def _show(hunts: "list[Hunt]", output: Output) -> None:
    many = max(len(found.ranges) for found in hunts) > 1
    columns = [">median"] if many else []
    rows = table("bug", "breaks", ">seeds needed", *columns, "found as", ">seconds", "see it")
    for found in hunts:
        needed: Any = found.seeds_needed if found.seeds_needed is not None else f"not in {found.seeds_tried}"
        style = "green" if found.seeds_needed is not None else "bold yellow"
        middle = [found.median if found.median is not None else "none"] if many else []
        cells = (found.bug, found.breaks, needed, *middle, found.anomaly, found.wall_s, found.command)
        add_row(rows, *cells, style=style)
    output.say(rows)
    for found in hunts:
        if found.others:
            output.say(f"{found.bug}: on the way also {', '.join(found.others)}")


def _show_log_hunts(hunts: "list[LogHunt]", out: Path | None, output: Output) -> None:
    """Print a table, and the scripts or where they are."""
    if not hunts:
        return
    rows = table("bug of the log", "breaks", ">examples needed", ">steps", "found as", ">CPU s", "see it")
    for found in hunts:
        none = found.examples_needed is None
        needed: Any = f"not in {found.examples_tried}" if none else found.examples_needed
        see = f"python {out / found.bug}.py" if out and found.script else ""
        add_row(
            rows, found.bug, found.breaks, needed, found.steps or "", found.complaint[:COMPLAINT_WIDTH],
            found.cpu_s, see, style="bold yellow" if none else "green",
        )  # fmt: skip
    output.say(rows)
    for found in hunts:
        if found.others:
            output.say(f"{found.bug}: on the way also {found.others[0][:COMPLAINT_WIDTH]}")
        if found.script and out is None:
            output.say("", found.script)
