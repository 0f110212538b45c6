"""Campaigns against a system in real time: workers, resuming, findings and rates, with the embedded
cluster."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fencepost.campaign.shrink.rates import Repeater
from fencepost.campaign.workers.real_worker import FINDINGS
from fencepost.campaign.workers.results import Job
from fencepost.cli import run
from fencepost.report.commands import replay_rate
from fencepost.traces.errors import ExitCode
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.store import TraceStore
from tests.run.real.small_plans import KEEPS, plan_of

PATIENCE_S = 300


@pytest.fixture
def plan(tmp_path):
    """A file with a small plan, with a fault."""
    path = tmp_path / "plan.json"
    path.write_text(plan_to_json(plan_of(("crash", 100, 300, "leader of t-0"), count=20)))
    return path


def command(out, plan, *more):
    """A campaign in the embedded cluster."""
    return ["campaign", "--system", "embedded", "--plan", str(plan), "--out", str(out), "--json", *more]


def test_a_campaign_keeps_its_runs_and_goes_on(tmp_path, plan, capsys):
    """Two seeds by two workers, then a third: resumed, and only the third is run."""
    out = tmp_path / "out"
    assert run(command(out, plan, "--seeds", "0:2", "--jobs", "2")) is ExitCode.NOTHING_FOUND
    first = json.loads(capsys.readouterr().out)
    assert (first["finished"], first["ran"], first["rechecked"]) == (2, 2, 0)
    assert run(command(out, plan, "--seeds", "0:3", "--resume")) is ExitCode.NOTHING_FOUND
    assert json.loads(capsys.readouterr().out)["ran"] == 1
    store = TraceStore.open(out)
    assert sorted(store.trace_ids()) == [0, 1, 2]
    trace = store.read(1)
    assert trace.target == "embedded" and not trace.plan and any(one.strong for one in trace.operations)
    assert not (out / FINDINGS).exists()
    different = ["campaign", "--system", "embedded", "--plan", str(plan), "--out", str(out), "--resume"]
    assert run([*different, "--runs-per-cluster", "3"]) is ExitCode.USAGE
    assert "the same runs_per_cluster" in capsys.readouterr().err


def test_a_finding_is_kept_counted_and_shrunk(tmp_path, capsys, monkeypatch):
    """A control: its plan and history are kept, `replay` counts how often it shows, and `shrink` leaves what
    it takes."""
    monkeypatch.chdir(tmp_path)
    impatient = plan_of(
        ("pause", 150, 700, "leader of t-0"),
        ("pause", 200, 50, "follower 1 of t-0"),
        client=type(KEEPS)(
            request_timeout_ms=150, delivery_timeout_ms=6_000, retry_backoff_ms=20, retry_unknown=True
        ),
        count=60,
    )
    path = tmp_path / "impatient.json"
    path.write_text(plan_to_json(impatient))
    assert run(command("out", path, "--seeds", "5:6", "--control", "duplicates")) is ExitCode.FINDINGS
    (failing,) = json.loads(capsys.readouterr().out)["failing"]
    kept = tmp_path / "out" / FINDINGS / "5"
    assert (kept / "plan.json").exists() and (kept / "history.jsonl").exists()
    replay = ["replay", "out", "--trace", "5", "--times", "2", "--json"]
    assert run(replay) is ExitCode.FINDINGS
    rate = json.loads(capsys.readouterr().out)
    assert rate["runs"] == 2 and rate["anomalies"][failing["anomaly"]] >= 1
    shrink = ["shrink", "out", "--trace", "5", "--out", "small.json", "--seconds", "6", "--json"]
    assert run(shrink) is ExitCode.FINDINGS
    small = json.loads(capsys.readouterr().out)
    assert small["after"]["faults"] <= small["before"]["faults"] == 2 and (tmp_path / "small.json").exists()
    assert small["after"]["operations"] <= small["before"]["operations"]
    again = shlex.split(replay_rate("out", "small.json", times=2))
    assert run([*again[1:], "--json"]) in (ExitCode.FINDINGS, ExitCode.NOTHING_FOUND)
    assert json.loads(capsys.readouterr().out)["runs"] == 2


def test_repetitions_share_a_cluster(tmp_path):
    """A fresh topic for each; a cluster is discarded by `runs_per_cluster`."""
    job = Job(system="embedded", checks=("log",), runs_per_cluster=2)
    with Repeater(job, tmp_path) as repeater:
        rate = repeater.rate(plan_of(count=8), 3)
        assert repeater.worker.clusters.started == 2
    assert (rate.runs, rate.anomalies, rate.undecided) == (3, {}, 0)
    assert rate.words() == "3 runs: no finding"
    assert repeater.worker.clusters.system is None


def test_ctrl_c_ends_every_process(tmp_path, plan):
    """The run in hand is finished and kept, then nothing is left."""
    out = tmp_path / "out"
    program = [sys.executable, "-m", "fencepost", *command(out, plan, "--seeds", "0:50", "--jobs", "1")]
    campaign = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + PATIENCE_S
    while not (out / "verdicts.jsonl").exists() or not (out / "verdicts.jsonl").stat().st_size:
        assert time.monotonic() < deadline and campaign.poll() is None
        time.sleep(0.1)
    (worker,) = children(campaign.pid)
    campaign.send_signal(signal.SIGINT)
    campaign.communicate(timeout=PATIENCE_S)
    assert campaign.returncode == ExitCode.INTERRUPTED
    assert not Path(f"/proc/{worker}").exists()
    assert TraceStore.open(out).trace_ids()


def children(pid):
    """Process ids of children (Linux)."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--system", "nowhere"], "expected a system"),
        (["--system", "embedded", "--faults", "bit_rot"], "kinds of fault out of"),
        (["--system", "embedded", "--bug", "KIP-101"], "expected --bug with the simulation"),
        (["--system", "embedded", "--steer", "--control", "duplicates"], "with --plan or --control there"),
        (["--system", "embedded", "--shrink"], "--shrink is for the simulation"),
        (["--system", "external"], "--bootstrap HOST:PORT --script FILE"),
        (["--control", "acks-1"], "expected --system with --control"),
        (["--links"], "expected --system with --links"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(tmp_path, arguments, said, capsys):
    """Before anything starts, and without a folder."""
    out = tmp_path / "out"
    assert run(["campaign", "--out", str(out), "--seeds", "0:1", *arguments]) is ExitCode.USAGE
    assert said in " ".join(capsys.readouterr().err.split()) and not out.exists()


def test_times_are_for_real_systems(capsys):
    """A simulated run repeats exactly."""
    assert run(["replay", "--seed", "1", "--times", "3"]) is ExitCode.USAGE
    assert "against a real system" in " ".join(capsys.readouterr().err.split())
