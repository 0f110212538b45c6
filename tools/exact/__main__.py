"""`python -m tools.exact [SUBJECT...]`: the sweep of all comparisons, resumable."""

import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import rich_click as click
from attrs import asdict

from fencepost.console.options import jobs_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import EnvironmentError_, ExitCode
from tools import program
from tools.exact.ledger import Ledger, Stretch, Sum, digest_of
from tools.exact.subjects import SUBJECTS, TOP
from tools.exact.sweep import Task

HISTORIES = 200_000
STRETCH = 2_000
"""Histories per task: a second or two, so that little is lost when a sweep is ended."""


@contextmanager
def _processes(jobs: int) -> "Iterator[list[subprocess.Popen[bytes]]]":
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tools.exact.sweep"]
    started = [
        subprocess.Popen(
            command, cwd=TOP, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        for _ in range(jobs)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.stdin.close()  # type: ignore[union-attr]
            process.terminate()
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]


def _sweep(todo: list[Task], jobs: int) -> Iterator[tuple[Task, Stretch]]:
    """Every task, in the order in which processes finish them. Raises EnvironmentError_ if one ends."""
    waiting = list(reversed(todo))
    given: dict[int, Task] = {}
    with _processes(min(jobs, len(todo))) as processes, selectors.DefaultSelector() as selector:

        def give(process: "subprocess.Popen[bytes]") -> None:
            if waiting:
                given[process.pid] = waiting.pop()
                process.stdin.write(msgspec.json.encode(given[process.pid]) + b"\n")  # type: ignore[union-attr]

        for process in processes:
            selector.register(process.stdout, selectors.EVENT_READ, process)  # type: ignore[arg-type]
            give(process)
        while given:
            for key, _ in selector.select():
                line = key.data.stdout.readline()
                if not line:
                    raise EnvironmentError_(
                        expected="a sweeping process",
                        seen="that it ended",
                        where="exact",
                        hint="its words stand above",
                    )
                task = given.pop(key.data.pid)
                give(key.data)
                yield task, msgspec.json.decode(line, type=Stretch)


def _ledgers(names: tuple[str, ...], out: Path) -> dict[str, Ledger]:
    unknown = [name for name in names if name not in SUBJECTS]
    if unknown:
        raise click.UsageError(f"expected subjects out of {', '.join(SUBJECTS)}, saw {unknown[0]!r}")
    ledgers = {}
    for name in names or SUBJECTS:
        ledgers[name] = Ledger(out / f"{name}.jsonl", digest_of(SUBJECTS[name]))
        ledgers[name].read()
    return ledgers


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
    names: tuple[str, ...], histories: int, seed: int, out: Path, report: bool, jobs: int, as_json: bool
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
    output = Output(as_json)
    ledgers = _ledgers(names, out)
    todo = [
        Task(subject=name, source=ledger.source, seed=first, histories=min(STRETCH, seed + histories - first))
        for name, ledger in ledgers.items()
        for first in range(seed, seed + histories, STRETCH)
        if not report
        and (
            first not in ledger.by_seed
            or ledger.by_seed[first].histories < min(STRETCH, seed + histories - first)
        )
    ]
    code = ExitCode.NOTHING_FOUND
    try:
        if todo:
            with output.progress("stretches", len(todo)) as bar:
                for done, (task, stretch) in enumerate(_sweep(todo, jobs), start=1):
                    ledgers[task.subject].add(stretch)
                    bar.to(done, task.subject)
                    if stretch.wrong:
                        output.note(
                            f"{task.subject}: {stretch.wrong} mismatches among seeds from {stretch.seed}"
                        )
    except KeyboardInterrupt:
        output.note("interrupted; what was swept is kept")
        code = ExitCode.INTERRUPTED
    sums = [ledger.sum(name) for name, ledger in ledgers.items()]
    _show(sums, output)
    if code is ExitCode.NOTHING_FOUND and any(one.wrong for one in sums):
        code = ExitCode.FINDINGS
    output.emit({"subjects": [asdict(one) for one in sums], "exit_code": int(code)})
    return code


def main() -> None:
    """Entry of the program."""
    program.run(command, "exact")


if __name__ == "__main__":
    main()
