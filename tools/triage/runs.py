"""Runs of which the cause is known: distinct bad ones of each planted bug (or two), and healthy ones of the
same profiles.

Owns how they are found and kept; a harvest that was ended goes on. Must not know groups or features (they are
what is measured).

    OUT/runs/KIP-101/       a folder of traces: runs with this bug planted in which some check found something
    OUT/runs/healthy/       runs of the unbroken implementation, of the same profiles, in which none did
    OUT/runs/KEY/tried.jsonl seeds tried so far, and how many of them were bad
"""

import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from attrs import define, evolve, field, frozen

from fencepost.bugs import BUGS
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.simulated.run import run_with_rows
from fencepost.traces.canonical_rows import Rows
from fencepost.traces.store import TraceStore
from tools.ledger import Ledger

HEALTHY = "healthy"
CHUNK = 20
"""Seeds of one task: some seconds of work."""
NICE = 15
"""Of worker processes: a harvest takes an hour, and others may work on the machine."""


@frozen(kw_only=True)
class Wanted:
    """Runs to find."""

    # The folder's name.
    key: str
    # planted.
    bugs: tuple[str, ...]
    # Each of these sets of anomalies must be among what a run shows, so that a run with two bugs shows both.
    own: tuple[frozenset[str], ...]
    # How many.
    runs: int
    # To try at most.
    seeds: int


def of_bug(bug: str, runs: int, seeds: int) -> Wanted:
    """Runs with one bug planted that show an anomaly of its own."""
    return Wanted(key=bug, bugs=(bug,), own=(BUGS[bug].anomalies,), runs=runs, seeds=seeds)


def of_both(first: str, second: str, runs: int, seeds: int) -> Wanted:
    """Runs with two bugs planted that show an anomaly of each. The bugs are in different parts and share no
    anomaly."""
    own = (BUGS[first].anomalies, BUGS[second].anomalies)
    return Wanted(key=f"{first}+{second}", bugs=(first, second), own=own, runs=runs, seeds=seeds)


def of_none(runs: int) -> Wanted:
    """Healthy runs."""
    return Wanted(key=HEALTHY, bugs=(), own=(), runs=runs, seeds=2 * runs)


def _tried(wanted: Wanted, seeds: range) -> tuple[list[Rows], int]:
    """Runs of the seeds that are what is wanted, as canonical rows, and how many were tried."""
    if os.nice(0) < NICE:
        os.nice(NICE - os.nice(0))
    kept = []
    for seed in seeds:
        trace, rows = run_with_rows(swarm(seed, bugs=wanted.bugs))
        verdict = combine(judge(trace))
        shown = {finding.anomaly for finding in verdict.findings}
        good = all(shown & own for own in wanted.own) if wanted.own else verdict.decision is Decision.OK
        if good:
            kept.append(rows)
    return kept, len(seeds)


@frozen(kw_only=True)
class Chunk:
    """Seeds [first, first + tried)."""

    first: int
    tried: int
    # Runs of them that are what is wanted.
    kept: int


def chunks_of(out: Path, key: str) -> Ledger[Chunk]:
    """What is known of one key. Raises FencepostError."""
    path = out / "runs" / key / "tried.jsonl"
    return Ledger.open(path, Chunk, key=lambda one: one.first, of=f"runs of {key}")


def kept_of(ledger: Ledger[Chunk]) -> int:
    """How many runs there are."""
    return sum(one.kept for one in ledger.rows.values())


@define(eq=False)
class _Harvest:
    """Of one key."""

    wanted: Wanted
    ledger: Ledger[Chunk]
    # Seeds from the first on that are tried, or under way.
    given: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.given = self.tried

    @property
    def tried(self) -> int:
        return sum(one.tried for one in self.ledger.rows.values())

    @property
    def done(self) -> bool:
        return kept_of(self.ledger) >= self.wanted.runs or self.given >= self.wanted.seeds

    def add(self, rows: list[Rows], first: int, tried: int) -> None:
        """Keep what a chunk found."""
        if rows:
            with TraceStore.create(self.ledger.path.parent).writer("harvest") as journal:
                for one in rows:
                    journal.append_rows(one)
        self.ledger.add(Chunk(first=first, tried=tried, kept=len(rows)))


def harvest(out: Path, wanted: list[Wanted], *, first_seed: int, jobs: int) -> Iterator[tuple[str, int, int]]:
    """Run what is missing, all keys by turns; (key, seeds tried, runs kept) after each chunk.

    first_seed: of every key. A chunk that was not finished when a harvest was ended is run again: nothing is
    kept of half a chunk.
    """
    ledgers = [_Harvest(one, chunks_of(out, one.key)) for one in wanted]
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        under_way: dict[Future[tuple[list[Rows], int]], tuple[_Harvest, int]] = {}
        while True:
            while len(under_way) < 2 * jobs:
                busy = [one for one, _ in under_way.values()]
                idle = [one for one in ledgers if not one.done and one not in busy]
                if not idle:
                    break
                one = min(idle, key=lambda each: each.given)
                start = first_seed + one.given
                one.given += CHUNK
                under_way[pool.submit(_tried, evolve(one.wanted), range(start, start + CHUNK))] = one, start
            if not under_way:
                return
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                one, start = under_way.pop(future)
                rows, tried = future.result()
                one.add(rows, start, tried)
                yield one.wanted.key, one.tried, kept_of(one.ledger)
