"""`fencepost cluster kafka`, and one smoke test of a campaign against Apache Kafka where its jars are."""

import json

import pytest

from fencepost.cli import run
from fencepost.impl.runtime.processes import ProcessId, state
from fencepost.systems.apache_kafka.jars import RECOMMENDED, Release, cached
from fencepost.traces.errors import ExitCode, FencepostError

NEWEST = RECOMMENDED[-1]
jars = pytest.mark.skipif(
    NEWEST not in cached(),
    reason=f"runs Apache Kafka {NEWEST} from jars that Maven has fetched before: fencepost cluster kafka up",
)


def test_versions_say_what_is_here(capsys):
    """The recommended ones and those of the cache, with who keeps their state."""
    assert run(["cluster", "kafka", "versions", "--json"]) is ExitCode.NOTHING_FOUND
    known = {one["version"]: one for one in json.loads(capsys.readouterr().out)["versions"]}
    assert set(RECOMMENDED) <= known.keys()
    assert known["3.9.2"]["controllers"] == "ZooKeeper or KRaft" and known["4.4.0"]["controllers"] == "KRaft"
    assert {name for name, one in known.items() if one["cached"]} == set(cached())


def test_what_is_not_up_is_one_sentence(tmp_path, capsys):
    """`down` without `up`, and a version that is none."""
    assert run(["cluster", "kafka", "down", "--directory", str(tmp_path)]) is ExitCode.USAGE
    assert "expected a cluster that was brought up here" in " ".join(capsys.readouterr().err.split())
    assert run(["cluster", "kafka", "up", "--version", "4", "--directory", str(tmp_path)]) is ExitCode.USAGE
    assert "a version such as" in " ".join(capsys.readouterr().err.split())


def test_a_release_knows_who_can_keep_its_state():
    """KRaft from 3.5 on, ZooKeeper before 4.0."""
    assert Release(version="3.9.2", controllers="kraft").kraft
    assert not Release(version="3.9.2", controllers="zookeeper").kraft
    for version, controllers in (("4.4.0", "zookeeper"), ("3.4.1", "kraft"), ("3.9.2", "raft")):
        with pytest.raises(FencepostError, match=r"kraft or separate \(3\.5 and later\)"):
            Release(version=version, controllers=controllers)


@jars
def test_smoke_a_run_against_apache_kafka(tmp_path, capsys):
    """One run with the newest recommended release ends without a finding, and leaves no process."""
    out = tmp_path / "out"
    system = ["--system", f"apache-kafka:{NEWEST}", "--seeds", "4:5", "--out", str(out)]
    code = run(["campaign", *system, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert (code, result["finished"]) == (ExitCode.NOTHING_FOUND, 1), result
    assert result["operations"] > 100 and not list((out / "clusters").glob("*"))


@jars
def test_up_detached_and_down(tmp_path, capsys):
    """The processes are there after `up`, and gone after `down`."""
    folder = ["--directory", str(tmp_path / "kafka")]
    assert (
        run(["cluster", "kafka", "up", "--brokers", "1", "--detach", "--json", *folder])
        is ExitCode.NOTHING_FOUND
    )
    (pid,) = json.loads(capsys.readouterr().out)["pids"].values()
    assert state(ProcessId(pid)) == "running"
    assert run(["cluster", "kafka", "down", *folder]) is ExitCode.NOTHING_FOUND
    assert state(ProcessId(pid)) == "dead"
