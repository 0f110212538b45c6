"""Bad traces of two planted bugs become two bugs, whatever the files, and nothing is made of healthy ones."""

import json
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from attrs import evolve
from triage_runs import HEALTHY, write

from fencepost.cli import run as fencepost
from fencepost.mining.mine import mine
from fencepost.mining.triage.bugs import read_bugs
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import TraceError

pytestmark = [pytest.mark.spark, pytest.mark.java]


def groups_in(out: Path) -> dict[int, int]:
    rows = pq.read_table(out / "groups", columns=["trace_id", "bug"])
    return dict(zip(rows.column("trace_id").to_pylist(), rows.column("bug").to_pylist(), strict=True))


def test_each_planted_bug_is_one_group(planted) -> None:
    """Rule: every bad trace is in one group, those of a bug together and apart from the other's; healthy ones
    in none."""
    groups = groups_in(planted.out)
    assert groups.keys() == planted.bug_of.keys()
    of = defaultdict(set)
    for trace_id, bug in planted.bug_of.items():
        of[bug].add(groups[trace_id])
    assert sorted(map(len, of.values())) == [1, 1] and len(set.union(*of.values())) == 2
    bugs = planted.summary.bugs
    assert [bug.number for bug in bugs.bugs] == [1, 2] and (bugs.bad, bugs.healthy) == (8, len(HEALTHY))
    assert {bug.anomaly for bug in bugs.bugs} == {"leader_epoch_repeated", "empty_isr"}
    assert all(bug.smallest.trace_id in planted.bug_of for bug in bugs.bugs)
    assert bugs == read_bugs(planted.out)


def test_a_bug_names_the_missing_protections_own_step(planted) -> None:
    """Rule: the first features of a bug are steps that its protection forbids, with counts of both sides."""
    shares = {bug.anomaly: bug.shares for bug in planted.summary.bugs.bugs}
    first = shares["empty_isr"][0]
    assert "ISR empty" in first.feature and (first.bad, first.of_bad, first.healthy) == (4, 4, 0.0)
    assert first.of_healthy == len(HEALTHY) and first.p < 0.01
    assert first.words().startswith(
        "in 100 % of the bad (4 of 4) and 0 % of the healthy (24): step: partition_state"
    )
    other = next(bug for bug in planted.summary.bugs.bugs if bug.anomaly == "leader_epoch_repeated")
    assert any("in the same epoch again" in item for item in other.items)


def test_groups_do_not_depend_on_files(planted, tmp_path, spark) -> None:
    """Rule: other row groups, another order, and a plan without the names of planted bugs: the same bugs with
    the same names."""
    bare = [
        evolve(trace, plan=trace.plan.replace('"KAFKA-708"', "").replace('"KAFKA-1188"', ""))
        for trace in reversed(planted.runs)
    ]
    bare = [evolve(trace, digest=digest_of(trace)) for trace in bare]
    write(tmp_path / "in", bare, group_operations=100_000)
    summary = mine([tmp_path / "in"], tmp_path / "out", spark=spark, since=planted.out)
    assert groups_in(tmp_path / "out") == groups_in(planted.out)
    told = [(bug.name, bug.traces, bug.items) for bug in summary.bugs.bugs]
    assert told == [(bug.name, bug.traces, bug.items) for bug in planted.summary.bugs.bugs]
    assert summary.since is not None and (summary.since.new, summary.since.gone) == ((), ())
    assert [one.grown for one in summary.since.both] == [False, False]


def test_nothing_is_made_of_healthy_traces(planted, tmp_path, spark) -> None:
    """Rule: without a bad trace there is no bug, and what an earlier mining had is gone."""
    healthy = [trace for trace in planted.runs if trace.trace_id in HEALTHY]
    write(tmp_path / "in", healthy, group_operations=5_000)
    summary = mine([tmp_path / "in"], tmp_path / "out", spark=spark, since=planted.out)
    assert summary.bugs.bugs == () and groups_in(tmp_path / "out") == {}
    assert summary.since is not None and len(summary.since.gone) == 2


def test_explain_names_the_protection_and_the_parting_event(planted, tmp_path, capsys) -> None:
    """Rule: with the missing protection the run passes, and parts from the failing one at the protection's
    own step."""
    number = next(bug.number for bug in planted.summary.bugs.bugs if bug.anomaly == "empty_isr")
    code = fencepost(["mine", "explain", str(planted.out), "--bug", str(number), "--seconds", "0", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == told["exit_code"] == 1
    closest = told["cause"]["passing"][0]
    assert closest["kind"] == "protection" and "keep_last_isr_member" in closest["says"]
    assert closest["name"] == "partition_state" and "ISR {}" in closest["event"]
    assert "ISR {}" not in closest["instead"] and closest["chain"][0] == closest["event"]


def test_a_bug_that_is_not_there_is_one_sentence(planted, tmp_path, capsys) -> None:
    """Rule: a number without a bug, and a folder without a mining, are told in one sentence."""
    assert fencepost(["mine", "explain", str(planted.out), "--bug", "9"]) == 2
    assert "expected --bug from 1 to 2, saw 9" in capsys.readouterr().err.replace("\n", " ")
    with pytest.raises(TraceError, match=r"bugs\.json"):
        read_bugs(tmp_path)


def test_histories_without_events_are_grouped_by_their_operations(make, tmp_path, spark, capsys) -> None:
    """Rule: foreign histories become bugs too, by findings and operations; what is missing is told, also by
    explain."""
    kinds = ("lost_write", "inconsistent_offsets", "legal", "legal", "legal")
    histories = [
        evolve(make(number, kinds[number % 5]), plan="", events=(), profile="edn") for number in range(20)
    ]
    write(tmp_path / "in", histories, group_operations=30)
    summary = mine([tmp_path / "in"], tmp_path / "out", spark=spark, checks=("log",))
    bugs = summary.bugs.bugs
    assert sorted((bug.anomaly, bug.traces) for bug in bugs) == [
        ("inconsistent_offsets", 4),
        ("lost_write", 4),
    ]
    assert all("no protocol events" in bug.missing[0] and bug.smallest.replay == "" for bug in bugs)
    assert fencepost(["mine", "explain", str(tmp_path / "out"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["cause"] is None and told["why_not"] == "the trace has no plan that could be run again"
