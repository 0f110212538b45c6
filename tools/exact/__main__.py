"""`python -m tools.exact [SUBJECT...]`: the sweep of all comparisons, resumable."""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import rich_click as click
from attrs import asdict, frozen

from fencepost.console.options import jobs_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import EnvironmentError_, ExitCode
from tools import program
from tools.exact.subjects import SUBJECTS
from tools.exact.sweep import Stretch, begin, swept
from tools.ledger import Ledger, digest

HISTORIES = 200_000
STRETCH = 2_000
"""Histories per task: a second or two, so that little is lost when a sweep is ended."""


@frozen(kw_only=True)
class Sum:
    """Of one subject."""

    subject: str
    histories: int
    wrong: int
    illegal: int | None
    seconds: float


def _sweep(todo: list[tuple[str, Stretch]], jobs: int) -> Iterator[tuple[str, Stretch]]:
    """Every task, in the order in which processes finish them. Raises EnvironmentError_ if one ends."""
    os.environ["PYTHONHASHSEED"] = "0"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(todo)), context, begin) as pool:
        try:
            for future in as_completed([pool.submit(swept, *task) for task in todo]):
                yield future.result()
        except BrokenProcessPool:
            raise EnvironmentError_(
                expected="a sweeping process", seen="that it ended", where="exact", hint="its words are above"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def ledger_of(name: str, out: Path) -> Ledger[Stretch]:
    """What was swept of a subject."""
    path = out / f"{name}.jsonl"
    return Ledger.open(path, Stretch, key=lambda one: (one.source, one.seed), of=f"exactness of {name}")


def sum_of(name: str, source: str, ledger: Ledger[Stretch]) -> Sum:
    """What there is, of this code."""
    stretches = [one for one in ledger.rows.values() if one.source == source]
    illegal = [one.illegal for one in stretches]
    return Sum(
        subject=name,
        histories=sum(one.histories for one in stretches),
        wrong=sum(one.wrong for one in stretches),
        illegal=None if None in illegal else sum(count for count in illegal if count is not None),
        seconds=sum(one.seconds for one in stretches),
    )


def _todo(
    sources: dict[str, str], ledgers: dict[str, Ledger[Stretch]], seeds: range
) -> list[tuple[str, Stretch]]:
    wanted = [
        (name, Stretch(source=source, seed=first, histories=min(STRETCH, seeds.stop - first)))
        for name, source in sources.items()
        for first in range(seeds.start, seeds.stop, STRETCH)
    ]
    return [
        (name, one)
        for name, one in wanted
        if (known := ledgers[name].rows.get((one.source, one.seed))) is None
        or known.histories < one.histories
    ]


def _show(sums: list[Sum], output: Output) -> None:
    rows = table("subject", ">histories", ">illegal", ">mismatches", ">CPU s")
    for one in sums:
        style = "red" if one.wrong else "green"
        illegal = "" if one.illegal is None else f"{one.illegal:,}"
        add_row(
            rows, one.subject, f"{one.histories:,}", illegal, one.wrong, f"{one.seconds:.0f}", style=style
        )
    output.say(rows)


@click.command("exact", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.rich_config({"text_paragraph_linebreaks": "\n\n"})
@click.argument("names", nargs=-1, metavar="[SUBJECT...]")
@click.option(
    "--histories",
    type=click.IntRange(1),
    default=HISTORIES,
    show_default=True,
    metavar="N",
    help="Of each subject.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The first one.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("out/exact"), show_default=True,
    help="Where counts are kept; a sweep goes on where the last one of the same code ended.",
)  # fmt: skip
@click.option("--report", is_flag=True, help="Sweep nothing; tell what was swept.")
@jobs_option
@json_option
def command(
    names: tuple[str, ...], histories: int, seed: int, out: Path, report: bool, jobs: int, output: Output
) -> ExitCode:
    """Hold every decision procedure against a naive one, on random small histories.

    Subjects: the linearizability engine with each model (against trying every order), the log judge (against
    every log that could explain a history), the checks of Kafka's anomalies, of consumer groups and of
    protocol events (against their definitions).

    \b
    Examples
      # the nightly sweep: 200,000 histories of each, a while
      python -m tools.exact --jobs 2
      # other seeds, of one model
      python -m tools.exact queue --seed 1000000 --histories 50000
    """
    unknown = [name for name in names if name not in SUBJECTS]
    if unknown:
        raise click.UsageError(f"expected subjects out of {', '.join(SUBJECTS)}, saw {unknown[0]!r}")
    sources = {name: digest(SUBJECTS[name].files()) for name in names or SUBJECTS}
    ledgers = {name: ledger_of(name, out) for name in sources}
    todo = [] if report else _todo(sources, ledgers, range(seed, seed + histories))
    code = ExitCode.NOTHING_FOUND
    try:
        if todo:
            with output.progress("stretches", len(todo)) as bar:
                for done, (name, stretch) in enumerate(_sweep(todo, jobs), start=1):
                    ledgers[name].add(stretch)
                    bar.to(done, name)
                    if stretch.wrong:
                        output.note(f"{name}: {stretch.wrong} mismatches among seeds from {stretch.seed}")
    except KeyboardInterrupt:
        output.note("interrupted; what was swept is kept")
        code = ExitCode.INTERRUPTED
    sums = [sum_of(name, source, ledgers[name]) for name, source in sources.items()]
    _show(sums, output)
    if code is ExitCode.NOTHING_FOUND and any(one.wrong for one in sums):
        code = ExitCode.FINDINGS
    output.emit({"subjects": [asdict(one) for one in sums], "exit_code": int(code)})
    return code


if __name__ == "__main__":
    program.run(command, "exact")
