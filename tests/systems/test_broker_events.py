"""What broker processes record is in the trace of a real cluster, and the invariants judge it."""

from pathlib import Path

import pytest

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.systems import broker_events
from fencepost.systems.broker_events import EVENTS, EventFile, read_broker_events
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Outcome
from fencepost.traces.plan import ClusterOptions, Plan, TopicOptions

TRIES = 40
"""Appends until something is seen; each may take its whole time-out on a crowded machine."""
PLAN = Plan(seed=0, cluster=ClusterOptions(brokers=2, topics=(TopicOptions(replication_factor=2),)))


def written(directory, *names, close=True):
    """A file with events of these names."""
    directory.mkdir(exist_ok=True)
    events = EventFile.open(directory)
    for name in names:
        events.write(Event(time=0, name=name, node=1))
    if close:
        events.stream.close()
    return events


def test_events_come_back_in_order_of_time_across_brokers_and_processes(tmp_path):
    """Rule: one clock for all; a second process adds to the file; times count from the trace's beginning."""
    one, two = tmp_path / "broker-1", tmp_path / "broker-2"
    written(one, Name.BROKER_STARTED)
    written(two, Name.SESSION_EXPIRED)
    written(one, Name.BROKER_REGISTERED)
    events = read_broker_events((one, two, tmp_path / "broker-3"), since=0)
    assert [event.name for event in events] == [
        Name.BROKER_STARTED,
        Name.SESSION_EXPIRED,
        Name.BROKER_REGISTERED,
    ]
    later = read_broker_events((one, two), since=events[0].time)
    assert later[0].time == 0 < later[1].time < later[2].time


def test_a_killed_process_leaves_a_torn_line_and_the_next_one_begins_its_own(tmp_path):
    """Rule: what is not whole is left out, and nothing that follows; what is whole and no event is refused
    with a sentence."""
    written(tmp_path, Name.BROKER_STARTED)
    with (tmp_path / EVENTS).open("ab") as stream:
        stream.write(b'{"time":1,"name":"appe')
    written(tmp_path, Name.BROKER_REGISTERED)
    names = [event.name for event in read_broker_events((tmp_path,), since=0)]
    assert names == [Name.BROKER_STARTED, Name.BROKER_REGISTERED]
    with (tmp_path / EVENTS).open("ab") as stream:
        stream.write(b'{"time":"noon"}\n')
    with pytest.raises(TraceError, match=r"line 4: expected a trace event, saw "):
        read_broker_events((tmp_path,), since=0)


def test_a_full_file_gives_no_events_at_all(tmp_path, monkeypatch):
    """Rule: the bound holds over processes, and a record that ends before its run convicts nobody."""
    line = len(Path(written(tmp_path, Name.BROKER_STARTED).stream.name).read_bytes())
    monkeypatch.setattr(broker_events, "LONGEST_EVENT", line)
    monkeypatch.setattr(broker_events, "MAXIMUM_EVENT_BYTES", 3 * line + 9)
    assert len(read_broker_events((tmp_path,), since=0)) == 1
    written(tmp_path, *[Name.BROKER_STARTED] * 5)
    assert (tmp_path / EVENTS).stat().st_size <= 3 * line + 9
    assert read_broker_events((tmp_path,), since=0) == ()


def test_a_healthy_cluster_of_processes_is_ok_with_its_events(tmp_path):
    """Rule: a crash and a restart over real files; the brokers' events are in the trace, in the order in
    which one led to the other, and the invariants find nothing."""
    pytest.importorskip("kazoo")
    from fencepost.systems.real_cluster import RealCluster

    with RealCluster.started(tmp_path / "cluster", PLAN) as cluster:
        cluster.append(records=2)
        cluster.kill(2)
        cluster.start(2)
        assert any(cluster.append().outcome is Outcome.OK for _ in range(TRIES))
        trace = cluster.end()
    assert "invariants" in cluster.checks
    assert combine(judge(trace, ("invariants",))).decision is Decision.OK
    assert not combine(judge(trace, cluster.checks)).findings
    names = {event.name for event in trace.events}
    assert {Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.APPENDED, Name.HIGH_WATERMARK} <= names
    appended = [(event.cause, event.offset) for event in trace.events if event.name is Name.APPENDED]
    assert appended.index(("leader", 0)) < appended.index(("follower", 0))
    assert [event.cause for event in trace.events if event.name is Name.FAULT_BEGAN] == ["crash"]
    assert [event.time for event in trace.events] == sorted(event.time for event in trace.events)
    assert trace.events[0].time > 0


def test_a_bug_of_a_process_is_convicted_by_its_events(tmp_path, monkeypatch):
    """Rule: a planted broker process writes a high watermark beyond its log, and ends by its own assertion;
    clients see nothing, and the events name both."""
    pytest.importorskip("kazoo")
    from fencepost.systems.real_cluster import RealCluster

    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}:{Path(__file__).parent}")
    with RealCluster.started(tmp_path / "cluster", PLAN, program="planted_node") as cluster:
        for _ in range(TRIES):
            cluster.append()
            if any(broker.process == "dead" for broker in cluster.status().brokers):
                break
        trace = cluster.end()
    verdict = combine(judge(trace, cluster.checks))
    assert verdict.anomaly == "high_watermark_outside_log"
    assert "implementation_error" in {finding.anomaly for finding in verdict.findings}
    clients_alone = [one for one in judge(trace, ("log",)) if one.decision is Decision.ILLEGAL]
    assert not clients_alone
