"""Runs of which the cause is known: distinct bad ones of each planted bug (or two), and healthy ones of the
same profiles.

Owns how they are found and kept; a harvest that was ended goes on. Must not know groups or features (they are
what is measured).

    OUT/runs/KIP-101/       a folder of traces: runs with this bug planted in which some check found something
    OUT/runs/healthy/       runs of the unbroken implementation, of the same profiles, in which none did
    OUT/runs/KEY/tried.json seeds tried so far, and how many of them were bad
"""

import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

import msgspec
from attrs import define, evolve, field, frozen

from fencepost.campaign.bugs import BUGS
from fencepost.campaign.run.run import run_with_rows
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.traces.rows import Rows
from fencepost.traces.store import TraceStore

HEALTHY = "healthy"
CHUNK = 20
"""Seeds of one task: some seconds of work."""
NICE = 15
"""Of worker processes: a harvest takes an hour, and others may work on the machine."""


@frozen(kw_only=True)
class Wanted:
    """Runs to find. key: the folder's name; bugs: planted; profiles: of the swarm, by turns; own: each of
    these sets of anomalies must be among what a run shows, so that a run with two bugs shows both; runs: how
    many; seeds: to try at most."""

    key: str
    bugs: tuple[str, ...]
    profiles: tuple[str, ...]
    own: tuple[frozenset[str], ...]
    runs: int
    seeds: int


def of_bug(bug: str, runs: int, seeds: int) -> Wanted:
    """Runs with one bug planted that show an anomaly of its own."""
    return Wanted(
        key=bug,
        bugs=(bug,),
        profiles=(BUGS[bug].profile,),
        own=(BUGS[bug].anomalies,),
        runs=runs,
        seeds=seeds,
    )


def of_both(first: str, second: str, runs: int, seeds: int) -> Wanted:
    """Runs with two bugs planted that show an anomaly of each. The bugs are in different parts and share no
    anomaly."""
    profiles = tuple(sorted({BUGS[first].profile, BUGS[second].profile}))
    own = (BUGS[first].anomalies, BUGS[second].anomalies)
    return Wanted(
        key=f"{first}+{second}", bugs=(first, second), profiles=profiles, own=own, runs=runs, seeds=seeds
    )


def of_none(profiles: tuple[str, ...], runs: int) -> Wanted:
    """Healthy runs, equally many of each profile."""
    return Wanted(key=HEALTHY, bugs=(), profiles=profiles, own=(), runs=runs, seeds=2 * runs)


def _tried(wanted: Wanted, seeds: range) -> tuple[list[Rows], int]:
    """Runs of the seeds that are what is wanted, as canonical rows, and how many were tried."""
    if os.nice(0) < NICE:
        os.nice(NICE - os.nice(0))
    kept = []
    for seed in seeds:
        trace, rows = run_with_rows(swarm(seed, wanted.profiles[seed % len(wanted.profiles)], wanted.bugs))
        verdict = combine(judge(trace))
        shown = {finding.anomaly for finding in verdict.findings}
        good = all(shown & own for own in wanted.own) if wanted.own else verdict.decision is Decision.OK
        if good:
            kept.append(rows)
    return kept, len(seeds)


@define
class _Ledger:
    """What is known of one key. tried: seeds from the first on; kept: runs that are what is wanted."""

    folder: Path
    wanted: Wanted
    tried: int = 0
    kept: int = 0
    given: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        path = self.folder / "tried.json"
        if path.exists():
            told = msgspec.json.decode(path.read_bytes(), type=dict[str, int])
            self.tried, self.kept = told["tried"], told["kept"]
        self.given = self.tried

    @property
    def done(self) -> bool:
        return self.kept >= self.wanted.runs or self.given >= self.wanted.seeds

    def add(self, rows: list[Rows], tried: int) -> None:
        """Keep what a chunk found."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if rows:
            with TraceStore.create(self.folder).writer("harvest") as journal:
                for one in rows:
                    journal.append_rows(one)
        self.tried, self.kept = self.tried + tried, self.kept + len(rows)
        text = msgspec.json.encode({"tried": self.tried, "kept": self.kept})
        (self.folder / "tried.json").write_bytes(text)


def harvest(out: Path, wanted: list[Wanted], *, first_seed: int, jobs: int) -> Iterator[tuple[str, int, int]]:
    """Run what is missing, all keys by turns; (key, seeds tried, runs kept) after each chunk.

    first_seed: of every key. A chunk that was not finished when a harvest was ended is run again: nothing is
    kept of half a chunk.
    """
    ledgers = [_Ledger(out / "runs" / one.key, one) for one in wanted]
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        under_way: dict[Future[tuple[list[Rows], int]], _Ledger] = {}
        while True:
            while len(under_way) < 2 * jobs:
                idle = [one for one in ledgers if not one.done and one not in under_way.values()]
                if not idle:
                    break
                one = min(idle, key=lambda each: each.given)
                start = first_seed + one.given
                one.given += CHUNK
                under_way[pool.submit(_tried, evolve(one.wanted), range(start, start + CHUNK))] = one
            if not under_way:
                return
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                ledger = under_way.pop(future)
                ledger.add(*future.result())
                yield ledger.wanted.key, ledger.tried, ledger.kept
