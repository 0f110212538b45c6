"""What a version wrote is read by those after it: a campaign's folder with its traces, plan and verdicts.

golden/0.1.0 is what 0.1.0 made of `fencepost campaign --seeds 20 --bug KIP-101`, golden/0.2.0 what 0.2.0 made
of seed 23; a release adds its own.
Journals and sealed parts by themselves: tests/traces/golden.
"""

import shutil
from pathlib import Path

import msgspec
import pytest

from fencepost.campaign.driver.ledger import ABOUT, read_about, verdicts_of
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.cli import run
from fencepost.traces.plan_json import plan_from_json, plan_to_json
from fencepost.traces.store import TraceStore

GOLDEN = sorted((Path(__file__).parent / "golden").iterdir())


@pytest.fixture(params=GOLDEN, ids=[path.name for path in GOLDEN])
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the folder that an earlier version wrote."""
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def test_its_trace_plan_and_verdict_are_read(earlier: Path) -> None:
    """Rule: the trace is judged as it was then, its plan has a seed, operations and faults and is the same
    when it is written again, and the verdict is the one that was kept."""
    about, ((seed, verdict),) = read_about(earlier), verdicts_of(earlier).items()
    assert (about.software_version, about.job.bugs) == (earlier.name, ("KIP-101",))
    trace = TraceStore.open(earlier).read(seed)
    assert combine(judge(trace)).anomaly == verdict.anomaly == "committed_record_lost"
    assert (len(trace.operations), len(trace.events)) == (verdict.operations, verdict.events)
    plan = plan_from_json(trace.plan)
    assert (plan.seed, plan.cluster.bugs) == (seed, ("KIP-101",)) and plan.operations and plan.faults
    assert plan_from_json(plan_to_json(plan)) == plan


def test_it_is_resumed(earlier: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rule: what it has judged is not run again."""
    (seed,) = verdicts_of(earlier)
    words = [
        "campaign",
        "--seeds",
        str(seed),
        "--bug",
        "KIP-101",
        "--resume",
        "--out",
        str(earlier),
        "--json",
    ]
    assert run(words) == 1
    said = msgspec.json.decode(capsys.readouterr().out)
    assert (said["ran"], said["finished"], said["anomalies"]) == (0, 1, {"committed_record_lost": 1})


@pytest.mark.parametrize(
    "content", [{"version": 2, "job": {}}, {"version": 9, "job": ["of", "another", "shape"]}]
)
def test_a_later_version_is_refused(content: dict, tmp_path: Path, capsys) -> None:
    """Rule: what a later version wrote is one sentence, whatever it has, and nothing is changed."""
    (tmp_path / ABOUT).write_bytes(msgspec.json.encode(content))
    for words in (["campaign", "--seeds", "3", "--resume", "--out"], ["replay", "--trace", "3"]):
        assert run([*words, str(tmp_path)]) == 2
        told = capsys.readouterr().err
        assert f"{ABOUT}: expected a campaign of version 1, saw {content['version']}" in told
    assert [path.name for path in tmp_path.iterdir()] == [ABOUT]
