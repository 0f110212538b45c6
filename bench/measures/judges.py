"""Our judges against Porcupine, in one run, on the same histories, each on one core in a process of its own.

Logs: their own judge, one history after the other. A strong read ends each. Many short ones go through the
judge's batch form, in Arrow columns as traces are stored, or in columns that are ready.
cas-register: 5 values, 15 processes, 80 operations, 10 % unknown. key-value, and registers with unique
values, which a decider judges. Half of the histories that are no logs have one answer changed.

Seconds are CPU time inside each tool: reading, compiling and loading are left out. Ours include turning
operations into arrays; no proofs are shrunk, because Porcupine makes none. A history without an answer
after --limit seconds of CPU time, or with 4 GiB, is open, and counts with what was spent. Where both
answer, answers must agree. Without Go Porcupine is left out.
"""

import argparse
import gc
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from attrs import frozen

from bench.costs import Cost, fresh, peak_mib
from bench.harness import Case, skipped, wanted
from bench.inputs.checker_histories import as_porcupine, history, model_of
from fencepost.checkers.compiled import COMPILED, engine
from fencepost.checkers.linearizability import SearchLimits, judge_counted
from fencepost.checkers.log import judge_columns, judge_trace, log_columns
from fencepost.checkers.operation_columns import columns_of_table
from fencepost.checkers.verdict import Decision
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace

TURNS = 1
"""An open history costs its whole limit each time."""
PEER = Path(__file__).parents[1] / "peers" / "porcupine"
LIMIT_S, QUICK_LIMIT_S = 10.0, 1.0
MEMORY_MIB = 4096
WARM = 10
"""Histories after which the interpreter has specialized what it runs. Porcupine is compiled."""
CLOCK = 20
"""Our own limits are by the clock, of which a busy machine gives us a part only."""
WORDS = {Decision.OK: "Ok", Decision.ILLEGAL: "Illegal"}
LINEAR, GENERAL, PORCUPINE = "linear judge", "general search", "Porcupine"
Answers = tuple[Cost, list[str]]


@frozen(kw_only=True)
class Histories:
    """Histories of one kind, the same in every process."""

    name: str
    model: str
    count: int
    clients: int
    operations: int
    unknown: float
    # Judged in one call.
    batch: bool = False
    # From columns in memory, as Porcupine judges operations in memory.
    ready: bool = False

    def traces(self) -> list[Trace]:
        """Every other one with a changed answer, if they are no logs."""
        shape = {"clients": self.clients, "operations": self.operations, "unknown": self.unknown}
        wrong = self.model != "log"
        return [
            history(self.model, seed, wrong=wrong and seed % 2 == 1, **shape) for seed in range(self.count)
        ]


def kinds(quick: bool) -> Iterator[Histories]:
    """Every row; quick: one small one of each kind."""
    many = 50 if quick else 500
    for clients in (5,) if quick else (5, 10, 50):
        for unknown in (0.01,) if quick else (0.0, 0.01, 0.05):
            name = f"log, {clients} clients, {unknown:.0%} unknown"
            log = partial(Histories, model="log", clients=clients, unknown=unknown)
            for size, count in ((200, 1),) if quick else ((200, 20), (2_000, 5), (20_000, 1)):
                yield log(name=f"{name}, {count} x {size} ops", count=count, operations=size)
            if clients == 5:
                several = partial(log, count=many, operations=200, batch=True)
                yield several(name=f"{name}, {many} x 200 ops, batch")
                yield several(name=f"{name}, {many} x 200 ops, columns", ready=True)
    many = 2 if quick else 100
    cas = partial(Histories, model="cas-register", clients=15, operations=80, unknown=0.1)
    yield cas(name=f"cas-register, {many} histories", count=many)
    for clients in (10,) if quick else (10, 50):
        for unknown in (0.01,) if quick else (0.0, 0.01, 0.05):
            many = 2 if quick else 20 if clients == 10 else 8
            name = f"key-value, {clients} clients, {unknown:.0%} unknown, {many} histories"
            keys = partial(Histories, model="key-value", operations=1_000)
            yield keys(name=name, count=many, clients=clients, unknown=unknown)
    for unknown in (0.0,) if quick else (0.0, 0.01):
        name = f"register, unique values, 10 clients, {unknown:.0%} unknown"
        register = partial(Histories, model="register", clients=10, operations=2_000)
        yield register(name=name, count=2 if quick else 4, unknown=unknown)


# ---- ours


def ours(of: Histories, tool: str, limit: float) -> Answers:
    """One of our tools, in this process."""
    limits = SearchLimits(timeout_s=CLOCK * limit, memory_bytes=MEMORY_MIB << 20)
    model, start = model_of(of.model), time.process_time()
    warm = [history(of.model, seed, clients=10, operations=200, unknown=0.05) for seed in range(WARM)]
    with engine(COMPILED):
        judge_counted(warm[0], model, SearchLimits(timeout_s=2), shrink=False)
        for one in warm if of.model == "log" else warm[:1]:
            judge_trace(one)
        if of.batch:
            _batch(of, warm[:1])
    loaded = time.process_time() - start
    traces = of.traces()
    gc.freeze()  # as a process of `fencepost check` does: what is loaded is no garbage
    if of.batch and tool == LINEAR:
        spent, decisions = _batch(of, traces)
    else:
        spent, decisions = 0.0, []
        for trace in traces:
            start = time.process_time()
            if tool == LINEAR:
                verdict = judge_trace(trace)
            else:
                verdict = judge_counted(trace, model, limits, shrink=False).verdict
            took = time.process_time() - start
            spent += took
            decisions.append(Decision.UNKNOWN if took > limit else verdict.decision)
    return _told(spent, [WORDS.get(one, "Unknown") for one in decisions], peak_mib(), loaded)


def _batch(of: Histories, traces: list[Trace]) -> tuple[float, list[Decision]]:
    rows = tables_of(rows_of(trace) for trace in traces).operations
    columns = log_columns(columns_of_table(rows, traces))
    start = time.process_time()
    if not of.ready:
        columns = log_columns(columns_of_table(rows, traces))
    found = dict(judge_columns(columns))
    spent = time.process_time() - start
    return spent, [found[one.trace_id].decision if one.trace_id in found else Decision.OK for one in traces]


def _told(spent: float, answers: list[str], mib: float, loaded: float | None = None) -> Answers:
    more = {"open": answers.count("Unknown")} | ({} if loaded is None else {"loading s": loaded})
    return Cost(wall_s=spent, cpu_s=spent, mib=mib, more=more), answers


# ---- theirs


def build(folder: Path) -> Path | None:
    """The program under peers/porcupine, or None where it cannot be built."""
    if shutil.which("go") is None:
        skipped(PORCUPINE, "Go is not installed")
        return None
    command = ["go", "build", "-o", str(folder / "porcupine"), "."]
    done = subprocess.run(command, cwd=PEER, capture_output=True, text=True, check=False)
    if done.returncode:
        skipped(PORCUPINE, done.stderr.strip())
        return None
    return folder / "porcupine"


def theirs(of: Histories, binary: Path, limit: float) -> Answers:
    """Porcupine; a new process for what follows a history that it left open."""
    histories = [as_porcupine(trace) for trace in of.traces()]
    spent, answers, mib = 0.0, list[str](), 0.0
    request = {"model": of.model, "seconds": limit, "mebibytes": MEMORY_MIB}
    while len(answers) < len(histories):
        done = subprocess.run(
            [str(binary)], input=json.dumps(request | {"histories": histories[len(answers) :]}),
            capture_output=True, text=True, check=True, env={**os.environ, "GOMAXPROCS": "1"},
        )  # fmt: skip
        *rows, last = [json.loads(line) for line in done.stdout.splitlines()]
        spent += sum(row["seconds"] for row in rows)
        answers += [row["answer"] for row in rows]
        mib = max(mib, last["mebibytes"])
    return _told(spent, answers, mib)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument("--limit", type=float, help="CPU seconds for each history [default: 10; quick: 1]")


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """A case for each kind of histories."""
    limit = asked.limit or (QUICK_LIMIT_S if asked.quick else LIMIT_S)
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        binary = build(Path(folder))
        for of in kinds(asked.quick):
            if not wanted(asked, of.name):
                continue
            calls: dict[str, Callable[[], Answers]] = {}
            if of.model == "log":
                calls[LINEAR] = partial(fresh, ours, of, LINEAR, limit)
            else:
                calls[GENERAL] = partial(fresh, ours, of, GENERAL, limit)
            if binary is not None:
                calls[PORCUPINE] = partial(theirs, of, binary, limit)
            answers: dict[str, list[str]] = {}

            def side(name: str, call: Callable[[], Answers], known: dict[str, list[str]] = answers) -> Cost:
                cost, known[name] = call()
                return cost

            sides = {name: partial(side, name, call) for name, call in calls.items()}
            yield Case(name=of.name, sides=sides, per=of.count * of.operations, unit="operation", warm=False)
            for seed, said in enumerate(zip(*answers.values(), strict=True)):
                if len(set(said) - {"Unknown"}) > 1:
                    raise SystemExit(f"{of.name}, history {seed}: {dict(zip(answers, said, strict=True))}")
