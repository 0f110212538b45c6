"""`fencepost shrink` as a person uses it: what it takes, what it answers, what it leaves behind when it is
interrupted."""

import signal
import subprocess
import time

import pytest
from attrs import evolve

from fencepost.campaign.shrink.text import write_plan
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.run.simulated.run import run
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.plan_json import plan_from_json
from tests.cli.conftest import COMMAND

BOUND_S = 600


def failing_plan() -> Plan:
    """Two operations and two faults; with KIP-101 planted a follower cuts its log at its high watermark."""
    return Plan(
        seed=3,
        safety_ms=20_000,
        cluster=ClusterOptions(topics=(TopicOptions(replication_factor=2),), bugs=("KIP-101",)),
        operations=(
            PlannedOperation(op_id=1, process=0, at_ms=100, function="append"),
            PlannedOperation(op_id=2, process=2, at_ms=9_000, function="poll"),
        ),
        faults=(
            Fault(fault_id=0, kind="crash", at_ms=103, duration_ms=300, target="follower 1 of t-0"),
            Fault(fault_id=1, kind="slow_link", at_ms=5_000, target="controller", parameter=9_000),
        ),
    )


def test_a_plan_becomes_small_and_replays(fencepost, tmp_path):
    """Rule: the shrunk plan is a file that replays to the same anomaly; exit code 1, as for every finding."""
    write_plan(tmp_path / "plan.json", failing_plan())
    small = tmp_path / "out" / "small.json"
    told = fencepost("shrink", tmp_path / "plan.json", "--out", small, "--jobs", 1, "--json")
    assert told.code == told.json["exit_code"] == 1
    assert told.json["before"]["operations"] == 2 and told.json["after"]["operations"] == 1
    assert told.json["after"]["faults"] == 1 and told.json["after"]["brokers"] == 2
    assert told.json["finished"] and not told.json["interrupted"]
    assert told.json["anomaly"] == told.json["finding"]["anomaly"] == "conformance"
    plan = plan_from_json(small.read_bytes())
    assert told.json["replay"] == f"fencepost replay --plan {small}"
    again = fencepost(*told.json["replay"].split()[1:], "--no-timeline", "--json")
    assert again.code == 1 and again.json["digest"] == run(plan).digest
    assert "conformance" in {
        one["anomaly"] for verdict in again.json["verdicts"] for one in verdict["findings"]
    }


def test_stored_runs_and_lines_of_json(fencepost, tmp_path):
    """Rule: a run of a folder, and one in JSON lines, has its plan in itself; a person reads sizes, finding
    and the replay command."""
    trace = run(failing_plan())
    write_traces(tmp_path / "traces.jsonl", [trace, evolve(trace, trace_id=4)])
    small = tmp_path / "small.json"
    told = fencepost("shrink", tmp_path / "traces.jsonl", "--trace", 4, "--out", small, "--jobs", 1)
    assert told.code == 1
    for words in (
        "before",
        "operations",
        "conformance: expected",
        f"See it: fencepost replay --plan {small}",
    ):
        assert words in told.out, words
    several = fencepost("shrink", tmp_path / "traces.jsonl", "--out", small)
    assert several.code == 2 and "expected one trace, saw 2" in several.sentence
    write_traces(tmp_path / "foreign.jsonl", [evolve(trace, plan="")])
    foreign = fencepost("shrink", tmp_path / "foreign.jsonl", "--out", small)
    assert foreign.code == 2 and "expected a plan to shrink, saw a trace without one" in foreign.sentence


def test_a_campaign_says_how_to_shrink_what_it_found(fencepost, tmp_path):
    """Rule: the summary of a campaign with findings ends with a command that can be given as it is (here: for
    no time at all)."""
    write_plan(tmp_path / "plan.json", failing_plan())
    out, small = tmp_path / "out", tmp_path / "small.json"
    told = fencepost("campaign --plan", tmp_path / "plan.json", "--seeds", 3, "--jobs", 1, "--out", out)
    command = told.out.split("Shrink it: fencepost ")[1].split("\n")[0]
    shrunk = fencepost(*command.split(), "--seconds", 0.001, "--jobs", 1, "--out", small, "--json")
    assert shrunk.code == 1 and shrunk.json["anomaly"] == "conformance"
    assert not shrunk.json["finished"] and shrunk.json["before"] == shrunk.json["after"]
    assert plan_from_json(small.read_bytes()) == failing_plan()


def test_a_campaign_shrinks_what_it_found(fencepost, tmp_path):
    """Rule: with --shrink the first run of each anomaly leaves its small plan beside the traces; the exit
    code stays that of the findings."""
    write_plan(tmp_path / "plan.json", failing_plan())
    out = tmp_path / "out"
    line = "campaign --seeds 3:5 --jobs 1 --shrink --json --plan"
    told = fencepost(line, tmp_path / "plan.json", "--out", out)
    assert told.code == 1
    (shrunk,) = told.json["shrunk"]
    assert (shrunk["anomaly"], shrunk["seed"], shrunk["out"]) == (
        "conformance",
        3,
        str(out / "shrunk-3.json"),
    )
    assert shrunk["before"]["operations"] == 2 and shrunk["after"]["operations"] == 1
    assert combine(judge(run(plan_from_json((out / "shrunk-3.json").read_bytes())))).anomaly == "conformance"


def test_a_record_that_does_not_repeat_is_told(fencepost, tmp_path):
    """Rule: where the run of a stored plan does not show what the record shows, nothing is shrunk, and it is
    said what was seen."""
    trace = run(failing_plan())
    healthy = failing_plan()
    other = run(evolve(healthy, cluster=evolve(healthy.cluster, bugs=())))
    write_traces(tmp_path / "traces.jsonl", [evolve(trace, plan=other.plan)])
    told = fencepost("shrink", tmp_path / "traces.jsonl", "--out", tmp_path / "small.json")
    assert told.code == 2
    assert "expected a run that shows conformance, saw a run that all checks found ok" in told.sentence


MISTAKES = [
    (
        ["--seed", 0, "--profile", "default+calm"],
        "seed 0: expected a run that shows an anomaly, saw a run that all checks found ok",
    ),
    (["PLAN", "--bug", "KIP-0"], "saw 'KIP-0'"),
    (["PLAN", "--anomaly", "no_progress"], "expected a run that shows no_progress, saw conformance"),
    (["PLAN", "--anomaly", "nonsense"], "saw 'nonsense'"),
    ([], "expected a plan, traces or --seed, saw none"),
    (["PLAN", "--seed", 3], "saw two of them"),
    (["PLAN", "--trace", 3], "expected --trace with traces"),
    (["--seed", 3, "--trace", 3], "expected --trace with traces"),
    (["PLAN", "--profile", "default+calm"], "expected --profile with --seed"),
    (["none.json"], "none.json: expected a readable file"),
    (["PLAN", "--seconds", "0"], "Invalid value for '--seconds'"),
    (["PLAN", "--checks", "all"], "expected checks out of"),
]


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES, ids=str)
def test_mistakes_are_told_in_one_sentence(fencepost, tmp_path, arguments, sentence):
    """Rule: what cannot be shrunk is told with expected and seen, exit code 2, and no plan is written."""
    write_plan(tmp_path / "plan.json", failing_plan())
    given = [tmp_path / "plan.json" if one == "PLAN" else one for one in arguments]
    told = fencepost("shrink", *given, "--out", tmp_path / "small.json")
    assert told.code == 2 and sentence in told.sentence
    assert not (tmp_path / "small.json").exists()


def test_an_interrupted_shrinking_leaves_its_best(tmp_path):
    """Rule: Ctrl-C ends it with exit code 130, no process is left, and the best plan so far is whole and
    shows the anomaly."""
    polls = tuple(
        PlannedOperation(op_id=1_000 + number, process=1, at_ms=number, function="poll")
        for number in range(300)
    )
    write_plan(tmp_path / "plan.json", evolve(failing_plan(), operations=failing_plan().operations + polls))
    small = tmp_path / "small.json"
    process = subprocess.Popen(
        [*COMMAND, "shrink", str(tmp_path / "plan.json"), "--out", str(small), "--jobs", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + BOUND_S
    first = None
    while first is None or small.read_bytes() == first:
        assert process.poll() is None and time.monotonic() < deadline
        first = small.read_bytes() if first is None and small.exists() else first
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=BOUND_S)
    assert process.returncode == 130, errors
    assert "interrupted; the best plan so far is kept" in errors and "not to the end" in out
    best = plan_from_json(small.read_bytes())
    assert len(best.operations) + len(best.faults) < 304
    assert combine(judge(run(best))).anomaly == "conformance"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["plan.json", "small.json"]
