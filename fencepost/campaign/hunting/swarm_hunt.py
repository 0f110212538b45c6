"""Hunts for planted bugs with the swarm: seeds in order until a run shows the bug by a name of its own.

Owns what a hunt is and its track record on disk. Must not know how a campaign is driven or shown: the caller
hands in who drives it.
"""

from collections.abc import Callable
from pathlib import Path

import attrs
import msgspec
from attrs import frozen

from fencepost.bugs import PlantedBug
from fencepost.campaign.driver.campaign_driver import Campaign
from fencepost.campaign.workers.results import CampaignResult, Job, RunResult
from fencepost.report.commands import replay_seed
from fencepost.traces.errors import ExitCode, TraceError
from fencepost.traces.whole_file import write_whole

RECORD = "track-record.json"
RANGE = 1_000_000
"""From the first seed of a range to that of the next."""


Drive = Callable[[Campaign, str], CampaignResult]
"""Drives a campaign to its end, under a name for people."""


@frozen(kw_only=True)
class Hunt:
    """The track record of one bug."""

    bug: str
    breaks: str
    says: str
    seeds_tried: int
    # Runs up to and including the first one that shows it, from seed 0 on, None if none did.
    seeds_needed: int | None = None
    # The same for each range of seeds, that one first.
    ranges: tuple[int | None, ...] = ()
    anomaly: str = ""
    command: str = ""
    # What else was found on the way, by name.
    others: tuple[str, ...] = ()
    # Real time of this hunt.
    wall_s: float = 0.0
    interrupted: bool = False

    @property
    def median(self) -> int | None:
        """Seeds needed in the middle one of the ranges (the upper one of two); None if most of them did not
        show it."""
        needed = sorted(self.ranges, key=lambda one: (one is None, one))
        return needed[len(needed) // 2] if needed else None

    @property
    def exit_code(self) -> ExitCode:
        """Found is what is wanted; not found leaves the question open."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.NOTHING_FOUND if self.seeds_needed is not None else ExitCode.UNDECIDED


def hunt_ranges(bug: PlantedBug, seeds: int, ranges: int, jobs: int, drive: Drive) -> Hunt:
    """The hunt from seed 0, and how many seeds it took there and in the other ranges."""
    first = _hunt(bug, range(seeds), jobs, drive)
    hunts = [first]
    for number in range(1, ranges):
        if hunts[-1].interrupted:
            break
        hunts.append(_hunt(bug, range(number * RANGE, number * RANGE + seeds), jobs, drive))
    return attrs.evolve(
        first,
        ranges=tuple(one.seeds_needed for one in hunts),
        wall_s=round(sum(one.wall_s for one in hunts), 1),
        interrupted=hunts[-1].interrupted,
    )


def _hunt(bug: PlantedBug, seeds: range, jobs: int, drive: Drive) -> Hunt:
    """Seeds in order until one shows the bug by a name that is the bug's own, whatever else the run shows."""
    own: dict[int, str] = {}
    unnamed: set[int] = set()  # seeds of runs that something else names

    def shows(result: RunResult) -> bool:
        names = [finding.anomaly for finding in result.findings if finding.anomaly in bug.anomalies]
        if names:
            own[result.seed] = names[0]
            if names[0] != result.anomaly:
                unnamed.add(result.seed)
        return bool(names)

    campaign = Campaign(seeds=seeds, job=Job(bugs=(bug.bug,)), jobs=jobs, until=shows, recheck_one_in=0)
    result = drive(campaign, bug.bug)
    first = min(own.items(), default=None)
    return Hunt(
        bug=bug.bug,
        breaks=bug.protection.breaks,
        says=bug.protection.says,
        seeds_tried=result.finished,
        seeds_needed=first[0] - seeds.start + 1 if first else None,
        anomaly=first[1] if first else "",
        command=_command(bug, *first, first[0] in unnamed) if first else "",
        others=tuple(sorted({anomaly for _, anomaly in result.failing} - bug.anomalies)),
        wall_s=round(result.wall_s, 1),
        interrupted=result.interrupted,
    )


def _command(bug: PlantedBug, seed: int, anomaly: str, named_otherwise: bool) -> str:
    return replay_seed(seed, bugs=(bug.bug,), anomaly=anomaly if named_otherwise else "")


def read_record(out: Path | None, seeds: int, ranges: int) -> dict[str, Hunt]:
    """The record of earlier hunts; one that gave up below today's budget, or has fewer ranges, does not
    count. Raises TraceError."""
    if out is None or not (out / RECORD).exists():
        return {}
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


def write_record(out: Path | None, record: dict[str, Hunt]) -> None:
    """Keep the record in its folder, whole or not at all; nothing without a folder."""
    if out is None:
        return
    hunts = [attrs.asdict(record[bug]) for bug in sorted(record)]
    write_whole(out / RECORD, msgspec.json.format(msgspec.json.encode(hunts)) + b"\n")
