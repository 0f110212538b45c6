"""`python -m tools.mutation CHECKER...`: the mutation score of checkers."""

from hashlib import blake2b
from pathlib import Path

import rich_click as click

from fencepost.console.options import jobs_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode
from tools import program
from tools.mutation.checkers import CHECKERS, TOP, Checker
from tools.mutation.faults import Fault, faults_of
from tools.mutation.ledger import REASONS, Ledger, Score, change, digest, reason_of, reasons, score
from tools.mutation.pool import Pool
from tools.mutation.trial import Trial, reach, tests_digest

BUDGET_S = 6.0
"""Of tests for each fault: what they do not notice, a longer look seldom does, and survivors are what a run
spends its time on."""
TARGET = 95.0
"""Per cent of the faults of a checker that its tests must notice."""


def sampled(faults: list[Fault], count: int | None, seed: str) -> list[Fault]:
    """The first `count` in an order that depends on names and the seed only, so that a larger sample contains
    a smaller one of the same seed; all if `count` is None."""
    shuffled = sorted(faults, key=lambda fault: blake2b((seed + fault.name).encode()).digest())
    return shuffled if count is None else shuffled[:count]


def examine(
    checker: Checker,
    *,
    jobs: int,
    out: Path,
    count: int | None,
    seed: str,
    again: bool,
    survivors: bool,
    budget: float,
    try_them: bool,
    output: Output,
) -> Score:
    """One checker, as far as it was not tried before. Raises FencepostError."""
    sources = {file: (TOP / file).read_bytes() for file in checker.files()}
    digests = {file: digest(source) for file, source in sources.items()}
    faults = [fault for file, source in sources.items() for fault in faults_of(file, source.decode())]
    ledger = Ledger(out / f"{checker.name}.jsonl")
    ledger.read()
    given = reasons(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    todo, tests = [], tests_digest(checker)
    for fault in sampled(faults, None if survivors else count, seed):
        known = ledger.of(fault, digests[fault.file])
        if known is None:
            wanted = not survivors
        elif survivors:
            wanted = known.outcome != "noticed" and not reason_of(fault, given)
        else:
            wanted = again and known.outcome != "noticed" and known.tests != tests
        if wanted:
            todo.append(fault)
    if todo and try_them:
        with (
            Pool(min(jobs, len(todo))) as pool,
            output.progress(f"{checker.name}: tests as they are", len(todo)) as bar,
        ):
            reached = reach(pool, checker, out / f"{checker.name}.reach.json")
            if reached.slow:
                output.note(f"{checker.name}: left out as too slow: {', '.join(reached.slow)}")
            trial = Trial(
                pool=pool,
                reached=reached,
                ledger=ledger,
                digests=digests,
                sources=sources,
                tests=tests,
                budget_s=budget,
            )
            survived = 0

            def heard(done: int, result: object) -> None:
                nonlocal survived
                survived += getattr(result, "outcome", "") != "noticed"
                bar.to(done, f"{checker.name}: {survived} survived")

            trial.run(todo, heard)
    return score(checker.name, faults, digests, ledger, given)


def _show(scores: list[Score], output: Output) -> None:
    rows = table("survivor", "function", "change", "reason")
    for one in scores:
        for fault, outcome, reason in one.survivors:
            why = reason or ("no test runs it" if outcome == "unreached" else "")
            place = f"{fault.file.removeprefix('fencepost/')}:{fault.lines[0]}"
            add_row(rows, place, fault.scope, change(fault), why, style="" if reason else "yellow")
    if rows.row_count:
        output.say(rows, "")
    sums = table(
        "checker",
        ">faults",
        ">tried",
        ">noticed",
        ">% of all",
        ">survived",
        ">equivalent",
        ">%",
        ">without a reason",
    )
    for one in scores:
        survived = len(one.survivors)
        of_all, of_those = f"{one.percent_of_all:.1f}", f"{one.percent:.1f}"
        cells = (
            one.checker,
            one.of,
            one.tried,
            one.noticed,
            of_all,
            survived,
            one.equivalent,
            of_those,
            one.unexplained,
        )
        add_row(sums, *cells, style="green" if one.percent >= TARGET else "red")
    output.say(sums)


@click.command("mutation", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.rich_config({"text_paragraph_linebreaks": "\n\n"})
@click.argument("names", nargs=-1, required=True, metavar="CHECKER...|all")
@jobs_option
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Only N faults of each checker, always the same ones.",
)
@click.option("--seed", default="", metavar="WORD", help="Another sample: the one of this word.")
@click.option("--again", is_flag=True, help="Try once more what survived other tests than those of now.")
@click.option("--survivors", is_flag=True, help="Try only what survived and has no reason, in every sample.")
@click.option(
    "--budget",
    type=click.FloatRange(1),
    default=BUDGET_S,
    show_default=True,
    metavar="SECONDS",
    help="Of tests for each fault: what survives the quickest ones, and those that noticed others, counts "
    "as survived.",
)
@click.option("--report", is_flag=True, help="Try nothing; tell what is known.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/mutation"),
    show_default=True,
    help="Where results are kept, a line per fault; a run goes on where the last one ended.",
)
@json_option
def command(
    names: tuple[str, ...],
    jobs: int,
    sample: int | None,
    seed: str,
    again: bool,
    survivors: bool,
    budget: float,
    report: bool,
    out: Path,
    as_json: bool,
) -> int:
    """Put small faults into a checker's rules, one at a time, and see whether its tests notice.

    The sources are changed in copies of the tree only. A fault is noticed if a test that runs it fails, or
    takes far too long.

    \b
    Examples
      # every fault of one checker
      python -m tools.mutation invariants
      # three hundred of the log judge's, resumable
      python -m tools.mutation log --sample 300
      # a hundred that nobody has looked at
      python -m tools.mutation log --sample 100 --seed 2411
      # what survived, with its reasons
      python -m tools.mutation all --report --json
    """
    unknown = [name for name in names if name != "all" and name not in CHECKERS]
    if unknown:
        raise click.UsageError(f"expected checkers out of all, {', '.join(CHECKERS)}, saw {unknown[0]!r}")
    chosen = [
        checker for name, checker in CHECKERS.items() if (name in names or "all" in names) and checker.files()
    ]
    output = Output(as_json)
    scores = [
        examine(
            checker,
            jobs=jobs,
            out=out,
            count=sample,
            seed=seed,
            again=again,
            survivors=survivors,
            budget=budget,
            try_them=not report,
            output=output,
        )
        for checker in chosen
    ]
    _show(scores, output)
    output.emit({"target": TARGET, "checkers": [one.as_dict() for one in scores]})
    short = [one for one in scores if one.percent < TARGET]
    return ExitCode.FINDINGS if short else ExitCode.NOTHING_FOUND


def main() -> None:
    """Entry of the program."""
    program.run(command, "mutation")


if __name__ == "__main__":
    main()
