"""`fencepost bugs`: the zoo of planted bugs, and how many seeds each takes to be found."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import rich_click as click
from attrs import frozen

from fencepost.cli.campaign import drive_with_bar
from fencepost.cli.console import Output, add_row, table
from fencepost.cli.log_hunts import LogHunt, hunt_log_bug, read_log_record, show_log_hunts, write_log_record
from fencepost.cli.options import jobs_option, json_option, replay_seed
from fencepost.traces.errors import ExitCode, FencepostError, strongest

if TYPE_CHECKING:
    from fencepost.campaign.bugs import PlantedBug

RECORD = "track-record.json"
RANGE = 1_000_000
"""From the first seed of a range to that of the next."""


@frozen(kw_only=True)
class Hunt:
    """The track record of one bug. seeds_needed: runs up to and including the first one that shows it, from seed 0 on, None if none did; ranges: the same for
    each range of seeds, that one first; others: what else was found on the way, by name; wall_s: real time of this hunt."""

    bug: str
    breaks: str
    says: str
    seeds_tried: int
    seeds_needed: int | None = None
    ranges: tuple[int | None, ...] = ()
    anomaly: str = ""
    command: str = ""
    others: tuple[str, ...] = ()
    wall_s: float = 0.0
    interrupted: bool = False

    @property
    def median(self) -> int | None:
        """Seeds needed in the middle one of the ranges (the upper one of two); None if most of them did not show it."""
        needed = sorted(self.ranges, key=lambda one: (one is None, one))
        return needed[len(needed) // 2] if needed else None

    @property
    def exit_code(self) -> ExitCode:
        """Found is what is wanted; not found leaves the question open."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.NOTHING_FOUND if self.seeds_needed is not None else ExitCode.UNDECIDED


@click.group("bugs")
def command() -> None:
    """Documented bugs of Kafka's replication and controller, planted on purpose.

    Each removes one protection of the reference implementation. A checker that has never failed proves nothing: the
    general swarm has to find every one of them, and nothing in the healthy implementation. Bugs of the log are found by
    the log machine, which does to one log whatever a broker and a disk can do.

    \b
    Examples
      fencepost bugs list
      fencepost bugs hunt KIP-101
      # a bug of the log, told as a script that anybody can run
      fencepost bugs hunt KAFKA-6975
      # all of them, with a track record
      fencepost bugs hunt --seeds 2000 --out out/bugs
    """


@command.command("list", short_help="What there is.")
@json_option
def list_bugs(as_json: bool) -> ExitCode:
    """List the planted bugs: id, the invariant that falls, the protection that is missing."""
    from fencepost.campaign.bugs import BUGS
    from fencepost.campaign.bugs.storage import LOG_BUGS

    output = Output(as_json)
    rows = table("bug", "breaks", "found by", "shows as", "the protection that is missing")
    for bug in BUGS.values():
        protection = bug.protection
        add_row(rows, bug.bug, protection.breaks, "swarm", ", ".join(sorted(bug.anomalies)), protection.says)
    for log_bug in LOG_BUGS.values():
        protection = log_bug.protection
        add_row(rows, log_bug.bug, protection.breaks, "log machine", "", protection.says)
    output.say(rows)
    output.emit(
        {
            "bugs": [
                {
                    "bug": bug.bug,
                    "breaks": bug.protection.breaks,
                    "anomalies": sorted(bug.anomalies),
                    "protection": bug.protection.name,
                    "says": bug.protection.says,
                    "profile": bug.profile,
                    "family": bug.family,
                    "found_by": "swarm",
                }
                for bug in BUGS.values()
            ],
            "log_bugs": [
                {
                    "bug": bug.bug,
                    "breaks": bug.protection.breaks,
                    "protection": bug.protection.name,
                    "says": bug.protection.says,
                    "story": " ".join(bug.story.split()),
                    "found_by": "log machine",
                }
                for bug in LOG_BUGS.values()
            ],
        }
    )
    return ExitCode.NOTHING_FOUND


@command.command("hunt", short_help="Measure how many seeds each takes.")
@click.argument("bugs", nargs=-1, metavar="[ID]...")
@click.option(
    "--seeds",
    type=click.IntRange(1, 1_000_000),
    default=2_000,
    show_default=True,
    help="Seeds to try at most, from 0.",
)
@click.option(
    "--ranges",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Hunt in so many ranges of seeds, and tell the median.",
)
@click.option(
    "--examples",
    type=click.IntRange(1, 1_000_000),
    default=4_000,
    show_default=True,
    help="Examples of the log machine to try at most, for a bug of the log.",
)
@click.option(
    "--shrink/--no-shrink", default=True, show_default=True, help="Shorten the scripts of log bugs."
)
@jobs_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Keep the track record here, in {RECORD}; bugs in it are not hunted again.",
)
@json_option
def hunt(
    bugs: tuple[str, ...],
    seeds: int,
    ranges: int,
    examples: int,
    shrink: bool,
    jobs: int,
    out: Path | None,
    as_json: bool,
) -> ExitCode:
    """Hunt planted bugs, and measure how many seeds of the general swarm the first finding takes, or how many examples of the log machine.

    No scenario is scripted for a bug: seeds and examples are those of any campaign. With --out the record survives a Ctrl-C.
    """
    output = Output(as_json)
    _check_ids(bugs)
    hunts = _hunt_swarm_bugs(bugs, seeds, ranges, jobs, out, output)
    log_hunts = []
    if not any(found.interrupted for found in hunts):
        log_hunts = _hunt_log_bugs(bugs, examples, shrink, out, output)
    if hunts:
        _show(hunts, output)
    show_log_hunts(log_hunts, out, output)
    code = strongest({found.exit_code for found in hunts} | {found.exit_code for found in log_hunts})
    output.emit(
        {
            "hunts": [attrs.asdict(found) for found in hunts],
            "log_hunts": [attrs.asdict(found) for found in log_hunts],
            "exit_code": int(code),
        }
    )
    return code


def _check_ids(bugs: tuple[str, ...]) -> None:
    """Raises FencepostError for one that is in neither table."""
    from fencepost.campaign.bugs import BUGS
    from fencepost.campaign.bugs.storage import LOG_BUGS

    known = BUGS.keys() | LOG_BUGS.keys()
    for bug in bugs:
        if bug not in known:
            raise FencepostError(
                expected=f"one of {', '.join(sorted(known))}",
                seen=bug,
                where="planted bugs",
                hint="`fencepost bugs list` shows them",
            )


def _hunt_swarm_bugs(
    bugs: tuple[str, ...], seeds: int, ranges: int, jobs: int, out: Path | None, output: Output
) -> list[Hunt]:
    from fencepost.campaign.bugs import BUGS

    record = _read(out, seeds, ranges)
    hunts = []
    for bug in [bug for bug in bugs if bug in BUGS] if bugs else BUGS:
        found = record.get(bug) or _hunt_ranges(BUGS[bug], seeds, ranges, jobs, output)
        hunts.append(found)
        if found.interrupted:
            break
        record[bug] = found
        _write(out, record)
    return hunts


def _hunt_log_bugs(
    bugs: tuple[str, ...], examples: int, shrink: bool, out: Path | None, output: Output
) -> list[LogHunt]:
    from fencepost.campaign.bugs.storage import LOG_BUGS

    record = read_log_record(out, examples)
    hunts = []
    for bug in [bug for bug in bugs if bug in LOG_BUGS] if bugs else LOG_BUGS:
        found = record.get(bug) or hunt_log_bug(bug, examples, shrink, output)
        hunts.append(found)
        if found.interrupted:
            break
        record[bug] = found
        write_log_record(out, record)
    return hunts


def _hunt_ranges(bug: "PlantedBug", seeds: int, ranges: int, jobs: int, output: Output) -> Hunt:
    """The hunt from seed 0, and how many seeds it took there and in the other ranges."""
    first = _hunt(bug, range(seeds), jobs, output)
    hunts = [first]
    for number in range(1, ranges):
        if hunts[-1].interrupted:
            break
        hunts.append(_hunt(bug, range(number * RANGE, number * RANGE + seeds), jobs, output))
    return attrs.evolve(
        first,
        ranges=tuple(one.seeds_needed for one in hunts),
        wall_s=round(sum(one.wall_s for one in hunts), 1),
        interrupted=hunts[-1].interrupted,
    )


def _hunt(bug: "PlantedBug", seeds: range, jobs: int, output: Output) -> Hunt:
    """Seeds in order until one shows the bug by a name that is the bug's own, whatever else the run shows."""
    from fencepost.campaign.driver import Campaign
    from fencepost.campaign.results import Job, RunResult

    own: dict[int, str] = {}

    def shows(result: RunResult) -> bool:
        names = [finding.anomaly for finding in result.findings if finding.anomaly in bug.anomalies]
        if names:
            own[result.seed] = names[0]
        return bool(names)

    campaign = Campaign(
        seeds=seeds,
        job=Job(profile=bug.profile, bugs=(bug.bug,)),
        jobs=jobs,
        until=shows,
        recheck_one_in=0,
    )
    result = drive_with_bar(campaign, output, bug.bug)
    first = min(own.items(), default=None)
    return Hunt(
        bug=bug.bug,
        breaks=bug.protection.breaks,
        says=bug.protection.says,
        seeds_tried=result.finished,
        seeds_needed=first[0] - seeds.start + 1 if first else None,
        anomaly=first[1] if first else "",
        command=replay_seed(first[0], profile=bug.profile, bugs=(bug.bug,)) if first else "",
        others=tuple(sorted({anomaly for _, anomaly in result.failing} - bug.anomalies)),
        wall_s=round(result.wall_s, 1),
        interrupted=result.interrupted,
    )


def _read(out: Path | None, seeds: int, ranges: int) -> dict[str, Hunt]:
    """The record of earlier hunts; one that gave up below today's budget, or has fewer ranges, does not count. Raises TraceError."""
    if out is None or not (out / RECORD).exists():
        return {}
    from fencepost.traces.errors import TraceError

    try:
        hunts = msgspec.json.decode((out / RECORD).read_bytes(), type=list[Hunt])
    except msgspec.DecodeError as error:
        raise TraceError(expected="a track record", seen=str(error), where=str(out / RECORD)) from None
    return {
        hunt.bug: hunt
        for hunt in hunts
        if len(hunt.ranges) >= ranges
        and (hunt.seeds_tried >= seeds or all(one is not None for one in hunt.ranges))
    }


def _write(out: Path | None, record: dict[str, Hunt]) -> None:
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    partial = out / f".{RECORD}.partial"
    hunts = [attrs.asdict(record[bug]) for bug in sorted(record)]
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(hunts)) + b"\n")
    partial.replace(out / RECORD)


def _show(hunts: list[Hunt], output: Output) -> None:
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
