"""One run of a campaign against Apache Kafka itself, where Maven and Java are there."""

import json

import pytest

from fencepost.checkers.judges import judge
from fencepost.cli import run
from fencepost.systems.apache_kafka.jars import KRAFT, Release, missing
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.events import AUDIT_FOUND, Name
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.store import TraceStore
from tests.run.real.small_plans import KEEPS, plan_of

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Apache Kafka: {missing()}")


def test_a_campaign_breaks_apache_kafka_and_finds_nothing(tmp_path, capsys):
    """Three brokers, a leader that is killed and comes back, a final read of everything, the inside as
    events, and all replicas equal at the end. Skipped by name where the jars cannot be fetched."""
    try:
        Release(version=KRAFT).class_path()
    except FencepostError as error:
        pytest.skip(f"Apache Kafka {KRAFT}: {error}")
    path, out = tmp_path / "plan.json", tmp_path / "out"
    path.write_text(plan_to_json(plan_of(("crash", 300, 100, "leader of t-0"), count=30, client=KEEPS)))
    system = ["--system", f"apache-kafka:{KRAFT}", "--plan", str(path)]
    code = run(["campaign", *system, "--seeds", "0:1", "--jobs", "1", "--out", str(out), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert (said["finished"], said["crashed"], said["anomalies"]) == (1, [], {}), said
    assert code in (ExitCode.NOTHING_FOUND, ExitCode.UNDECIDED), "a starved machine acknowledges too little"
    trace = TraceStore.open(out).read(0)
    began = [event.cause for event in trace.events if event.name is Name.FAULT_BEGAN]
    assert began == ["crash"] and any(event.name is Name.PARTITION_STATE for event in trace.events)
    assert any(one.strong for one in trace.operations)
    assert {event.node for event in trace.events if event.name is Name.REPLICA_LOG} == {1, 2, 3}
    assert not [event.detail for event in trace.events if event.cause == AUDIT_FOUND]
    assert {verdict.decision.value for verdict in judge(trace, ("invariants", "conformance"))} == {"ok"}
