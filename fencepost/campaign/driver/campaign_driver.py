"""A campaign: seeds over worker processes, resumable, interruptible, and checked against itself.

Owns: which seed runs when, retries, repeats, what is sealed. Must not know: how a run works, what a judge
looks for, the terminal.

Every finished run is in a journal before it is judged (workers/worker.py), so neither a killed worker nor a
killed driver loses one. A keyed sample of the runs is run again in another process with another
PYTHONHASHSEED, and the digests are compared: a campaign whose runs do not repeat proves nothing.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import attrs
import msgspec
from attrs import define, field, frozen

from fencepost import __version__
from fencepost.campaign.driver.ledger import Ledger, claim
from fencepost.campaign.driver.steering import Steering
from fencepost.campaign.workers.plans import plan_of
from fencepost.campaign.workers.pool import COMMAND, TASK_LIMIT_S, Pool, WorkerAnswer
from fencepost.campaign.workers.results import CampaignResult, Job, Orders, RunResult, Tally, Task
from fencepost.traces.errors import FencepostError
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore

MOST_ATTEMPTS = 2
"""Processes that a seed may take with it before it is given up."""
RECHECK_ONE_IN = 50
"""How many runs there are to one that is run twice."""


@frozen(kw_only=True)
class CampaignProgress:
    """How far a campaign is."""

    done: int
    total: int
    # Runs with a finding so far.
    findings: int
    # The run that was just counted.
    result: RunResult


def _ignore(progress: CampaignProgress) -> None:
    """Tell nobody."""


@frozen(kw_only=True)
class Campaign:
    """A campaign to be driven."""

    seeds: range
    job: Job = field(factory=Job)
    jobs: int = 1
    # The folder of traces and verdicts, None to keep nothing (then every failing seed can be run again).
    out: Path | None = None
    resume: bool = False
    # A result for which it is true ends the search: seeds above it are not begun, those below it are
    # finished, so that the lowest such seed is known.
    until: Callable[[RunResult], bool] | None = None
    # Size of the sample that is run twice; 0 for none.
    recheck_one_in: int = RECHECK_ONE_IN
    command: tuple[str, ...] = COMMAND
    task_limit_s: float = TASK_LIMIT_S


def is_rechecked(seed: int, one_in: int) -> bool:
    """Whether a seed belongs to the sample that is run twice: a function of the seed alone."""
    return one_in > 0 and int.from_bytes(blake2b(b"recheck %d" % seed, digest_size=8).digest()) % one_in == 0


@define(kw_only=True)
class _Drive:
    """A campaign under way."""

    campaign: Campaign
    pool: Pool
    store: TraceStore | None
    ledger: Ledger | None
    on_progress: Callable[[CampaignProgress], None]
    # Seeds not begun yet, in order.
    fresh: Iterator[Task]
    steering: Steering
    # A task whose round has not begun (steering.py).
    held: Task | None = None
    tally: Tally = field(factory=Tally)
    # Tasks whose process died.
    again: deque[Task] = field(factory=deque)
    # (task, process that ran it first, its digest) waiting for another process.
    rechecks: deque[tuple[Task, int, str]] = field(factory=deque)
    # The digest that a recheck in hand must have, by seed.
    expected: dict[int, str] = field(factory=dict)
    # How many processes ended while they ran a seed, by seed.
    attempts: dict[int, int] = field(factory=dict)
    # Seeds from here on are not begun.
    stop: int | None = None
    parts: int = 0

    def loop(self) -> None:
        """Until nothing is left to give and nothing is in hand."""
        while True:
            for slot in self.pool.idle():
                task = self._next(slot)
                if task is not None:
                    self.pool.give(slot, task)
            if not self.pool.busy:
                return
            for answer in self.pool.answers():
                self._take(answer)

    def _next(self, slot: int) -> Task | None:
        """The next task for an idle slot. A repeat goes to another process than the first run; to a fresh one
        if there is no other."""
        number = self.pool.number(slot)
        for index, (task, first, digest) in enumerate(self.rechecks):
            if first != number and number:
                del self.rechecks[index]
                self.expected[task.seed] = digest
                return task
        if self.again:
            return self.again.popleft()
        while (fresh := self.held or next(self.fresh, None)) is not None:
            self.held = None
            if self.stop is not None and fresh.seed >= self.stop:
                continue
            profile = self.steering.profile_of(fresh.seed)
            if profile is None:
                self.held = fresh
                return None
            return attrs.evolve(fresh, profile=profile)
        return self._last_rechecks(slot, number)

    def _last_rechecks(self, slot: int, number: int) -> Task | None:
        """Repeats that only the process of this slot could take, and must not: a fresh one takes its
        place."""
        if not self.rechecks:
            return None
        task, first, digest = self.rechecks[0]
        if self.pool.numbers() - {first}:
            return None  # another process takes it when it is idle
        if number:
            self.pool.replace(slot)
        self.rechecks.popleft()
        self.expected[task.seed] = digest
        return task

    def _take(self, answer: WorkerAnswer) -> None:
        task, result = answer.task, answer.result
        if result is None:
            self._retry(task, answer.why)
        elif task.kind == "recheck":
            self._compare(result)
        else:
            self._count(result, answer.process)

    def _retry(self, task: Task, why: str) -> None:
        """A process died: its seed gets a second one, then it is reported."""
        self.attempts[task.seed] = self.attempts.get(task.seed, 0) + 1
        if self.attempts[task.seed] < MOST_ATTEMPTS:
            self.again.append(attrs.evolve(task, kind=self._kind_again(task)))
        elif task.kind == "recheck":
            self.tally.disagreeing.add(task.seed)
            self.expected.pop(task.seed, None)
        else:
            self._count(RunResult(seed=task.seed, kind=task.kind, crash=f"{why}, {MOST_ATTEMPTS} times"), 0)

    def _kind_again(self, task: Task) -> str:
        """A run that reached the journal before its process died in the judge is judged, not run again."""
        if task.kind == "run" and self.store is not None:
            self.store.refresh()
            return "judge" if task.seed in self.store.trace_ids() else "run"
        return task.kind

    def _compare(self, result: RunResult) -> None:
        self.tally.rechecked += 1
        if result.digest != self.expected.pop(result.seed):
            self.tally.disagreeing.add(result.seed)

    def _count(self, result: RunResult, process: int) -> None:
        self.tally.add(result)
        self.steering.add(result)
        self.tally.ran += 1
        if self.ledger is not None and not result.crash:
            self.ledger.add(result)
        until = self.campaign.until
        if until is not None and until(result):
            self.stop = min(result.seed, self.stop if self.stop is not None else result.seed)
        if result.digest and is_rechecked(result.seed, self.campaign.recheck_one_in):
            profile = self.steering.profile_of(result.seed) or ""
            task = Task(seed=result.seed, kind="recheck", profile=profile)
            self.rechecks.append((task, process, result.digest))
        if result.rotated and self.store is not None:
            self.parts += len(seal(self.store).parts)
        self.on_progress(
            CampaignProgress(
                done=self.tally.finished,
                total=len(self.campaign.seeds),
                findings=self.tally.anomalies.total(),
                result=result,
            )
        )


def _tasks(campaign: Campaign, stored: frozenset[int], judged: frozenset[int]) -> Iterator[Task]:
    """What is left to do, in the order of the seeds: stored runs without a verdict are judged, missing ones
    run."""
    for seed in campaign.seeds:
        if seed not in stored:
            yield Task(seed=seed)
        elif seed not in judged:
            yield Task(seed=seed, kind="judge")


def drive(campaign: Campaign, on_progress: Callable[[CampaignProgress], None] = _ignore) -> CampaignResult:
    """Run a campaign to its end, or to a Ctrl-C (then `interrupted` is set and every finished run is kept).

    Raises FencepostError: no worker, a folder that is taken, a plan that cannot be read, a disk that refuses.
    """
    started = time.monotonic()
    if campaign.jobs < 1:
        raise FencepostError(expected="at least one worker", seen=str(campaign.jobs), where="Campaign: jobs")
    if campaign.seeds:
        plan_of(campaign.job, campaign.seeds[0])  # a plan that cannot be read fails here, in one sentence
    store = ledger = None
    stored: frozenset[int] = frozenset()
    earlier: dict[int, RunResult] = {}
    if campaign.out is not None:
        store = claim(campaign.out, campaign.job, software_version=__version__, resume=campaign.resume)
        ledger = Ledger.open(campaign.out)
        stored = store.trace_ids()
        earlier = {
            seed: result
            for seed, result in ledger.earlier.items()
            if seed in stored and seed in campaign.seeds
        }

    def orders(slot: int) -> bytes:
        out = str(campaign.out) if campaign.out is not None else ""
        return msgspec.json.encode(Orders(job=campaign.job, out=out, name=str(slot))) + b"\n"

    state = _Drive(
        campaign=campaign,
        pool=Pool(campaign.jobs, orders, campaign.command, campaign.task_limit_s),
        store=store,
        ledger=ledger,
        on_progress=on_progress,
        fresh=_tasks(campaign, stored, frozenset(earlier)),
        steering=Steering(campaign.job, campaign.seeds),
    )
    for result in earlier.values():
        state.tally.add(result)
        state.steering.add(result)
    interrupted = False
    try:
        state.loop()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        state.pool.close()
        if ledger is not None:
            ledger.close()
    if store is not None and not interrupted:
        state.parts += len(seal(store).parts)
    return state.tally.result(
        seeds=len(campaign.seeds),
        wall_s=time.monotonic() - started,
        parts=state.parts,
        interrupted=interrupted,
        possible=state.steering.possible,
    )
