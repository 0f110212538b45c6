"""The record of campaigns against real systems: its rows can be asked for, and its table hides nothing."""

import pytest

from fencepost.campaign.swarm.real_systems import CONTROLS, PROFILES
from fencepost.campaign.workers.results import RunResult
from fencepost.checkers.verdict import Decision
from fencepost.cli.campaign.real import Asked, real_job
from fencepost.console.output import Output
from fencepost.systems.apache_kafka import disk
from fencepost.systems.named import make_system
from fencepost.traces.errors import FencepostError
from tools.real_record.page import (
    HEAD,
    UNEXPLAINED,
    Sum,
    explanations,
    table,
    unexplained,
)
from tools.real_record.rows import MANY, NEWEST, ROWS, Row

OK = RunResult(seed=0, decision=Decision.OK, wall_ms=4_000)
FOUND = RunResult(seed=3, decision=Decision.ILLEGAL, anomaly="lost_write", wall_ms=9_000)
WEAK = RunResult(seed=4, decision=Decision.UNKNOWN, wall_ms=5_000)
STRONG = Row(system=NEWEST, runs=3)


def test_every_row_is_a_campaign_that_can_be_asked_for(tmp_path, monkeypatch):
    """Names are unique, systems and profiles exist, and a control has the faults that it needs."""
    monkeypatch.setattr(disk, "missing", str)
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        options = dict.fromkeys(row.extra, "True")
        assert make_system(row.system, tmp_path, options).brokers == (1, 2, 3)
        given = {
            "system": row.system,
            "control": row.control,
            "runs_per_cluster": 25,
            **dict.fromkeys(("kafka_home", "bootstrap", "script")),
            **{option: option in row.extra for option in ("links", "disks")},
        }
        job = real_job(given, Asked(profile=row.profile), Output())
        assert job.profile in PROFILES and job.control == row.control
    assert {row.control for row in ROWS} == {*CONTROLS, ""}
    assert sum(row.runs == MANY for row in ROWS) == 2


def test_a_control_without_its_faults_is_refused():
    """Disks that cannot lie make nothing of the control lying-fsync."""
    given = dict.fromkeys(("kafka_home", "bootstrap", "script", "links", "disks"))
    given |= {"system": "embedded", "control": "acks-1", "runs_per_cluster": 25}
    assert real_job(given, Asked(), Output()).control == "acks-1"
    with pytest.raises(FencepostError, match="lying_fsync"):
        real_job({**given, "system": NEWEST, "control": "lying-fsync"}, Asked(), Output())
    with pytest.raises(FencepostError, match="a profile out of real, strong"):
        real_job(given, Asked(profile="chaos"), Output())


def test_a_finding_is_in_the_table_until_and_after_it_is_explained():
    """Healthy rows name each finding, and say where nobody explained it. A control that found nothing says
    so, too."""
    sums = [Sum(row=STRONG, results=(OK, FOUND, WEAK))]
    lines = table(sums, {})
    assert lines[: len(HEAD)] == list(HEAD)
    assert lines[2] == f"| {NEWEST} | `strong` | 3 | `lost_write` 1 | 1 | 5.0, 9.0 |"
    assert lines[-1] == f"- `lost_write` of {STRONG.name}, seed 3: {UNEXPLAINED}"
    assert [one.seed for _, one in unexplained(sums, {})] == [3]
    known = {(STRONG.name, 3): "a defect of ours"}
    assert table(sums, known)[-1].endswith("seed 3: a defect of ours") and not unexplained(sums, known)
    control = Row(system=NEWEST, runs=2, control="acks-1")
    assert "| **not found** |" in table([Sum(row=control, results=(OK,))], {})[2]
    found = table([Sum(row=control, results=(OK, FOUND))], {})
    assert "| in 1: `lost_write` 1 |" in found[2] and len(found) == 3


def test_explanations_name_rows_that_exist(tmp_path):
    """The file that comes with the tool, and one that says nothing."""
    names = {row.name for row in ROWS}
    assert {row for row, _ in explanations()} <= names
    path = tmp_path / "explained.toml"
    path.write_text('[[finding]]\nrow = "x"\nseeds = [1, 2]\nsays = "why"\n')
    assert explanations(path) == {("x", 1): "why", ("x", 2): "why"}
    path.write_text('[[finding]]\nrow = "x"\nseeds = [1]\n')
    with pytest.raises(FencepostError, match="an explanation"):
        explanations(path)
