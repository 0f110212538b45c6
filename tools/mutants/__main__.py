"""`python -m tools.mutants [AREA...]`: small faults all over impl/, each judged by runs of the swarm."""

import signal
import sys
from pathlib import Path

import attrs
import rich_click as click

from fencepost.console.options import jobs_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode, FencepostError
from tools.mutants.ledger import PAGE, Ledger, digest, equivalents, name_of
from tools.mutants.subjects import AREAS, files_of, in_order, mutants_of
from tools.mutants.trial import Outcome, Result
from tools.mutants.workers import lines_reached, outcomes, preload, warm
from tools.mutation.checkers import TOP
from tools.mutation.fault import Fault

SEEDS = 300
PROFILES = (
    "default",
    "chaos",
    "reassignment",
    "groups",
    "producer",
    "elections",
    "storage",
    "fencing",
    "truncation",
)
"""In turn, until one swarm draws from all features."""
REACH_SEEDS = 360
"""Healthy runs, in which a line is come to or not."""


@click.command("mutants", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.rich_config({"text_paragraph_linebreaks": "\n\n"})
@click.argument("areas", nargs=-1, type=click.Choice(sorted(AREAS)))
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N mutants; all without it.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of the sample: another seed is a fresh one.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    metavar="N",
    help="Runs of each mutant.",
)
@click.option(
    "--first", type=click.IntRange(0), default=0, show_default=True, help="The first seed of each profile."
)
@click.option("--profile", "profiles", multiple=True, help="Profiles of the swarm, taken in turn.")
@click.option("--only", default="", metavar="TEXT", help="Only mutants that have this text in their name.")
@click.option(
    "--reach/--no-reach",
    default=True,
    help="Measure first which lines runs come to, and try no mutant elsewhere.",
)
@click.option("--list", "listed", is_flag=True, help="Try nothing; name the mutants.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/mutants"),
    show_default=True,
    help="Results; a run goes on where the last one ended.",
)
@jobs_option
@json_option
def command(
    areas: tuple[str, ...],
    sample: int | None,
    seed: int,
    seeds: int,
    first: int,
    profiles: tuple[str, ...],
    only: str,
    reach: bool,
    listed: bool,
    out: Path,
    jobs: int,
    as_json: bool,
) -> ExitCode:
    """Put small faults into the implementation, one at a time, and let the swarm's judges convict them.

    Exits 1 if a mutant survived that is not listed as equivalent.

    \b
    Examples
      # a fresh sample of fifty
      python -m tools.mutants --sample 50 --seed 7 --json
      # all of the controller's; after a Ctrl-C the same line goes on
      python -m tools.mutants controller
    """
    output = Output(as_json)
    chosen = profiles or PROFILES
    mutants = [
        (area, fault)
        for area in areas or tuple(AREAS)
        for file in files_of(area)
        for fault in mutants_of(file)
    ]
    area_of = {name_of(fault): area for area, fault in mutants}
    faults = in_order([fault for _, fault in mutants if only in fault.name], seed)[:sample]
    if listed:
        for fault in faults:
            output.say(name_of(fault))
        output.emit({"mutants": [name_of(fault) for fault in faults], "of": len(mutants)})
        return ExitCode.NOTHING_FOUND
    sources = {fault.file: (TOP / fault.file).read_bytes() for fault in faults}
    ledger = Ledger(out / f"{'+'.join(chosen)}-{first}-{seeds}.jsonl")
    ledger.read()
    todo = [fault for fault in faults if (name_of(fault), digest(sources[fault.file])) not in ledger.known]
    interrupted = False
    try:
        _try(todo, sources, area_of, ledger, chosen, first, seeds, jobs, reach, output)
    except KeyboardInterrupt:
        interrupted = True
        output.note("interrupted; every result is kept, the same line goes on")
    results = [
        result
        for fault in faults
        if (result := ledger.known.get((name_of(fault), digest(sources[fault.file])))) is not None
    ]
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    counts = ledger.counts(results, page)
    given = equivalents(page)
    left = [
        result
        for result in results
        if result.outcome in (Outcome.SURVIVED, Outcome.UNREACHED) and result.name not in given
    ]
    _show(results, left, counts, output)
    output.emit(
        {**counts, "of": len(mutants), "seed": seed, "survivors": [attrs.asdict(result) for result in left]}
    )
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.FINDINGS if left else ExitCode.NOTHING_FOUND


def _try(
    todo: list[Fault],
    sources: dict[str, bytes],
    area_of: dict[str, str],
    ledger: Ledger,
    profiles: tuple[str, ...],
    first: int,
    seeds: int,
    jobs: int,
    reach: bool,
    output: Output,
) -> None:
    if not todo:
        return
    preload()
    warm(profiles, first)

    def keep(fault: Fault, outcome: str, **more: object) -> None:
        name, source = name_of(fault), digest(sources[fault.file])
        ledger.add(Result(name=name, source=source, area=area_of[name], outcome=outcome, **more))  # type: ignore[arg-type]

    if reach:
        output.note(f"measuring what {REACH_SEEDS} healthy runs come to")
        reached = lines_reached(profiles, first, REACH_SEEDS)
        tried = []
        for fault in todo:
            if set(range(fault.lines[0], fault.lines[1] + 1)) & set(reached.get(fault.file, ())):
                tried.append(fault)
            else:
                keep(fault, Outcome.UNREACHED)
        todo = tried
    survived = 0
    with output.progress("mutants", len(todo)) as bar:
        work = [(fault, sources[fault.file]) for fault in todo]
        for done, (fault, answer) in enumerate(outcomes(work, profiles, first, seeds, jobs), start=1):
            outcome, runs, by, profile, seed, cpu_s = answer
            keep(fault, outcome, runs=runs, by=by, profile=profile, seed=seed, cpu_s=round(cpu_s, 1))
            survived += outcome is Outcome.SURVIVED
            bar.to(done, f"{survived} survived")


def _show(results: list[Result], left: list[Result], counts: dict[str, object], output: Output) -> None:
    rows = table("survivor", "outcome", ">runs")
    for result in sorted(left, key=lambda result: (result.area, result.name)):
        add_row(rows, result.name, result.outcome, result.runs)
    if rows.row_count:
        output.say(rows, "")
    sums = table("area", *(f">{outcome.value}" for outcome in Outcome))
    for area in AREAS:
        here = [result.outcome for result in results if result.area == area]
        if here:
            add_row(sums, area, *(here.count(outcome) for outcome in Outcome))
    output.say(
        sums,
        f"score {counts['score']} %: convicted by a judge or by no progress, of all that are not equivalent",
    )


def main() -> None:
    """Entry of the program."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = command.main(standalone_mode=False, prog_name="python -m tools.mutants")
    except (FencepostError, click.ClickException) as error:
        words = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"mutants: {words}", err=True)
        code = ExitCode.USAGE
    sys.exit(int(code or 0))


if __name__ == "__main__":
    main()
