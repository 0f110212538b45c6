"""Our judges against Porcupine, in one run, on the same histories, each on one core.

    python bench/checkers.py [--quick]

(a) logs: our linear judge (and the general engine for comparison) against Porcupine; (b) cas-register: 5 values, 15 processes, 80 operations, 10 %
unknown; (c) key-value: 10 and 50 clients. Half of (b) and (c) have one answer changed. Seconds are wall clock inside each tool, reading and compiling excluded;
ours include turning operations into arrays, and no shrinking of proofs (Porcupine makes none). A tool that gives no answer in time
is counted as such, with the time that it was given. Where both answer, the answers must agree. Without Go the other tool's columns stay empty.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attrs import define, frozen
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from checker_histories import as_porcupine, history, model_of

from fencepost.checkers.linearizability import Limits, judge_counted
from fencepost.checkers.log import judge_trace as judge_log
from fencepost.checkers.verdict import Decision
from fencepost.traces.trace import Trace

PEER = Path(__file__).parent / "peers" / "porcupine"
TIMEOUT_S = 10.0


@frozen(kw_only=True)
class Case:
    """One row: histories of one kind."""

    name: str
    model: str
    traces: tuple[Trace, ...]


@define
class Told:
    """What a tool said of a case. seconds: per history; answers: Ok, Illegal or Unknown per history."""

    seconds: list[float]
    answers: list[str]

    @property
    def total(self) -> float:
        return sum(self.seconds)

    @property
    def open(self) -> int:
        return self.answers.count("Unknown")


WORDS = {Decision.OK: "Ok", Decision.ILLEGAL: "Illegal"}


def cases(quick: bool) -> list[Case]:
    made = []
    sizes = (200, 2_000) if quick else (200, 2_000, 20_000)
    for clients in (5, 10, 50):
        for unknown in (0.0, 0.01, 0.05):
            for size in sizes:
                trace = history("log", size, clients=clients, operations=size, unknown=unknown)
                name = f"log, {clients} clients, {unknown:.0%} unknown, {size} ops"
                made.append(Case(name=name, model="log", traces=(trace,)))
    count = 20 if quick else 100
    registers = tuple(
        history("cas-register", seed, clients=15, operations=80, unknown=0.1, wrong=seed % 2 == 1)
        for seed in range(count)
    )
    made.append(Case(name=f"cas-register, {count} histories", model="cas-register", traces=registers))
    for clients in (10, 50):
        keyed = tuple(
            history("key-value", seed, clients=clients, operations=1_000, unknown=0.01, wrong=seed % 2 == 1)
            for seed in range(4 if quick else 20)
        )
        made.append(
            Case(
                name=f"key-value, {clients} clients, {len(keyed)} histories", model="key-value", traces=keyed
            )
        )
    return made


def ours(case: Case) -> tuple[Told, Told | None]:
    """The general engine, and for logs the linear judge."""
    model, limits = model_of(case.model), Limits(timeout_s=TIMEOUT_S)
    general, linear = Told([], []), Told([], [])
    for trace in case.traces:
        start = time.perf_counter()
        decision = judge_counted(trace, model, limits, shrink=False).verdict.decision
        general.seconds.append(time.perf_counter() - start)
        general.answers.append(WORDS.get(decision, "Unknown"))
        if case.model == "log":
            start = time.perf_counter()
            decision = judge_log(trace).decision
            linear.seconds.append(time.perf_counter() - start)
            linear.answers.append(WORDS.get(decision, "Unknown"))
    return general, linear if case.model == "log" else None


def build() -> Path | None:
    """The harness, or None without Go."""
    if shutil.which("go") is None:
        Console(stderr=True).print("Go is not installed: Porcupine is left out")
        return None
    binary = Path(tempfile.mkdtemp()) / "porcupine-harness"
    done = subprocess.run(
        ["go", "build", "-o", str(binary), "."], cwd=PEER, capture_output=True, text=True, check=False
    )
    if done.returncode:
        Console(stderr=True).print(f"Porcupine cannot be built, left out: {done.stderr.strip()}")
        return None
    return binary


def theirs(case: Case, binary: Path) -> Told:
    request = {
        "model": case.model,
        "timeout": TIMEOUT_S,
        "histories": [as_porcupine(trace) for trace in case.traces],
    }
    done = subprocess.run(
        [str(binary)], input=json.dumps(request), capture_output=True, text=True, check=True,
        env={**os.environ, "GOMAXPROCS": "1"},
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return Told([row["seconds"] for row in rows], [row["answer"] for row in rows])


def agree(case: Case, *tools: Told | None) -> None:
    """Stop where two tools that answer contradict each other."""
    given = [tool.answers for tool in tools if tool is not None]
    for trace, answers in zip(case.traces, zip(*given, strict=True), strict=True):
        said = set(answers) - {"Unknown"}
        if len(said) > 1:
            raise SystemExit(f"{case.name}, history {trace.seed}: {answers}")


def cell(told: Told | None) -> str:
    if told is None:
        return ""
    return f"{told.total:.3f}" + (f" ({told.open} open)" if told.open else "")


def main() -> None:
    parser = argparse.ArgumentParser(description="Our judges against Porcupine.")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller histories")
    quick = parser.parse_args().quick
    binary = build()
    for name in ("log", "cas-register", "key-value"):  # compile before anything is measured
        trace = history(name, 1, clients=10, operations=2000, unknown=0.05)
        start = time.perf_counter()
        judge_counted(trace, model_of(name), Limits(timeout_s=2))
        judge_log(trace)
        print(f"first use of {name}, compiling included: {time.perf_counter() - start:.1f} s")
    rows = Table(title=f"seconds, one core; up to {TIMEOUT_S:g} s per history")
    for column in ("case", "linear judge", "general engine", "Porcupine", "Porcupine / best of ours"):
        rows.add_column(column, justify="left" if column == "case" else "right")
    for case in cases(quick):
        general, linear = ours(case)
        other = theirs(case, binary) if binary is not None else None
        agree(case, general, linear, other)
        best = linear or general
        ratio = f"{'> ' if other.open else ''}{other.total / best.total:.1f}" if other is not None else ""
        rows.add_row(case.name, cell(linear), cell(general), cell(other), ratio)
    Console(width=140).print(rows)


if __name__ == "__main__":
    main()
