"""An executor's part of a campaign: runs some seeds, judges them, writes one part of the trace store and
their verdicts.

Owns one chunk from its seeds to its files, and what a repeated or an abandoned attempt may do. Must not know
Spark (a test calls it as a function), or which chunks there are.

    DIR/.spark/sitting               the driver whose tasks may write; another driver that continues the
                                     campaign writes its own name
    DIR/.spark/verdicts-NUMBER.jsonl a chunk that has ended: the verdict of each of its seeds
    DIR/.spark/begun-NUMBER-*        the seed that an attempt is running

A chunk writes the part with its own number, so a repeated attempt replaces what the first one wrote by
the same bytes. The parts come first, then the verdicts: if it is killed in between, the runs are there and
are judged again. Both happen under a lock and only while the sitting is the task's own. So a Python worker
that outlives its driver cannot add a part that the next sitting does not know.
"""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field, frozen

from fencepost.campaign.driver.sitting import FOLDER, sitting_locked
from fencepost.campaign.workers.results import Job, Orders, RunResult, Task
from fencepost.campaign.workers.worker import Worker
from fencepost.traces.canonical_rows import Rows
from fencepost.traces.errors import FencepostError
from fencepost.traces.sealing import write_part

MOST_ATTEMPTS = 2
"""Processes that a seed may take with it before it is given up, as in a local campaign."""


@frozen(kw_only=True)
class Chunk:
    """Some seeds, one Spark task."""

    # Of its part and its files.
    number: int
    tasks: tuple[Task, ...]


@frozen(kw_only=True)
class ChunkOrders:
    """The settings of every task."""

    job: Job
    # The campaign's folder.
    out: Path
    # Names the driver.
    sitting: str

    @property
    def folder(self) -> Path:
        """The folder for files between tasks and driver."""
        return self.out / FOLDER


@define(kw_only=True)
class _PartWorker(Worker):
    """A worker with runs that become a part at the end instead of frames of a journal."""

    runs: list[Rows] = field(factory=list, init=False)

    def _keep(self, rows: Rows) -> bool:
        self.runs.append(rows)
        return False


def verdicts_of(folder: Path, number: int) -> Path:
    """The file of a chunk's verdicts. folder: of tasks and driver; number: of the chunk."""
    return folder / f"verdicts-{number}.jsonl"


@contextmanager
def _while_mine(orders: ChunkOrders) -> Iterator[None]:
    """Raises FencepostError if another sitting has taken over, or the campaign has ended."""
    try:
        with sitting_locked(orders.folder, exclusive=False) as descriptor:
            found = os.pread(descriptor, 1024, 0).decode()
            if found != orders.sitting:
                raise FencepostError(
                    expected=f"the sitting {orders.sitting} of the campaign",
                    seen=f"{found}, which has taken over",
                    where=str(orders.out),
                )
            yield
    except FileNotFoundError:
        raise FencepostError(
            expected=f"the sitting {orders.sitting} of the campaign", seen="none", where=str(orders.out)
        ) from None


def _died_with(folder: Path, number: int) -> Counter[int]:
    """How many attempts of the chunk ended while running each seed."""
    return Counter(int(path.read_text() or -1) for path in folder.glob(f"begun-{number}-*"))


def run_chunk(chunk: Chunk, orders: ChunkOrders, *, attempt: str) -> None:
    """Run and judge the chunk's seeds, then write part and verdicts. attempt: unique among the attempts of
    all tasks.

    Raises FencepostError for a campaign that another sitting has taken over, and for what the environment
    refuses.
    """
    worker = _PartWorker(orders=Orders(job=orders.job, out=str(orders.out), name=attempt))
    died, results = _died_with(orders.folder, chunk.number), []
    begun = orders.folder / f"begun-{chunk.number}-{attempt}"
    for task in chunk.tasks:
        begun.write_text(str(task.seed))
        if died[task.seed] >= MOST_ATTEMPTS:
            why = f"its process died, {MOST_ATTEMPTS} times"
            results.append(RunResult(seed=task.seed, kind=task.kind, crash=why))
        else:
            results.append(worker.do(task))
    verdicts = verdicts_of(orders.folder, chunk.number)
    temporary = verdicts.with_name(f".{verdicts.name}.{attempt}.tmp")
    temporary.write_bytes(b"".join(result.to_json() + b"\n" for result in results))
    with _while_mine(orders):
        if worker.runs:
            write_part(orders.out, chunk.number, iter(worker.runs), mark=attempt)
        temporary.replace(verdicts)
    for path in orders.folder.glob(f"begun-{chunk.number}-*"):
        path.unlink(missing_ok=True)
