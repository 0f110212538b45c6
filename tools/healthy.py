"""`python -m tools.healthy [PROFILE...]`: a sweep of healthy seeds, resumable."""

import os
import resource
import shutil
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs
import rich_click as click
from attrs import define, field, frozen

from fencepost.campaign.driver.campaign_driver import Campaign, CampaignProgress, drive
from fencepost.campaign.swarm.profiles import GENERAL, profile_named
from fencepost.campaign.workers.results import CampaignResult, Job
from fencepost.console.options import jobs_option, json_option
from fencepost.console.output import Bar, Output, add_row, table
from fencepost.traces.errors import ExitCode, strongest
from tools import program
from tools.ledger import TOP, Ledger, digest

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
SEEDS = 100_000
SLICE = 500
"""Seeds per slice: a minute or two, after which the workers are new."""
LOOKS = 20
"""How often a slice's memory is looked at."""


JUDGED = ("campaign", "checkers", "impl", "model", "sim", "traces")
"""What a result depends on, of the package's folders."""


@frozen(kw_only=True)
class Slice:
    """Seeds [first, first + runs) of one profile."""

    # Digest of the code.
    source: str
    profile: str
    first: int
    runs: int
    operations: int
    events: int
    rechecked: int
    # (seed, what was wrong with its run).
    amiss: tuple[tuple[int, str], ...]
    # Processor time of all workers, wall_s: of the slice.
    cpu_s: float
    wall_s: float
    # Bytes that the workers had together, at even distances from the slice's first runs to its last (empty
    # where the system does not tell).
    memory: tuple[int, ...] = ()
    # Of its campaign; a run that was too weak to mean anything is no finding.
    exit_code: int = ExitCode.NOTHING_FOUND


@frozen(kw_only=True)
class Sum:
    """Of one profile, or of all."""

    runs: int = 0
    operations: int = 0
    events: int = 0
    rechecked: int = 0
    amiss: tuple[tuple[int, str], ...] = ()
    cpu_s: float = 0.0
    wall_s: float = 0.0
    exit_code: int = ExitCode.NOTHING_FOUND

    def __add__(self, other: "Slice | Sum") -> "Sum":
        summed = ("runs", "operations", "events", "rechecked", "amiss", "cpu_s", "wall_s")
        return Sum(
            **{name: getattr(self, name) + getattr(other, name) for name in summed},
            exit_code=strongest({ExitCode(self.exit_code), ExitCode(other.exit_code)}),
        )


@cache
def source_digest() -> str:
    """Of the code that runs and judges."""
    return digest(path for folder in JUDGED for path in (TOP / "fencepost" / folder).rglob("*.py"))


def ledger_of(out: Path) -> Ledger[Slice]:
    """What was swept."""
    path = out / "ledger.jsonl"
    return Ledger.open(path, Slice, key=lambda one: (one.source, one.profile, one.first), of="healthy seeds")


def sum_of(ledger: Ledger[Slice], source: str, profile: str) -> Sum:
    """What there is of a profile, of this code."""
    wanted = (one for one in ledger.rows.values() if (one.source, one.profile) == (source, profile))
    return sum(wanted, Sum())


@define(kw_only=True)
class Sweep:
    """Where slices are run."""

    out: Path
    jobs: int
    # Traces of clean slices are not removed.
    keep: bool
    ledger: Ledger[Slice]
    source: str
    memory: list[int] = field(factory=list)

    def run(self, profile: str, seeds: range, bar: Bar, done: int) -> CampaignResult:
        """One slice: its runs are saved, judged, counted, and removed again unless something is amiss."""
        folder = self.out / f"{profile}-{seeds.start}-{self.source}"
        self.memory.clear()
        every = max(1, len(seeds) // LOOKS)

        def on_progress(progress: CampaignProgress) -> None:
            if progress.done % every == 0:
                self.memory.append(children_memory())
            bar.to(done + progress.done, f"{profile}, {progress.findings} with findings")

        spent, started = _children_s(), time.monotonic()
        result = drive(
            Campaign(
                seeds=seeds, job=Job(profile=profile), jobs=self.jobs, out=folder, resume=folder.exists()
            ),
            on_progress,
        )
        if result.interrupted:
            return result
        amiss = _amiss(result)
        self.ledger.add(
            Slice(
                source=self.source,
                profile=profile,
                first=seeds.start,
                runs=result.finished,
                operations=result.operations,
                events=result.events,
                rechecked=result.rechecked,
                amiss=amiss,
                cpu_s=round(_children_s() - spent, 2),
                wall_s=round(time.monotonic() - started, 2),
                memory=tuple(self.memory),
                exit_code=result.exit_code,
            )
        )
        if not amiss and not self.keep:
            shutil.rmtree(folder)
        return result


def children_memory() -> int:
    """Bytes that the children have together; what they share counts in each. 0 where the system does not
    tell."""
    total = 0
    for listed in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for child in listed.read_text().split():
            try:
                total += int((Path("/proc") / child / "statm").read_text().split()[1]) * PAGE
            except OSError:
                continue  # it has ended
    return total


def _children_s() -> float:
    """Processor time of all workers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _amiss(result: CampaignResult) -> tuple[tuple[int, str], ...]:
    """Whatever keeps a slice from being clean, by seed."""
    return (
        *result.failing,
        *((seed, "too weak to mean anything") for seed in result.broken),
        *((seed, "undecided") for seed in result.undecided),
        *((seed, f"crashed: {why}") for seed, why in result.crashed),
        *((seed, "another digest when run again") for seed in result.disagreeing),
    )


def _slices(profiles: tuple[str, ...], first: int, each: int, size: int) -> Iterator[tuple[str, range]]:
    """In rounds over the profiles, so that a sweep that is ended has seen all of them."""
    for start in range(first, first + each, size):
        for profile in profiles:
            yield profile, range(start, min(start + size, first + each))


def _show(sums: dict[str, Sum], output: Output) -> None:
    rows = table("profile", ">runs", ">operations", ">run twice", ">amiss", ">CPU ms each", ">CPU h")
    for name, one in (*sums.items(), ("all", sum(sums.values(), Sum()))):
        each = f"{one.cpu_s * 1000 / one.runs:.0f}" if one.runs else ""
        cells = (f"{one.runs:,}", f"{one.operations:,}", f"{one.rechecked:,}", len(one.amiss), each)
        add_row(rows, name, *cells, f"{one.cpu_s / 3600:.2f}", style="red" if one.amiss else "")
    output.say(rows)
    for name, one in sums.items():
        for seed, what in one.amiss:
            output.say(f"{name} {seed}: {what}")


@click.command("healthy", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.rich_config({"text_paragraph_linebreaks": "\n\n"})
@click.argument("profiles", nargs=-1)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    metavar="N",
    help="Over all of these together.",
)
@click.option(
    "--first", type=click.IntRange(0), default=0, show_default=True, help="Of each profile's seeds."
)
@click.option(
    "--slice", "size", type=click.IntRange(1), default=SLICE, show_default=True, metavar="N",
    help="Seeds at a stretch, in workers that live as long.",
)  # fmt: skip
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/healthy"),
    show_default=True,
    help="Where counts are kept, and the traces of slices that are not clean; a sweep goes on where the "
    "last one of the same code ended.",
)
@click.option("--keep", is_flag=True, help="Keep the traces of clean slices, too.")
@click.option("--report", is_flag=True, help="Sweep nothing; tell what was swept.")
@jobs_option
@json_option
def command(
    profiles: tuple[str, ...],
    seeds: int,
    first: int,
    size: int,
    out: Path,
    keep: bool,
    report: bool,
    jobs: int,
    output: Output,
) -> ExitCode:
    """Run healthy seeds: nothing may be found, no run may crash, or differ when it is run again.

    PROFILE is as `fencepost campaign --profile` takes it: "default+transactions".

    Exits 1 if there was a finding, 3 if a run crashed, differed, could not be decided, or was too weak to
    mean anything.

    \b
    Examples
      # the nightly sweep: 100,000 seeds, some hours; after a Ctrl-C the same line goes on
      python -m tools.healthy
      # an hour in the same workers: is their memory flat?
      python -m tools.healthy default --seeds 25000 --slice 25000 --jobs 1
    """
    names = profiles or (GENERAL,)
    for name in names:
        profile_named(name)
    ledger, source = ledger_of(out), source_digest()
    sweep = Sweep(out=out, jobs=jobs, keep=keep, ledger=ledger, source=source)
    todo = [
        (profile, chosen)
        for profile, chosen in _slices(names, first, -(-seeds // len(names)), size)
        if not report and (source, profile, chosen.start) not in ledger.rows
    ]
    interrupted, done = False, 0
    with output.progress("healthy seeds", sum(len(chosen) for _, chosen in todo)) as bar:
        for profile, chosen in todo:
            interrupted = sweep.run(profile, chosen, bar, done).interrupted
            if interrupted:
                break
            done += len(chosen)
    sums = {profile: sum_of(ledger, source, profile) for profile in names}
    _show(sums, output)
    if interrupted:
        output.note("interrupted; every finished run is kept, the same line goes on")
    output.emit(
        {
            "source": source,
            "profiles": {name: attrs.asdict(one) for name, one in sums.items()},
            "interrupted": interrupted,
        }
    )
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode(sum(sums.values(), Sum()).exit_code)


if __name__ == "__main__":
    program.run(command, "healthy")
