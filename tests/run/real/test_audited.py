"""Copies of the brokers' directories after a run, compared with the history: what becomes an event, what is
kept with a finding, and the bounds of both."""

import json
from types import SimpleNamespace

import pytest

from fencepost.audit.runs import runs_of_files
from fencepost.audit.survey import AuditRequest
from fencepost.campaign.workers.real_worker import keep
from fencepost.checkers.judges import judge
from fencepost.impl.log import layout
from fencepost.run import files_at_end
from fencepost.run.files_at_end import LEFT_OUT, FilesAtEnd
from fencepost.run.real import copies
from fencepost.run.real.audited import Audit
from fencepost.run.real.copies import copy_directories, copy_logs
from fencepost.traces.events import AUDIT_FOUND, NOT_EVERYWHERE, Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Trace
from tests.audit.audit_lab import Stamped, flip, position_of, replica, segment
from tests.run.real.small_plans import plan_of

COMMON = tuple(range(100, 111))


def numbers(*values, epoch=0):
    """A batch of one record for each value id."""
    stamped = Stamped()
    return [stamped.batch(b"%d" % value, epoch=epoch) for value in values]


@pytest.fixture
def directories(tmp_path):
    """Three brokers with the same eleven records of t-0."""
    return {
        int(broker): replica(tmp_path / "live", broker, numbers(*COMMON), clean=False) for broker in "123"
    }


@pytest.fixture(autouse=True)
def _live(tmp_path):
    (tmp_path / "live").mkdir()


def acknowledged(*values):
    """An append of each, acknowledged at its place."""
    return tuple(
        Operation(
            op_id=number,
            process=1,
            function=Function.APPEND,
            invoke_time=number,
            completion_time=number,
            outcome=Outcome.OK,
            acks=-1,
            topic="shown",
            partition=0,
            offset=number,
            records=(Record(topic="shown", partition=0, offset=number, value=value),),
        )
        for number, value in enumerate(values)
    )


def events_of(directories, tmp_path, *values, judged=True):
    audit = Audit(directories=directories, copies=tmp_path / "copies", names={"t": "shown"})
    return audit.events(acknowledged(*values), 77, judged=judged)


def marks(events, cause):
    return [json.loads(event.detail) for event in events if event.cause == cause]


def verdict(events):
    (found,) = judge(Trace(trace_id=1, plan="", seed=1, software_version="", events=events), ("invariants",))
    return found.decision.value, found.anomaly


def test_replicas_that_agree_are_dumped_and_nothing_is_wrong(directories, tmp_path):
    """One dump for each replica, under the trace's name of the topic."""
    events = events_of(directories, tmp_path, *COMMON)
    assert {event.name for event in events} == {Name.REPLICA_LOG}
    assert [(one.node, one.topic, one.offset, one.values, one.end_offset, one.time) for one in events] == [
        (broker, "shown", 0, COMMON, 11, 77) for broker in (1, 2, 3)
    ]
    assert verdict(events) == ("ok", None)


def test_a_record_that_one_broker_has_is_named_with_it(directories, tmp_path):
    """Acknowledged at 11, and on broker 3 only: that convicts nobody by itself."""
    batches = numbers(*COMMON, 19)
    directories[3] = replica(tmp_path / "live", "third", batches, clean=False, high_watermark=11)
    events = events_of(directories, tmp_path, *COMMON, 19, judged=False)
    assert marks(events, NOT_EVERYWHERE) == [
        {"says": "v19, acknowledged at 11 of shown-0, is on broker 3 only"}
    ]
    assert verdict(events) == ("ok", None) and not marks(events, AUDIT_FOUND)
    assert verdict(events_of(directories, tmp_path, *COMMON, 19)) == ("ok", None), "broker 1 is on its way"


def test_replicas_that_differ_below_the_high_watermark_are_convicted(directories, tmp_path):
    """Planted: another record at offset 4 of broker 2."""
    other = [*COMMON[:4], 999, *COMMON[5:]]
    directories[2] = replica(tmp_path / "live", "other", numbers(*other), clean=False)
    events = events_of(directories, tmp_path, *COMMON)
    (found,) = marks(events, AUDIT_FOUND)
    assert found["anomaly"] == "log_divergence" and "broker-2" in found["expected"] + found["seen"]
    assert verdict(events) == ("illegal", "log_divergence")


def test_damage_in_a_file_is_convicted_by_the_trace_alone(directories, tmp_path):
    """Planted: a flipped bit in a batch below the high watermark. Of a run in which brokers did not come back
    nothing like that is reported."""
    path = segment(directories[1])
    flip(path, position_of(path, 3) + 70)
    events = events_of(directories, tmp_path, *COMMON)
    assert "corrupt_batch" in {found["anomaly"] for found in marks(events, AUDIT_FOUND)}
    assert verdict(events)[0] == "illegal"
    assert not marks(events_of(directories, tmp_path, *COMMON, judged=False), AUDIT_FOUND)


@pytest.mark.parametrize("detail", ["", "[", "{}", '{"anomaly":"nothing","expected":"","seen":""}'])
def test_a_mark_of_another_tool_convicts_nobody(detail):
    """It does not name an anomaly."""
    started = Event(time=0, name=Name.BROKER_STARTED, node=1)
    marked = Event(time=1, name=Name.MARK, cause=AUDIT_FOUND, detail=detail)
    assert verdict((started, marked)) == ("ok", None)


def test_what_is_reported_is_bounded(directories, tmp_path, monkeypatch):
    """Sentences are counted beyond their bound; segments beyond theirs are not read; a broken place is a
    mark."""
    monkeypatch.setattr(files_at_end, "MOST_SENTENCES", 2)
    lost = range(500, 505)
    said = marks(events_of(directories, tmp_path, *COMMON, *lost), NOT_EVERYWHERE)
    assert [one["says"] for one in said][1:] == [
        "v501, acknowledged at 12 of shown-0, is on no broker",
        "and 3 more",
    ]
    request = AuditRequest(places=tuple((str(broker), path) for broker, path in directories.items()))
    bounded = FilesAtEnd(request=request, judged=True, compared=True, most_bytes=10)
    (left_out,) = bounded.events((), 1)
    assert left_out.cause == LEFT_OUT and "above 10" in left_out.detail
    other = Audit(directories=directories, copies=tmp_path / "copies", names={"elsewhere": "t"})
    assert [event.cause for event in other.events((), 1, judged=True)] == [LEFT_OUT]
    assert Audit(directories={}, copies=tmp_path / "copies", names={}).events((), 1, judged=True) == ()


def test_only_what_belongs_to_the_run_is_copied(directories, tmp_path, monkeypatch):
    """Checkpoints and the run's partitions, without the last segment's indexes, which a broker has in memory;
    a replica that is being deleted leaves its name; an earlier copy is gone."""
    live = directories[1]
    (live / "other-0").mkdir()
    (live / "t-1.aa-delete").mkdir()
    last = segment(live, -1).with_suffix(".timeindex")
    last.write_bytes(b"in memory only")
    (tmp_path / "copies" / "broker-9").mkdir(parents=True)
    places = copy_directories({**directories, 4: tmp_path / "absent"}, {"t"}, tmp_path / "copies")
    assert [broker for broker, _ in places] == ["1", "2", "3"] and not (
        tmp_path / "copies" / "broker-9"
    ).exists()
    copied = {path.name for path in places[0][1].iterdir()}
    assert copied == {"t-0", "t-1.aa-delete", layout.HIGH_WATERMARKS}
    names = {path.name for path in (places[0][1] / "t-0").iterdir()}
    assert "00000000000000000000.index" in names and last.with_suffix(".log").name in names
    assert last.name not in names
    monkeypatch.setattr(copies, "MOST_COPIED_BYTES", 10)
    (_, first), *_ = copy_directories(directories, {"t"}, tmp_path / "copies")
    assert not (first / "t-0").exists()


def test_a_finding_keeps_copies_metadata_and_the_ends_of_logs(directories, tmp_path, monkeypatch):
    """All that explains it is in one folder; of a long log its end."""
    monkeypatch.setattr(copies, "MOST_LOG_BYTES", 6)
    (directories[1] / "__cluster_metadata-0").mkdir()
    (directories[1] / "__cluster_metadata-0" / "00000000000000000000.log").write_bytes(b"decisions")
    log = tmp_path / "broker.log"
    log.write_text("in the beginning\nthe end")
    copy_directories(directories, {"t"}, tmp_path / "copies")
    system = SimpleNamespace(
        directories=lambda: directories, logs=lambda: {"broker-1": log, "broker-2": tmp_path / "absent"}
    )
    keep(
        SimpleNamespace(plan=plan_of(), ahead=None, copies=tmp_path / "copies", system=system),
        tmp_path / "kept",
    )
    found = {str(path.parent.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*.log")}
    assert found == {"broker-1/__cluster_metadata-0", "broker-1/t-0", "broker-2/t-0", "broker-3/t-0", "logs"}
    assert (tmp_path / "kept" / "logs" / "broker-1.log").read_text() == "he end"
    copy_logs({}, tmp_path / "none")


def test_runs_are_of_one_epoch_each(tmp_path):
    """A batch of each epoch, read from the files."""
    stamped = Stamped()
    batches = [stamped.batch(b"7", b"8", epoch=0), stamped.batch(b"9", epoch=2)]
    path = segment(replica(tmp_path / "live", "1", batches))
    assert list(runs_of_files([path])) == [(0, 0, (7, 8)), (2, 2, (9,))]
