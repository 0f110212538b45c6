"""The worker process of a campaign: reads tasks from standard input, writes one result per line to standard
output.

Owns: the order run, keep, judge. Must not know: which seeds there are, or that there are other workers.

A finished run is in the journal before it is judged, so that a judge that dies, or is killed, costs no run.
The worker ignores Ctrl-C: the driver hears it and closes the pipe, and the worker ends after the run in hand.
"""

import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec
from attrs import define, evolve, field

from fencepost.campaign.marks.marks import MARKS, marks_of
from fencepost.campaign.marks.real_marks import REAL_MARKS
from fencepost.campaign.workers.plans import plan_of
from fencepost.campaign.workers.results import Orders, RunResult, Task
from fencepost.checkers.judges import judge
from fencepost.checkers.judges import load as load
from fencepost.checkers.verdict import combine
from fencepost.processes.begin import settle
from fencepost.run.simulated.run import run_with_rows
from fencepost.traces.canonical_rows import Rows
from fencepost.traces.errors import FencepostError
from fencepost.traces.journal import JournalWriter
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace

ROTATE_BYTES = 128 * 1024 * 1024
"""A journal this large is closed, so that the driver can seal it while the campaign goes on."""

MOST_FINDINGS = 20
"""Findings that a result carries; the trace has them all. A result line stays below what a pipe holds."""


@define(kw_only=True)
class Worker:
    """One worker."""

    orders: Orders
    rotate_bytes: int = ROTATE_BYTES
    # Open from the first run that is kept.
    journal: JournalWriter | None = field(default=None, init=False)
    # How many journals were closed before it.
    rotations: int = field(default=0, init=False)

    def do(self, task: Task) -> RunResult:
        """Carry out one task. A run that raises is reported as crashed; the environment's errors
        (FencepostError) are raised."""
        started = time.monotonic()
        try:
            result = self._do(task)
        except FencepostError:
            raise
        except Exception as error:
            result = RunResult(seed=task.seed, kind=task.kind, crash=_in_one_line(error))
        return evolve(result, wall_ms=int((time.monotonic() - started) * 1000))

    def _do(self, task: Task) -> RunResult:
        if task.kind == "judge":
            return self._judged(task, TraceStore.open(Path(self.orders.out)).read(task.seed), rotated=False)
        trace, rows = self._run(task)
        if task.kind == "recheck":
            return RunResult(seed=task.seed, kind=task.kind, digest=trace.digest)
        rotated = self._keep(rows) if self.orders.out else False
        return self._judged(task, trace, rotated=rotated)

    def _run(self, task: Task) -> tuple[Trace, Rows]:
        return run_with_rows(plan_of(self.orders.job, task.seed, task.profile))

    def _keep(self, rows: Rows) -> bool:
        """Append a finished run; whether a new journal was begun for it."""
        rotated = self.journal is not None and self.journal.end >= self.rotate_bytes
        if rotated:
            self.close()
            self.rotations += 1
        if self.journal is None:
            self.journal = TraceStore(Path(self.orders.out)).writer(f"{self.orders.name}-{self.rotations}")
        self.journal.append_rows(rows)
        return rotated

    def _judged(self, task: Task, trace: Trace, *, rotated: bool) -> RunResult:
        checks = self.orders.job.checks
        verdict = combine(judge(trace) if checks is None else judge(trace, checks))
        return RunResult(
            seed=task.seed,
            kind=task.kind,
            digest=trace.digest,
            decision=verdict.decision,
            anomaly=verdict.anomaly,
            findings=verdict.findings[:MOST_FINDINGS],
            reason=verdict.reason,
            operations=len(trace.operations),
            events=len(trace.events),
            marks=marks_of(trace, REAL_MARKS if self.orders.job.real else MARKS),
            rotated=rotated,
        )

    def close(self) -> None:
        """Sync and close the journal."""
        if self.journal is not None:
            self.journal.close()
            self.journal = None

    def release(self) -> None:
        """Let go of what the runs were made with, whatever happened."""


def _in_one_line(error: Exception) -> str:
    """What was raised and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


def settle_memory() -> None:
    """After the first run: modules and compiled judges stay, so that no garbage collection need walk over
    them again."""
    gc.collect()
    settle()


def _simulating(orders: Orders) -> Worker:
    return Worker(orders=orders)


def serve(tasks: BinaryIO, results: BinaryIO, make: Callable[[Orders], Worker] = _simulating) -> None:
    """Answer tasks until the pipe closes. An error of the environment is the last line: {"fatal": {...}}.
    make: builds the worker."""
    worker = make(msgspec.json.decode(tasks.readline(), type=Orders))
    settled = False
    try:
        for line in tasks:
            result = worker.do(msgspec.json.decode(line, type=Task))
            results.write(result.to_json() + b"\n")
            results.flush()
            if settled:
                gc.collect()  # the run's world, all at once
            else:
                settle_memory()
                settled = True
        worker.close()
    except FencepostError as error:
        fields = {"expected": error.expected, "seen": error.seen, "where": error.where, "hint": error.hint}
        results.write(msgspec.json.encode({"fatal": fields}) + b"\n")
        results.flush()
    finally:
        worker.release()


def main(make: Callable[[Orders], Worker] = _simulating) -> None:
    """Entry of the process. What libraries print goes to standard error: standard output belongs to the
    results. make: builds the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, results, make)
    except BrokenPipeError:  # the driver is gone; what was run is in the journal
        os._exit(0)
