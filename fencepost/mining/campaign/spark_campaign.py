"""A campaign on Spark: seeds distributed over executors, each chunk a part of the trace store, the same runs
as in a local campaign.

Owns the driver's side: which seeds go into which chunk, collecting results, interruption, and the repeats
that check determinism. Must not know how a chunk is run (tasks.py), or the terminal.

The result of a chunk is on disk before Spark gets it, and the driver reads it from there while the job
runs. So a driver that is killed loses only the chunks in progress. The folder is an ordinary campaign's
folder: either engine can continue what the other began.
"""

import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, field, frozen

from fencepost import __version__
from fencepost.campaign.driver.campaign_driver import Campaign, CampaignProgress, is_rechecked
from fencepost.campaign.driver.ledger import Ledger, claim
from fencepost.campaign.driver.sitting import NO_SITTING, take_over
from fencepost.campaign.driver.steering import Steering
from fencepost.campaign.workers.plans import plan_of
from fencepost.campaign.workers.pool import Pool
from fencepost.campaign.workers.results import CampaignResult, Orders, RunResult, Tally, Task
from fencepost.mining.campaign.tasks import Chunk, ChunkOrders, run_chunk, verdicts_of
from fencepost.mining.spark.jobs import run_tasks
from fencepost.mining.spark.session import check_spark, session
from fencepost.traces.errors import FencepostError
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore

CHUNK_SEEDS = 200
"""Most seeds of a part. So many make about ten megabytes, and a killed executor costs about ten seconds."""
CHUNKS_PER_PROCESSOR = 4
"""Fewer seeds than fill such chunks are spread so that every processor gets several, since runs differ in
length."""


def _ignore(progress: CampaignProgress) -> None:
    """Tell nobody."""


@frozen(kw_only=True)
class _RunChunks:
    """The function that Spark calls with the chunk of one task."""

    orders: ChunkOrders

    def __call__(self, chunks: Iterable[Chunk]) -> Iterator[int]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for chunk in chunks:
            attempt = f"{context.stageId()}-{context.taskAttemptId()}-{secrets.token_hex(4)}"
            run_chunk(chunk, self.orders, attempt=attempt)
            yield chunk.number


@frozen(kw_only=True)
class _Repeat:
    """The function that runs seeds again in a separate process, with another PYTHONHASHSEED than Spark's
    workers have."""

    orders: ChunkOrders

    def __call__(self, lists: Iterable[tuple[Task, ...]]) -> Iterator[bytes]:
        line = msgspec.json.encode(Orders(job=self.orders.job, out="", name="")) + b"\n"
        pool = Pool(1, lambda slot: line)
        try:
            for task in (task for tasks in lists for task in tasks):
                pool.give(0, task)
                while pool.busy:
                    for answer in pool.answers():
                        yield (answer.result or RunResult(seed=task.seed, crash=answer.why)).to_json()
        finally:
            pool.close()


@define(kw_only=True)
class _Sitting:
    """One driver's part of a campaign."""

    # What is to be run.
    campaign: Campaign
    # Where the traces go.
    store: TraceStore
    # Which chunks have ended.
    ledger: Ledger
    orders: ChunkOrders
    # Called with the progress after each look.
    on_progress: Callable[[CampaignProgress], None]
    # Counts of this sitting.
    tally: Tally = field(factory=Tally)
    # Chunks with unread verdicts, by number.
    waiting: dict[int, Chunk] = field(factory=dict)
    # Seeds of this sitting.
    counted: set[int] = field(factory=set)
    # Digests of the runs to be repeated, by seed.
    repeats: dict[int, str] = field(factory=dict)
    # How many parts were written.
    parts: int = 0

    def take_up(self) -> None:
        """Count the chunks that have ended since the last look. Interrupted, it is taken up again where it
        was."""
        for number, chunk in list(self.waiting.items()):
            path = verdicts_of(self.orders.folder, number)
            if path.exists():
                for line in path.read_bytes().splitlines():
                    result = RunResult.from_json(line)
                    if result.seed not in self.counted:
                        self.counted.add(result.seed)
                        self._count(result)
                self.parts += any(task.kind == "run" for task in chunk.tasks)
                del self.waiting[number]
                path.unlink()

    def _count(self, result: RunResult) -> None:
        self.tally.add(result)
        self.tally.ran += 1
        if not result.crash:
            self.ledger.add(result)
        if result.digest and is_rechecked(result.seed, self.campaign.recheck_one_in):
            self.repeats[result.seed] = result.digest
        self.on_progress(
            CampaignProgress(
                done=self.tally.finished,
                total=len(self.campaign.seeds),
                findings=self.tally.anomalies.total(),
                result=result,
            )
        )

    def repeat(self, spark: Any) -> None:
        """Run the sample again and compare digests."""
        seeds = sorted(self.repeats)
        count = min(len(seeds), spark.sparkContext.defaultParallelism)
        lists = [
            tuple(Task(seed=seed, kind="recheck") for seed in seeds[place::count]) for place in range(count)
        ]
        name = f"fencepost repeats {self.orders.sitting}"
        for line in _job(spark, lists, _Repeat(orders=self.orders), name, lambda _: None):
            result = RunResult.from_json(line)
            self.tally.rechecked += 1
            if result.digest != self.repeats[result.seed]:
                self.tally.disagreeing.add(result.seed)


def _job(spark: Any, tasks: list[Any], function: Any, name: str, on_poll: Callable[[int], None]) -> list[Any]:
    if not tasks:
        return []
    return run_tasks(spark, tasks, function, name=name, where="a campaign on Spark", on_poll=on_poll)


def _earlier_verdicts(folder: Path) -> Iterator[RunResult]:
    """Results of chunks of earlier sittings that their driver did not read."""
    for path in sorted(folder.glob("verdicts-*.jsonl")):
        for line in path.read_bytes().splitlines():
            yield RunResult.from_json(line)
        path.unlink()


def _chunks(tasks: list[Task], first: int, processors: int) -> dict[int, Chunk]:
    """The tasks in chunks, by number, in the order of the seeds."""
    size = max(1, min(CHUNK_SEEDS, -(-len(tasks) // (CHUNKS_PER_PROCESSOR * processors))))
    starts = range(0, len(tasks), size)
    return {
        number: Chunk(number=number, tasks=tuple(tasks[start : start + size]))
        for number, start in enumerate(starts, first)
    }


def _begin(
    campaign: Campaign, out: Path, on_progress: Callable[[CampaignProgress], None]
) -> tuple[_Sitting, list[Task]]:
    """The sitting with what earlier ones came to, and what is left to do. Raises FencepostError."""
    store = claim(out, campaign.job, software_version=__version__, resume=campaign.resume)
    orders = ChunkOrders(job=campaign.job, out=out.absolute(), sitting=secrets.token_hex(8))
    take_over(orders.folder, orders.sitting)
    stored = store.trace_ids()
    ledger = Ledger.open(out)
    sitting = _Sitting(campaign=campaign, store=store, ledger=ledger, orders=orders, on_progress=on_progress)
    judged = {seed: result for seed, result in ledger.earlier.items() if seed in stored}
    for result in _earlier_verdicts(orders.folder):
        if result.seed in stored and result.seed not in judged and not result.crash:
            judged[result.seed] = result
            ledger.add(result)
    for seed, result in judged.items():
        if seed in campaign.seeds:
            sitting.tally.add(result)
    left = [
        Task(seed=seed, kind="judge" if seed in stored else "run")
        for seed in campaign.seeds
        if seed not in judged
    ]
    return sitting, left


def _check_fit(campaign: Campaign) -> None:
    """Refuse what needs one run to end before another begins. Raises FencepostError."""
    for wrong, expected, seen in (
        (campaign.out is None, "a folder for traces", "none"),
        (campaign.until is not None, "a whole range of seeds", "a search that ends early"),
        (
            campaign.job.steer_from >= 0,
            "plans that do not depend on earlier runs",
            "a campaign that is steered",
        ),
    ):
        if wrong:
            raise FencepostError(expected=expected, seen=seen, where="a campaign on Spark")


def drive_on_spark(
    campaign: Campaign,
    on_progress: Callable[[CampaignProgress], None] = _ignore,
    *,
    master: str | None = None,
    spark: Any = None,
) -> CampaignResult:
    """Run a campaign on Spark to its end, or to a Ctrl-C (then `interrupted` is set and every finished chunk
    is kept).

    campaign: as for the local driver; its `out` is needed, and is under the same path on every executor.
    master: where Spark runs (spark/session.py); spark: a session to use instead. Raises FencepostError: a
    folder that is taken, a plan that cannot be read, what the machine lacks, a task that always fails.
    """
    started = time.monotonic()
    _check_fit(campaign)
    if spark is None:
        check_spark()
    assert campaign.out is not None
    if campaign.seeds:
        plan_of(campaign.job, campaign.seeds[0])  # a plan that cannot be read fails here, in one sentence
    sitting, left = _begin(campaign, campaign.out, on_progress)
    interrupted = False
    try:
        with (
            nullcontext(spark)
            if spark is not None or not left
            else session(master, source=False, goes_on=lambda: "--resume continues") as running
        ):
            _run(sitting, left, running)
    except KeyboardInterrupt:
        interrupted = True
        take_over(sitting.orders.folder, NO_SITTING)  # a worker may still be at its chunk: it is too late
    finally:
        sitting.on_progress = _ignore  # progress is no longer reported after an interruption
        sitting.take_up()
        sitting.ledger.close()
    if not interrupted:
        sitting.parts += len(seal(sitting.store).parts)  # journals of a local sitting
        shutil.rmtree(sitting.orders.folder, ignore_errors=True)
    return sitting.tally.result(
        seeds=len(campaign.seeds),
        wall_s=time.monotonic() - started,
        parts=sitting.parts,
        interrupted=interrupted,
        possible=Steering(campaign.job, campaign.seeds).possible,
    )


def _run(sitting: _Sitting, left: list[Task], spark: Any) -> None:
    """All chunks, then the repeats."""
    if not left:
        return
    first = max((part.number for part in sitting.store.parts()), default=-1) + 1
    sitting.waiting = _chunks(left, first, spark.sparkContext.defaultParallelism)
    name = f"fencepost campaign {sitting.orders.sitting}"
    chunks = list(sitting.waiting.values())
    _job(spark, chunks, _RunChunks(orders=sitting.orders), name, lambda _: sitting.take_up())
    sitting.take_up()
    sitting.repeat(spark)
