"""Our judges against Porcupine, in one run, on the same histories, each on one core and each in a process of
its own.

    python bench/checkers.py [--quick] [--only TEXT] [--linear-only] [--limit SECONDS]

--quick shows the state of every row in a minute or two: fewer and smaller histories, logs by their own judge
alone, a second for each history.

(a) logs: the linear judge (and the general search for comparison); a case of many short logs goes through the
judge's batch form, in Arrow columns as traces are stored; (b) cas-register: 5 values, 15 processes, 80
operations, 10 % unknown; (c) key-value: 10 and 50 clients, 0, 1 and 5 % unknown; and registers with unique
values, which a decider judges. Half of (b), (c) and the registers have one answer changed.

Seconds are CPU time inside each tool: reading and compiling are left out, and what compiling or loading takes
is printed apart. Ours include turning operations into arrays; no proofs are shrunk, because Porcupine makes
none. A history that a tool has not answered within so much CPU time, or with 4 GiB, counts as open, with what
was spent. MiB is the most memory of the process that ran a case, its interpreter and the histories included.
Where both answer, answers must agree. Without Go the other tool's columns stay empty.
"""

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from attrs import define, field
from rich.console import Console
from rich.progress import track
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from checker_cases import Case, cases
from checker_histories import as_porcupine, history, model_of

from fencepost.checkers.compiled import COMPILED, engine
from fencepost.checkers.linearizability import SearchLimits, judge_counted
from fencepost.checkers.log import judge_columns, judge_trace, log_columns
from fencepost.checkers.operation_columns import columns_of_table
from fencepost.checkers.verdict import Decision
from fencepost.traces.rows import rows_of
from fencepost.traces.tables import tables_of

PEER = Path(__file__).parent / "peers" / "porcupine"
LIMIT_S, QUICK_LIMIT_S = 10.0, 1.0
"""CPU seconds for one history."""
MEMORY_MIB = 4096
CLOCK = 20
"""Our own limits are by the clock, of which a busy machine gives us a part only."""
WORDS = {Decision.OK: "Ok", Decision.ILLEGAL: "Illegal"}


@define
class Told:
    """What a tool said of a case. seconds: CPU, per history (of a batch: its share); answers: Ok, Illegal or
    Unknown per history; ready: CPU seconds to compile or load, mebibytes: most memory."""

    seconds: list[float] = field(factory=list)
    answers: list[str] = field(factory=list)
    ready: float = 0.0
    mebibytes: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.seconds)

    @property
    def open(self) -> int:
        return self.answers.count("Unknown")


def memory_peak_mib() -> float:
    """The most memory that this process ever had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def run_here(case: Case, tool: str, limit: float) -> Told:
    """One of our tools on one case, in this process."""
    limits = SearchLimits(timeout_s=CLOCK * limit, memory_bytes=MEMORY_MIB << 20)
    model, told = model_of(case.model), Told()
    start = time.process_time()
    warm = history(case.model, 1, clients=10, operations=200, unknown=0.05)
    with engine(COMPILED):
        judge_counted(warm, model, SearchLimits(timeout_s=2), shrink=False)
        judge_trace(warm)
    told.ready = time.process_time() - start
    traces = case.traces()
    gc.freeze()  # as a process of `fencepost check` does: what is loaded is no garbage
    if case.batch and tool == "linear":
        table = tables_of(rows_of(trace) for trace in traces).operations
        columns = log_columns(columns_of_table(table, traces))
        start = time.process_time()
        if not case.ready:
            columns = log_columns(columns_of_table(table, traces))
        found = dict(judge_columns(columns))
        told.seconds = [(time.process_time() - start) / len(traces)] * len(traces)
        decisions = [found[t.trace_id].decision if t.trace_id in found else Decision.OK for t in traces]
    else:
        decisions = []
        for trace in traces:
            start = time.process_time()
            verdict = (
                judge_trace(trace)
                if tool == "linear"
                else judge_counted(trace, model, limits, shrink=False).verdict
            )
            told.seconds.append(time.process_time() - start)
            late = told.seconds[-1] > limit
            decisions.append(Decision.UNKNOWN if late else verdict.decision)
    told.answers = [WORDS.get(decision, "Unknown") for decision in decisions]
    told.mebibytes = memory_peak_mib()
    return told


def ours(case: Case, tool: str, quick: bool, limit: float) -> Told | None:
    """One of our tools on one case, in a process of its own; None where it does not judge such histories."""
    if tool == "linear" and case.model != "log":
        return None
    words = [
        sys.executable,
        __file__,
        "--tool",
        tool,
        "--case",
        case.name,
        "--limit",
        str(limit),
        *["--quick"] * quick,
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return Told(**json.loads(done.stdout))


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


def theirs(case: Case, binary: Path, limit: float) -> Told:
    """The other tool on one case."""
    return answers_of(case.model, [as_porcupine(trace) for trace in case.traces()], binary, limit)


def answers_of(model: str, histories: list[list[dict[str, Any]]], binary: Path, limit: float) -> Told:
    """The other tool on these histories; a process of its own for what follows a history that it left
    open."""
    told = Told()
    while len(told.answers) < len(histories):
        request = {
            "model": model,
            "seconds": limit,
            "mebibytes": MEMORY_MIB,
            "histories": histories[len(told.answers) :],
        }
        done = subprocess.run(
            [str(binary)], input=json.dumps(request), capture_output=True, text=True, check=True,
            env={**os.environ, "GOMAXPROCS": "1"},
        )  # fmt: skip
        *rows, last = [json.loads(line) for line in done.stdout.splitlines()]
        told.seconds += [row["seconds"] for row in rows]
        told.answers += [row["answer"] for row in rows]
        told.mebibytes = max(told.mebibytes, last["mebibytes"])
    return told


def agree(case: Case, *tools: Told | None) -> None:
    """Stop where two tools that answer contradict each other."""
    given = [tool.answers for tool in tools if tool is not None]
    for seed, answers in enumerate(zip(*given, strict=True)):
        said = set(answers) - {"Unknown"}
        if len(said) > 1:
            raise SystemExit(f"{case.name}, history {seed}: {answers}")


def cell(told: Told | None) -> tuple[str, str]:
    if told is None:
        return "", ""
    return f"{told.total:.4f}" + (f" ({told.open} open)" if told.open else ""), f"{told.mebibytes:.0f}"


def ratio(best: Told, other: Told | None) -> str:
    """How much longer the other tool took; `>` where it left something open, `<` where we did."""
    if other is None:
        return ""
    sign = "> " * (other.open > best.open) + "< " * (best.open > other.open)
    return f"{sign}{other.total / max(best.total, 1e-9):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Our judges against Porcupine.")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller histories")
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--linear-only", action="store_true", help="leave the general engine out for logs")
    parser.add_argument("--limit", type=float, help="CPU seconds for each history (10, quick: 1)")
    parser.add_argument("--tool", choices=("linear", "general"), help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    limit = asked.limit or (QUICK_LIMIT_S if asked.quick else LIMIT_S)
    chosen = [case for case in cases(asked.quick) if asked.only in case.name]
    if asked.tool:
        (case,) = (case for case in chosen if case.name == asked.case)
        told = run_here(case, asked.tool, limit)
        print(
            json.dumps({name: getattr(told, name) for name in ("seconds", "answers", "ready", "mebibytes")})
        )
        return
    binary = build()
    rows = Table(title=f"CPU seconds and MiB, one core; up to {limit:g} s and {MEMORY_MIB} MiB per history")
    for column in ("case", "linear judge", "MiB", "general engine", "MiB", "Porcupine", "MiB", "x"):
        rows.add_column(column, justify="left" if column == "case" else "right")
    sums: dict[str, list[Told]] = defaultdict(lambda: [Told(), Told()])
    known: dict[tuple[object, ...], Told] = {}
    ready = 0.0
    for case in track(chosen, "cases", console=Console(stderr=True), transient=True):
        linear = ours(case, "linear", asked.quick, limit)
        alone = (asked.linear_only or asked.quick) and linear is not None
        general = None if alone else ours(case, "general", asked.quick, limit)
        if binary is not None and case.same not in known:
            known[case.same] = theirs(case, binary, limit)
        other = known.get(case.same)
        agree(case, linear, general, other)
        best = linear or general
        assert best is not None
        ready = max(ready, best.ready)
        for summed, told in zip(sums[case.group], (best, other), strict=True):
            summed.seconds += [] if told is None else told.seconds
            summed.answers += [] if told is None else told.answers
        cells = [case.name, *cell(linear), *cell(general), *cell(other), ratio(best, other)]
        rows.add_row(*cells)
        print(" | ".join(cells), file=sys.stderr, flush=True)  # a run that is ended has shown what it found
    for group, (best, other) in sums.items():
        rows.add_row(
            f"total {group}",
            f"{best.total:.4f}",
            "",
            "",
            "",
            f"{other.total:.4f}",
            "",
            ratio(best, other if binary else None),
        )
    Console(width=150).print(rows)
    print(f"compiling or loading kernels, left out above: at most {ready:.1f} s")


if __name__ == "__main__":
    main()
