"""`python -m tools.mutants [AREA...]`: small faults all over impl/, each judged by runs of the swarm."""

from pathlib import Path

import attrs
import rich_click as click

from fencepost.console.options import jobs_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode
from tools import program
from tools.mutants.ledger import PAGE, Ledger, digest, equivalents, name_of
from tools.mutants.subjects import AREAS, files_of, in_order, mutants_of
from tools.mutants.trial import PATIENCE, Outcome, Result, places
from tools.mutants.workers import Work, measured, outcomes, preload_judges, preload_runs, warm
from tools.mutation.checkers import TOP
from tools.mutation.fault import Fault

SEEDS = 300
PROFILES = ("everything",)
"""The one swarm."""
LOG = "log"
"""The area that the log machine judges, too."""
EXAMPLES = 5_000
"""Of the log machine."""
NEVER_ANOTHER = "it never gives another value"
WARM = 3
"""Healthy runs, for what is compiled."""


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
@click.option(
    "--patience",
    type=click.IntRange(1),
    default=PATIENCE,
    show_default=True,
    metavar="N",
    help="After N runs that differ and are not convicted a mutant counts as survived.",
)
@click.option(
    "--examples",
    type=click.IntRange(0),
    default=EXAMPLES,
    show_default=True,
    metavar="N",
    help="Of the log machine, for mutants of the log that no run convicts.",
)
@click.option("--only", default="", metavar="TEXT", help="Only mutants that have this text in their name.")
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
    patience: int,
    examples: int,
    only: str,
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
    interrupted = False
    try:
        _try(faults, sources, area_of, ledger, chosen, first, seeds, patience, examples, jobs, out, output)
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
    faults: list[Fault],
    sources: dict[str, bytes],
    area_of: dict[str, str],
    ledger: Ledger,
    profiles: tuple[str, ...],
    first: int,
    seeds: int,
    patience: int,
    examples: int,
    jobs: int,
    out: Path,
    output: Output,
) -> None:
    todo = [fault for fault in faults if (name_of(fault), digest(sources[fault.file])) not in ledger.known]
    if not todo:
        return
    preload_judges()
    runs = tuple(places(profiles, first, seeds))
    output.note(f"measuring what {len(runs)} healthy runs come to")
    files = tuple(file for area in AREAS for file in files_of(area))
    reached = measured(files, runs, tuple(faults), out)
    of_log = examples > 0 and any(area_of[name_of(fault)] == LOG for fault in todo)
    imported = preload_runs(runs[:WARM], log_machine=of_log)
    warm(tuple((*runs[number], reached.digests[number]) for number in range(min(WARM, len(runs)))))

    def keep(fault: Fault, outcome: str, **more: object) -> None:
        name, source = name_of(fault), digest(sources[fault.file])
        ledger.add(Result(name=name, source=source, area=area_of[name], outcome=outcome, **more))  # type: ignore[arg-type]

    work = []
    for fault in todo:
        come, numbers = reached.of(fault.file, fault.lines), reached.of_fault(fault)
        idle = (Outcome.SURVIVED, NEVER_ANOTHER) if come else (Outcome.UNREACHED, "")
        on_log = examples if area_of[name_of(fault)] == LOG else 0
        if not numbers and not on_log:
            keep(fault, idle[0], by=idle[1])
            continue
        work.append(
            Work(
                fault=fault,
                source=sources[fault.file],
                runs=tuple((*runs[number], reached.digests[number]) for number in numbers),
                early=reached.is_early(fault),
                passed=bool(numbers) and min(numbers) > min(come),
                patience=patience,
                idle=idle,
                examples=on_log,
            )
        )
    survived = 0
    with output.progress("mutants", len(work)) as bar:
        for done, (fault, answer) in enumerate(outcomes(work, jobs, imported), start=1):
            outcome, tried, by, profile, seed, differed, cpu_s = answer
            keep(
                fault,
                outcome,
                runs=tried,
                by=by,
                profile=profile,
                seed=seed,
                differed=differed,
                cpu_s=round(cpu_s, 1),
            )
            survived += outcome is Outcome.SURVIVED
            bar.to(done, f"{survived} survived")


def _show(results: list[Result], left: list[Result], counts: dict[str, object], output: Output) -> None:
    rows = table("survivor", "outcome", ">runs", ">differed")
    for result in sorted(left, key=lambda result: (result.area, result.name)):
        add_row(rows, result.name, result.outcome, result.runs, result.differed)
    if rows.row_count:
        output.say(rows, "")
    sums = table("area", *(f">{outcome.value}" for outcome in Outcome))
    for area in AREAS:
        here = [result.outcome for result in results if result.area == area]
        if here:
            add_row(sums, area, *(here.count(outcome) for outcome in Outcome))
    output.say(
        sums,
        f"score {counts['score']} %: convicted by a judge or by no progress, of all that are not equivalent; "
        f"{counts['score with the log machine']} % with the log machine",
    )


def main() -> None:
    """Entry of the program."""
    program.run(command, "mutants")


if __name__ == "__main__":
    main()
