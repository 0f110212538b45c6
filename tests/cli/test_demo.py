"""The demo: it shows what the tool is for, and fails if it does not."""

import pytest

from fencepost.campaign.workers.results import CampaignResult
from fencepost.cli.demo import HEALTHY, PLANTED, _failures
from fencepost.mining.results.summary import Summary


@pytest.mark.spark
@pytest.mark.java
def test_the_demo_finds_the_planted_bug_and_nothing_else(fencepost, tmp_path) -> None:
    """A healthy and a planted campaign, mined together by Spark: the finding is explained and its replay
    command works."""
    line = "demo --seeds 0:7 --bug KAFKA-6082 --jobs 1 --master local[1] --json --out"
    told = fencepost(line, tmp_path / "demo")
    assert (told.code, told.json["failures"]) == (0, []), told.err
    assert "fenced_controller_wrote" in told.json["mined"]["anomalies"]
    assert told.json["mined"]["illegal"][str(tmp_path / "demo" / HEALTHY)] == 0
    for part in ("expected:", "seen:", "Proof", ">>>", "See it again: fencepost replay"):
        assert part in told.err
    replay = told.err.split("See it again: fencepost ")[1].split("\n")[0]
    assert fencepost(*replay.split()).code == 1
    again = fencepost(
        "mine", tmp_path / "demo" / PLANTED, "--out", tmp_path / "mined", "--master", "local[1]", "--json"
    )
    assert again.code == 1
    assert again.json["anomalies"] == told.json["mined"]["anomalies"]


def _summary(tmp_path, *, healthy: int, planted: int, anomaly: str = "lost_write") -> Summary:
    sources = {str(tmp_path / HEALTHY): healthy, str(tmp_path / PLANTED): planted}
    return Summary(
        out="",
        checks=("log",),
        traces=dict.fromkeys(sources, 10),
        illegal=sources,
        operations=1,
        events=1,
        splits=1,
        anomalies={anomaly: healthy + planted} if healthy + planted else {},
    )


def _result(findings: int, **other: object) -> CampaignResult:
    return CampaignResult(
        seeds=10, finished=10, anomalies={"lost_write": findings} if findings else {}, **other
    )


def test_the_demo_fails_on_a_healthy_finding_and_on_a_silent_bug(tmp_path) -> None:
    """A finding in the healthy part, none in the planted one, one of a wrong kind, a crash or a run that did
    not repeat fail the demo."""

    def failures(sound: CampaignResult, broken: CampaignResult, **mined: object) -> str:
        summary = _summary(tmp_path, **mined)
        return "; ".join(_failures({HEALTHY: sound, PLANTED: broken}, summary, tmp_path, "KIP-101"))

    assert failures(_result(0), _result(2), healthy=0, planted=2) == ""
    assert "the healthy part has 1 runs with a finding" in failures(
        _result(1), _result(2), healthy=1, planted=2
    )
    assert "no run with KIP-101 planted has a finding" in failures(
        _result(0), _result(0), healthy=0, planted=0
    )
    wrong = failures(_result(0), _result(2), healthy=0, planted=2, anomaly="stale_read")
    assert "no finding is of a kind that KIP-101 explains" in wrong
    assert "Spark found 1 failing runs" in failures(_result(0), _result(2), healthy=0, planted=1)
    assert "crashed, the first: x" in failures(
        _result(0, crashed=((3, "x"),)), _result(2), healthy=0, planted=2
    )
    assert "did not repeat" in failures(_result(0, disagreeing=(3,)), _result(2), healthy=0, planted=2)
