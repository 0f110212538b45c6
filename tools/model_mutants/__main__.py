"""`python -m tools.model_mutants MODEL`: small faults in a Python model, compared with TLC's answers."""

import json
import multiprocessing
import signal
import time
from collections import Counter
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import rich_click as click

from fencepost.console.options import jobs_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode
from tools import program
from tools.model_mutants.recorded import PAGES, Answer, answers
from tools.mutants.subjects import in_order, module_of
from tools.mutants.trial import EndlessRunError, plant
from tools.mutation.checkers import TOP
from tools.mutation.fault import Fault
from tools.mutation.faults import faults_of

NO_RULES = ("__init__.py", "state.py", "words.py")
"""Files of a model without rules: what a state is, and words for people."""
MOST_STATES = 20_000
"""Of a row: the explorer needs a second of processor time for so many."""
CPU_S = 60.0
"""Of one mutant: all rows together take the healthy model a few seconds."""


def mutants_of(model: str) -> list[Fault]:
    """Every fault of the model's rules."""
    folder = TOP / "fencepost" / "model" / model
    names = [path.relative_to(TOP).as_posix() for path in sorted(folder.glob("*.py"))]
    return [
        fault
        for name in names
        if Path(name).name not in NO_RULES
        for fault in faults_of(name, (TOP / name).read_text(encoding="utf-8"))
        if not fault.at_import
    ]


def _on_alarm(signum: int, frame: object) -> None:
    raise EndlessRunError


def told_apart(known: list[Answer]) -> tuple[str, str]:
    """Outcome, and by what: the first answer that is not TLC's."""
    signal.signal(signal.SIGPROF, _on_alarm)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    try:
        from fencepost.model.comparison.sameness import by_explorer

        for answer in known:
            seen = by_explorer(answer.row.constants, time.monotonic, count=answer.row.count)
            if seen.compared != answer.compared:
                return "told apart", f"{answer.compared} by TLC, {seen.compared} by the explorer"
    except EndlessRunError:
        return "told apart", "the state space has no end"
    except Exception as error:
        return "raised", repr(error)[:200]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "survived", ""


def _mutant(sender: Connection, fault: Fault, known: list[Answer]) -> None:
    try:
        source = (TOP / fault.file).read_bytes()
        plant(module_of(fault.file), fault.applied(source), str(TOP / fault.file))
        sender.send(told_apart(known))
    except SyntaxError as error:
        sender.send(("raised", str(error)))


def _healthy(sender: Connection, known: list[Answer]) -> None:
    sender.send(told_apart(known))


def _start(target: object, *arguments: object) -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)  # type: ignore[arg-type]
    process.start()
    theirs.close()
    return ours, process


def _answer(ours: Connection, process: BaseProcess) -> tuple[str, str]:
    try:
        outcome, by = ours.recv()
    except EOFError:
        outcome, by = "raised", "the process ended without an answer"
    process.join()
    return outcome, by


@click.command("model_mutants", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", type=click.Choice(sorted(PAGES)))
@click.option("--sample", type=click.IntRange(1), default=100, show_default=True, metavar="N")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the sample.")
@click.option("--states", type=click.IntRange(1), default=MOST_STATES, show_default=True, metavar="N")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/model_mutants"), show_default=True)
@jobs_option
@json_option
def command(model: str, sample: int, seed: int, states: int, out: Path, jobs: int, as_json: bool) -> ExitCode:
    """Put small faults into a model, one at a time, and compare the explorer's answers with TLC's.

    Resumable: results are kept by the name of the mutant. Exits 1 if a mutant survived.
    """
    output = Output(as_json)
    known = answers(model, states)
    every = mutants_of(model)
    faults = in_order(every, seed)[:sample]
    kept = out / f"{model}-{states}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, tuple[str, str]] = {}
    if kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            name, outcome, by = json.loads(line)
            found[name] = outcome, by
    outcome, by = _answer(*_start(_healthy, known))
    assert outcome == "survived", f"the model and TLC differ without a fault: {by}"
    waiting = [fault for fault in reversed(faults) if fault.name not in found]
    running: dict[Connection, tuple[Fault, BaseProcess]] = {}
    with output.progress("mutants", len(waiting)) as bar, kept.open("a", encoding="utf-8") as file:
        done = 0
        while waiting or running:
            while waiting and len(running) < jobs:
                fault = waiting.pop()
                ours, process = _start(_mutant, fault, known)
                running[ours] = fault, process
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                fault, process = running.pop(ready)
                found[fault.name] = _answer(ready, process)
                file.write(json.dumps([fault.name, *found[fault.name]]) + "\n")
                file.flush()
                done += 1
                bar.to(done, fault.name[:60])
    counts = Counter(found[fault.name][0] for fault in faults)
    left = [fault.name for fault in faults if found[fault.name][0] == "survived"]
    rows = table("survivor")
    for name in left:
        add_row(rows, name)
    output.say(rows, f"{dict(counts)} of {len(every)} faults, with {len(known)} answers of TLC")
    output.emit({**counts, "of": len(every), "answers": len(known), "seed": seed, "survivors": left})
    return ExitCode.FINDINGS if left else ExitCode.NOTHING_FOUND


if __name__ == "__main__":
    program.run(command, "model_mutants")
