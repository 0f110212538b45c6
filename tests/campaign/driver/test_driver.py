"""The campaign driver: nothing is lost, nothing is run twice without need, and what does not repeat is told.

The worker process is the real one; run, swarm and judge are replaced inside it by ones whose story the seed
decides (story_worker.py).
"""

import json
import os
from pathlib import Path

import pytest
from attrs import evolve

from fencepost.campaign.driver.campaign_driver import Campaign, drive, is_rechecked
from fencepost.campaign.driver.ledger import VERDICTS
from fencepost.campaign.workers.results import Job
from fencepost.processes import forking
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.store import TraceStore

WORKER = "tests.campaign.driver.story_worker"


class World:
    """A campaign whose worker plays a story, and what it left behind."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.marks, self.out, self.monkeypatch = folder / "marks", folder / "out", monkeypatch
        self.marks.mkdir()

    def campaign(self, seeds: range, story: dict[int, str], **other: object) -> Campaign:
        for name, value in (("STORY", json.dumps(story)), ("MARKS", self.marks), ("DRIVER", os.getpid())):
            self.monkeypatch.setenv(name, str(value))
        job = Job(plan=plan_to_json(Plan(seed=0)))
        command = (*forking.BEGIN, WORKER)
        return Campaign(**{"seeds": seeds, "out": self.out, "job": job, "command": command, **other})

    def runs_of(self, seed: int) -> int:
        return len(list(self.marks.glob(f"run-{seed}-*")))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_every_seed_is_run_kept_judged_and_sealed(world: World) -> None:
    """A campaign stores each run once in Parquet, counts verdicts by kind, and names the lowest failing seed
    first."""
    story = {
        3: "find lost_write",
        5: "find duplicate",
        7: "find lost_write",
        8: "weak",
        9: "unknown",
        2: "raise",
    }
    done = []
    result = drive(world.campaign(range(12), story, jobs=2), lambda progress: done.append(progress.done))
    assert done == list(range(1, 13))
    assert (result.seeds, result.finished, result.ran) == (12, 12, 12)
    assert result.anomalies == {"duplicate": 1, "lost_write": 2}
    assert result.failing == ((3, "lost_write"), (5, "duplicate"), (7, "lost_write"))
    assert (result.broken, result.undecided) == ((8,), (9,))
    assert [seed for seed, why in result.crashed] == [2]
    assert "ValueError: a broker tripped at story_worker.py:" in result.crashed[0][1]
    assert result.exit_code is ExitCode.FINDINGS
    store = TraceStore.open(world.out)
    assert store.trace_ids() == set(range(12)) - {2}
    assert store.parts() and not store.journals()


def test_only_ok_is_ok(world: World) -> None:
    """A campaign of sound runs exits 0; one weak, undecided or crashed run makes it 3."""
    assert drive(world.campaign(range(3), {})).exit_code is ExitCode.NOTHING_FOUND
    for word in ("weak", "unknown", "raise"):
        assert drive(world.campaign(range(2), {1: word}, out=None)).exit_code is ExitCode.UNDECIDED


def test_a_killed_worker_costs_nothing(world: World) -> None:
    """A seed whose process dies gets a second one; the runs that the dead one had finished are kept."""
    result = drive(world.campaign(range(6), {2: "kill once"}, jobs=2))
    assert (result.finished, result.crashed) == (6, ())
    assert TraceStore.open(world.out).trace_ids() == set(range(6))


def test_a_run_that_was_kept_is_not_run_again_for_its_judge(world: World) -> None:
    """A worker that dies while judging has the run in its journal already; only the judging is repeated."""
    result = drive(world.campaign(range(3), {1: "kill judge once"}, recheck_one_in=0))
    assert (result.finished, result.crashed) == (3, ())
    assert world.runs_of(1) == 1


def test_a_seed_that_kills_its_workers_is_reported(world: World) -> None:
    """After two processes a seed is given up, told with its signal, and the others go on."""
    result = drive(world.campaign(range(4), {1: "kill"}))
    assert result.crashed == ((1, "its process killed by signal 9, 2 times"),)
    assert result.finished == 4
    assert result.exit_code is ExitCode.UNDECIDED


def test_a_run_without_end_is_given_up(world: World) -> None:
    """A worker that does not answer within the limit is killed and its seed reported."""
    result = drive(world.campaign(range(2), {1: "hang"}, task_limit_s=0.2, recheck_one_in=0, out=None))
    assert "gave no answer in 0.2 s" in dict(result.crashed)[1]


def test_an_interrupt_loses_nothing_and_resume_goes_on(world: World) -> None:
    """After a Ctrl-C every finished run is kept, the exit code is 130, and --resume runs and judges only what
    is missing."""
    story = {4: "interrupt", 6: "find lost_write"}
    first = drive(world.campaign(range(10), story, recheck_one_in=0))
    assert first.interrupted and first.exit_code is ExitCode.INTERRUPTED
    kept = TraceStore.open(world.out).trace_ids()
    assert {0, 1, 2, 3, 4} <= kept and len(kept) < 10
    second = drive(world.campaign(range(10), story, resume=True, recheck_one_in=0))
    assert (second.finished, second.failing) == (10, ((6, "lost_write"),))
    assert all(world.runs_of(seed) == 1 for seed in range(10))
    third = drive(world.campaign(range(10), story, resume=True))
    assert (third.finished, third.ran, third.failing) == (10, 0, ((6, "lost_write"),))


def test_a_torn_verdict_is_judged_again(world: World) -> None:
    """Verdicts can be made again from the traces: a torn line costs a judging, not a run."""
    drive(world.campaign(range(4), {}, recheck_one_in=0))
    path = world.out / VERDICTS
    path.write_bytes(path.read_bytes()[:-10])
    result = drive(world.campaign(range(4), {}, resume=True, recheck_one_in=0))
    assert (result.finished, result.ran) == (4, 1)
    assert sum(world.runs_of(seed) for seed in range(4)) == 4
    assert path.read_bytes().count(b"\n") == 4


def test_a_folder_in_use_is_refused(world: World) -> None:
    """Without --resume a folder that holds something is refused, and with it another campaign's is."""
    drive(world.campaign(range(1), {}))
    with pytest.raises(
        FencepostError,
        match=r"expected an empty folder, saw that it holds a campaign; continue it \(--resume, or resume",
    ):
        drive(world.campaign(range(1), {}))
    other = world.campaign(range(1), {}, resume=True)
    with pytest.raises(FencepostError, match=r'the same bugs, \[\], saw \["KIP-101"\]'):
        drive(evolve(other, job=evolve(other.job, bugs=("KIP-101",))))


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_does_not_repeat_is_told(world: World, jobs: int) -> None:
    """A run whose second execution, in another process with another hash seed, has another digest makes the
    campaign undecided."""
    result = drive(world.campaign(range(4), {2: "drift"}, jobs=jobs, recheck_one_in=1, out=None))
    assert (result.rechecked, result.disagreeing) == (4, (2,))
    assert result.exit_code is ExitCode.UNDECIDED


def test_the_sample_is_keyed() -> None:
    """Which seeds are run twice depends on the seed alone, and about one in fifty is."""
    chosen = [seed for seed in range(5000) if is_rechecked(seed, 50)]
    assert chosen == [seed for seed in range(5000) if is_rechecked(seed, 50)]
    assert 60 < len(chosen) < 140
    assert not any(is_rechecked(seed, 0) for seed in range(100))


def test_a_search_finds_the_lowest_seed_and_stops(world: World) -> None:
    """A hunt ends at its first hit, but only after every seed below it has been run."""
    story = {6: "find lost_write", 7: "find lost_write", 30: "find lost_write"}
    campaign = world.campaign(
        range(1000), story, jobs=2, out=None, until=lambda result: bool(result.findings)
    )
    result = drive(campaign)
    assert result.failing[0] == (6, "lost_write")
    assert 7 <= result.finished < 30


def test_an_error_of_the_environment_ends_the_campaign_in_one_sentence(world: World) -> None:
    """What every further run would meet as well (a full disk) is raised once, as itself."""
    with pytest.raises(FencepostError, match=r"^here: expected a world, saw none$"):
        drive(world.campaign(range(5), {2: "break"}))
    assert {0, 1} <= TraceStore.open(world.out).trace_ids()


def test_an_unreadable_plan_fails_before_a_worker_starts(world: World) -> None:
    """A plan that cannot be read is told at once and leaves no folder behind."""
    with pytest.raises(FencepostError, match=r"plan\.seed: expected a value"):
        drive(world.campaign(range(5), {}, job=Job(plan="{}")))
    assert not world.out.exists()


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_campaign_without_a_worker_is_refused(jobs: int) -> None:
    """Rule: it would end at once with nothing run and nothing found."""
    with pytest.raises(FencepostError, match=f"expected at least one worker, saw {jobs}"):
        drive(Campaign(seeds=range(1), jobs=jobs))
