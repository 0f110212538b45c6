"""A campaign on Spark is the local campaign: the same runs, each once, whatever dies in between."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import evolve

from fencepost.campaign.driver.campaign_driver import Campaign, drive
from fencepost.campaign.driver.ledger import Ledger
from fencepost.campaign.driver.sitting import FOLDER, take_over
from fencepost.campaign.workers.results import CampaignResult, Job, RunResult, Task
from fencepost.cli import run
from fencepost.mining.campaign import spark_campaign
from fencepost.mining.campaign.spark_campaign import drive_on_spark
from fencepost.mining.campaign.tasks import Chunk, ChunkOrders, run_chunk, verdicts_of
from fencepost.traces.errors import EnvironmentError_, ExitCode, FencepostError
from fencepost.traces.store import TraceStore

SEEDS = range(20, 32)
JOB = Job(bugs=("KAFKA-532",))


def digests(out: Path) -> list[tuple[int, str]]:
    """Of a folder's runs. The helper is imported here: a worker of Spark imports this module, for `DiesOnce`,
    and knows no helpers."""
    from campaign_digests import digests as of_folder

    return of_folder(out)


def told(result: CampaignResult) -> CampaignResult:
    """What a campaign came to, without what depends on the engine and the hour."""
    return evolve(result, wall_s=0.0, parts=0, ran=0)


def ledger(out: Path) -> dict[int, RunResult]:
    """The verdicts that are kept. A run whose trace was kept and whose verdict was not is judged, not run
    again, which an interruption may come to."""
    kept = Ledger.open(out)
    kept.close()
    return {
        seed: evolve(result, wall_ms=0, rotated=False, kind="run" if result.kind == "judge" else result.kind)
        for seed, result in kept.earlier.items()
    }


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CampaignResult]:
    """The campaign as the local driver runs it."""
    out = tmp_path_factory.mktemp("campaign") / "local"
    return out, drive(Campaign(seeds=SEEDS, job=JOB, out=out, recheck_one_in=8))


class DiesOnce(spark_campaign._RunChunks):
    """The worker of one chunk dies by SIGKILL when all of it is written, before Spark hears of it."""

    def __call__(self, chunks):
        chunks = list(chunks)
        yield from super().__call__(chunks)
        if any(chunk.number == 1 for chunk in chunks):
            try:
                (self.orders.folder / "died").touch(exist_ok=False)
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.spark
def test_a_campaign_on_spark_equals_the_local_one_though_a_task_dies(
    local, tmp_path: Path, spark, monkeypatch
) -> None:
    """Runs, digests, verdicts and result are the local driver's; the chunk whose worker died after writing is
    there once."""
    monkeypatch.setattr(spark_campaign, "_RunChunks", DiesOnce)
    died = []
    monkeypatch.setattr(
        spark_campaign.shutil, "rmtree", lambda path, **_: died.append((path / "died").exists())
    )
    out, seen = tmp_path / "out", []
    result = drive_on_spark(
        Campaign(seeds=SEEDS, job=JOB, out=out, recheck_one_in=8),
        lambda progress: seen.append(progress.done),
        spark=spark,
    )
    assert died == [True]
    assert told(result) == told(local[1])
    assert (result.ran, result.parts > 1, result.rechecked > 0) == (len(SEEDS), True, True)
    assert seen == list(range(1, len(SEEDS) + 1))
    assert digests(out) == digests(local[0])
    assert ledger(out) == ledger(local[0])


@pytest.mark.spark
def test_an_interrupted_campaign_goes_on_with_either_engine(local, tmp_path: Path, spark) -> None:
    """Ctrl-C keeps the chunks that had ended; the local driver goes on for a while, Spark ends it, and
    nothing is run twice or missing."""
    out = tmp_path / "out"

    def interrupt(progress) -> None:
        raise KeyboardInterrupt

    first = drive_on_spark(Campaign(seeds=SEEDS, job=JOB, out=out), interrupt, spark=spark)
    assert first.interrupted
    kept = len(digests(out))
    middle = drive(Campaign(seeds=SEEDS[: len(SEEDS) // 2], job=JOB, out=out, resume=True))
    last = drive_on_spark(Campaign(seeds=SEEDS, job=JOB, out=out, resume=True, recheck_one_in=0), spark=spark)
    assert 0 < kept < len(SEEDS)
    assert last.ran < len(SEEDS)
    assert middle.finished == len(SEEDS) // 2
    assert evolve(told(last), rechecked=0) == evolve(told(local[1]), rechecked=0)
    assert digests(out) == digests(local[0])
    assert ledger(out) == ledger(local[0])
    assert not (out / FOLDER).exists()


@pytest.mark.spark
def test_a_task_that_always_fails_is_told(tmp_path: Path, spark, monkeypatch) -> None:
    """A folder that cannot be written to is one sentence, after as many attempts as a task has."""
    begin = spark_campaign._begin

    def in_the_way(*arguments):
        sitting, left = begin(*arguments)
        (tmp_path / "out" / "traces").rmdir()
        (tmp_path / "out" / "traces").touch()
        return sitting, left

    monkeypatch.setattr(spark_campaign, "_begin", in_the_way)
    with pytest.raises(EnvironmentError_, match="expected every task to end, saw NotADirectoryError"):
        drive_on_spark(Campaign(seeds=range(1), out=tmp_path / "out"), spark=spark)


@pytest.fixture
def orders(tmp_path: Path) -> ChunkOrders:
    """Of a campaign whose folder is there and whose driver is `mine`."""
    TraceStore.create(tmp_path / "out")
    orders = ChunkOrders(job=JOB, out=tmp_path / "out", sitting="mine")
    take_over(orders.folder, "mine")
    return orders


CHUNK = Chunk(number=3, tasks=(Task(seed=20), Task(seed=21)))


def test_a_worker_that_outlives_its_driver_writes_nothing(orders: ChunkOrders) -> None:
    """Once another sitting has taken over, a forgotten task may not add its part: its seeds are the other
    sitting's now."""
    take_over(orders.folder, "another")
    with pytest.raises(FencepostError, match="another, which has taken over"):
        run_chunk(CHUNK, orders, attempt="a")
    assert digests(orders.out) == []
    assert not verdicts_of(orders.folder, 3).exists()


def test_a_local_driver_takes_over_from_the_tasks_of_spark(tmp_path: Path) -> None:
    """A worker of a sitting that was interrupted or killed is too late once the campaign goes on, with either
    engine."""
    out = tmp_path / "out"
    campaign = Campaign(seeds=range(0), job=JOB, out=out)
    drive(campaign)
    take_over(out / FOLDER, "killed")
    drive(evolve(campaign, resume=True))
    with pytest.raises(FencepostError, match="saw another driver, which has taken over"):
        run_chunk(CHUNK, ChunkOrders(job=JOB, out=out, sitting="killed"), attempt="a")
    assert digests(out) == []


def test_an_interrupted_sitting_has_no_tasks_any_more(tmp_path: Path, monkeypatch) -> None:
    """What a worker ends after Ctrl-C was reported is not added: another driver may run its seeds."""
    begun = []

    def interrupted(sitting, *_):
        begun.append(sitting.orders)
        raise KeyboardInterrupt

    monkeypatch.setattr(spark_campaign, "_run", interrupted)
    campaign = Campaign(seeds=range(20, 22), job=JOB, out=tmp_path / "out")
    assert drive_on_spark(campaign, spark=object()).interrupted
    with pytest.raises(FencepostError, match="which has taken over"):
        run_chunk(CHUNK, *begun, attempt="a")


def test_a_chunk_that_is_run_again_is_there_once(orders: ChunkOrders) -> None:
    """A second attempt replaces part and verdicts by the same bytes."""
    written = []
    for attempt in ("a", "b"):
        run_chunk(CHUNK, orders, attempt=attempt)
        written.append([path.read_bytes() for path in sorted(orders.out.rglob("part-*.parquet"))])
    assert written[0] == written[1] and len(written[0]) == 3
    assert [seed for seed, _ in digests(orders.out)] == [20, 21]
    assert not list(orders.out.rglob("*.tmp")) and not list(orders.folder.glob("begun-*"))


def test_a_seed_that_takes_two_processes_with_it_is_given_up(orders: ChunkOrders) -> None:
    """A seed that two attempts died with is told as crashed, and the others of its chunk are run."""
    for attempt in ("a", "b"):
        (orders.folder / f"begun-3-{attempt}").write_text("20")
    run_chunk(CHUNK, orders, attempt="c")
    results = [RunResult.from_json(line) for line in verdicts_of(orders.folder, 3).read_bytes().splitlines()]
    assert [(result.seed, bool(result.crash)) for result in results] == [(20, True), (21, False)]
    assert [seed for seed, _ in digests(orders.out)] == [21]


def test_verdicts_that_the_driver_did_not_hear_are_taken_up(orders: ChunkOrders) -> None:
    """Killed between the end of a chunk and its ledger, a driver leaves verdicts that the next sitting counts
    without running or judging again."""
    out = orders.out
    fresh = out.parent / "fresh"
    assert drive(Campaign(seeds=range(0), job=JOB, out=fresh)).finished == 0
    take_over(fresh / FOLDER, "killed")
    run_chunk(evolve(CHUNK, number=0), ChunkOrders(job=JOB, out=fresh, sitting="killed"), attempt="a")
    result = drive_on_spark(Campaign(seeds=range(20, 22), job=JOB, out=fresh, resume=True), spark=object())
    assert (result.finished, result.ran) == (2, 0)
    assert sorted(ledger(fresh)) == [20, 21]


@pytest.mark.parametrize(
    ("campaign", "said"),
    [
        (Campaign(seeds=SEEDS), "expected a folder for traces"),
        (Campaign(seeds=SEEDS, out=Path("out"), until=lambda result: True), "saw a search that ends early"),
        (Campaign(seeds=SEEDS, out=Path("out"), job=Job(steer_from=0)), "saw a campaign that is steered"),
    ],
)
def test_what_cannot_be_spread_is_refused(campaign: Campaign, said: str) -> None:
    """Chunks know nothing of each other: what needs earlier results, and what keeps no traces, is told in a
    sentence."""
    with pytest.raises(FencepostError, match=said):
        drive_on_spark(campaign)


def test_the_command_line_chooses_the_engine(
    tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--engine spark drives the same campaign on the named master, and its result is the command's; --master
    alone is a mistake."""
    asked = []

    def drive_there(campaign: Campaign, on_progress, *, master: str | None) -> CampaignResult:
        asked.append((campaign.seeds, campaign.out, campaign.job.bugs, master))
        return CampaignResult(seeds=3, finished=3, anomalies={"lost_write": 1}, failing=((1, "lost_write"),))

    monkeypatch.setattr(spark_campaign, "drive_on_spark", drive_there)
    line = "campaign --seeds 0:3 --bug KIP-101 --master spark://host:7077 --out"
    command = [*line.split(), str(tmp_path / "out")]
    assert run([*command, "--engine", "spark"]) == ExitCode.FINDINGS
    assert asked == [(range(3), tmp_path / "out", ("KIP-101",), "spark://host:7077")]
    assert run(command) == ExitCode.USAGE
    assert "expected --master with --engine spark" in capsys.readouterr().err


def test_a_repeat_with_another_digest_is_told(orders: ChunkOrders, monkeypatch) -> None:
    """A run that another process with another hash seed repeats otherwise makes the campaign undecided."""
    run_chunk(CHUNK, orders, attempt="a")
    seen: dict[int, str] = {}

    def repeat(spark, lists, function, name, on_poll):
        for result in map(RunResult.from_json, function(lists)):
            seen[result.seed] = result.digest
            yield (evolve(result, digest="another") if result.seed == 21 else result).to_json()

    monkeypatch.setattr(spark_campaign, "_job", repeat)
    kept = Ledger.open(orders.out)
    sitting = spark_campaign._Sitting(
        campaign=Campaign(seeds=range(20, 22), job=JOB, out=orders.out, recheck_one_in=1),
        store=TraceStore.open(orders.out),
        ledger=kept,
        orders=orders,
        on_progress=lambda _: None,
        waiting={3: CHUNK},
    )
    sitting.take_up()
    sitting.repeat(SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1)))
    kept.close()
    assert seen == dict(digests(orders.out))
    assert (sitting.tally.rechecked, sitting.tally.disagreeing) == (2, {21})
