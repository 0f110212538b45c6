"""The record of campaigns against real systems: its rows can be asked for, and its table hides nothing."""

import pytest
from attrs import evolve

from fencepost.campaign.swarm.real_systems import CONTROLS, PROFILES
from fencepost.campaign.workers.results import RunResult
from fencepost.checkers.verdict import Decision, Finding
from fencepost.cli.campaign.real import Asked, real_job
from fencepost.console.output import Output
from fencepost.systems.apache_kafka import disk
from fencepost.systems.named import make_system
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace
from tools.real_record.known import LAST_MEMBER, said_of, version_of
from tools.real_record.page import HEAD, UNEXPLAINED, Sum, explanations, known_defects, table, unexplained
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


# Known defects of real systems: a run's finding is one of them by what the run recorded, or is not
# explained.


def state(time, epoch, leader, *isr, cause="", partition=0):
    """A decision of the controllers."""
    return Event(
        time=time,
        name=Name.PARTITION_STATE,
        node=1,
        topic="t",
        partition=partition,
        leader=leader,
        leader_epoch=epoch,
        isr=isr,
        cause=cause,
    )


def dark(time, node):
    """A power loss."""
    return Event(time=time, name=Name.FAULT_BEGAN, node=node, cause="power_loss")


APPEND = Operation(
    op_id=7,
    process=0,
    function=Function.APPEND,
    topic="t",
    partition=0,
    invoke_time=8,
    completion_time=9,
    outcome=Outcome.OK,
)
LOST = Finding(
    anomaly="lost_write", check="log", expected="it", seen="not", topic="t", partition=0, operations=(7,)
)
STORY = (state(5, 0, 1, 1, 2, 3), state(10, 1, 2, 2), dark(20, 2), state(22, 2, -1, 2), state(30, 3, 2, 2))
TRACE = Trace(
    trace_id=12,
    plan="",
    seed=12,
    software_version="0",
    target="apache-kafka:3.9.2",
    operations=(APPEND,),
    events=STORY,
)


def test_the_last_member_that_lost_power_and_led_again_explains_a_loss():
    """Below 4.1; also where the controllers took the others out of the ISR after the power loss."""
    assert said_of(TRACE, (LOST,)) == LAST_MEMBER
    assert said_of(evolve(TRACE, target="apache-kafka:4.0.0:separate"), (LOST,)) == LAST_MEMBER
    later = (STORY[0], dark(20, 2), state(21, 1, -1, 2), STORY[-1])
    assert said_of(evolve(TRACE, events=later), (LOST,)) == LAST_MEMBER


@pytest.mark.parametrize(
    "trace",
    [
        evolve(TRACE, target="apache-kafka:4.1.1"),
        evolve(TRACE, target="apache-kafka:4.10.0"),
        evolve(TRACE, target="kfake"),
        evolve(TRACE, events=tuple(event for event in STORY if event.cause != "power_loss")),
        evolve(TRACE, events=tuple(dark(20, 3) if event.cause == "power_loss" else event for event in STORY)),
        evolve(TRACE, events=(*STORY[:1], dark(20, 2), state(30, 3, 2, 1, 2, 3))),
        evolve(TRACE, events=(*STORY[:-1], state(30, 3, 2, 2, cause="unclean"))),
        evolve(TRACE, events=(*STORY[:-1], state(30, 3, 3, 3), state(40, 4, 2, 2, 3))),
        evolve(TRACE, events=tuple(evolve(event, partition=1) for event in STORY)),
        evolve(TRACE, operations=(evolve(APPEND, completion_time=31),)),
        evolve(TRACE, operations=(evolve(APPEND, outcome=Outcome.UNKNOWN),)),
        evolve(TRACE, operations=()),
    ],
)
def test_what_does_not_meet_the_condition_is_not_explained(trace):
    """Another version or system, no power loss, another broker, not the only member, an unclean election,
    another leader, another partition, a record of later, of nobody, or that is not there."""
    assert said_of(trace, (LOST,)) == ""


def test_each_finding_of_a_run_has_to_meet_it():
    """Where a record is lost, what was sent again is a duplicate of what was read, and the end may be within
    a batch that was lost; a cluster that does not come back is another matter."""
    assert said_of(TRACE, (LOST, evolve(LOST, anomaly="no_progress"))) == "" == said_of(TRACE, ())
    for follows in ("inconsistent_offsets", "duplicate", "torn_batch"):
        assert said_of(TRACE, (LOST, evolve(LOST, anomaly=follows))) == LAST_MEMBER
    assert version_of("apache-kafka:4") == (4,) and version_of("processes") == ()


def test_the_record_looks_into_the_runs(tmp_path):
    """Their traces, by row and seed; what has an explanation keeps it."""
    row = Row(system="apache-kafka:3.9.2", runs=1, extra=frozenset({"disks"}))
    writer = TraceStore(tmp_path / row.name).writer("0-0")
    writer.append_rows(rows_of(TRACE))
    writer.append_rows(rows_of(evolve(TRACE, trace_id=13, events=())))
    writer.close()
    results = tuple(
        RunResult(seed=seed, decision=Decision.ILLEGAL, anomaly="lost_write", findings=(LOST,))
        for seed in (12, 13, 14)
    )
    sums = [Sum(row=row, results=results)]
    known = known_defects(tmp_path, sums, {(row.name, 14): "ours"})
    assert known == {(row.name, 12): LAST_MEMBER, (row.name, 14): "ours"}
    assert [one.seed for _, one in unexplained(sums, known)] == [13]
