"""Clusters that a test drives step by step, simulated and real, and how a failure of one is told and kept."""

import pytest
from attrs import evolve

from fencepost.campaign.failure import Keeping, RunFailedError, assert_ok
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.simulated.run import run
from fencepost.run.simulated.simulated_cluster import SimulatedCluster
from fencepost.traces.errors import FencepostError, PlanError
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.operations import Outcome
from fencepost.traces.plan import ClusterOptions, Plan, PlannedOperation, TopicOptions
from fencepost.traces.plan_json import plan_from_json


def healthy_steps(cluster: SimulatedCluster) -> None:
    """Appends around a pause of the leader, two processes at once, a read of everything."""
    assert cluster.append("t").outcome is Outcome.OK
    begun = [cluster.begin("append", process=1, records=2), cluster.begin("poll", process=2)]
    assert cluster.fault("pause", "leader of t-0", duration_ms=2_345)
    cluster.pass_time(137)
    assert not cluster.fault("crash", "broker 9")
    for op_id in begun:
        cluster.finish(op_id)
    cluster.pass_time(6_000)
    assert cluster.list_offsets().offset == 3
    assert [record.value for record in cluster.poll(process=3).records] == [1000, 2000, 2001]


@pytest.mark.parametrize("seed", range(3))
def test_what_was_asked_for_is_a_plan_that_replays(seed):
    """Rule: the trace of a simulated cluster carries a plan whose run has the same digest, and is Ok where
    nothing is planted."""
    cluster = SimulatedCluster.start(Plan(seed=seed))
    healthy_steps(cluster)
    trace = cluster.end()
    assert cluster.end() is trace and cluster.plan == plan_from_json(trace.plan)
    assert run(plan_from_json(trace.plan)).digest == trace.digest
    assert combine(judge(trace)).decision is Decision.OK


def test_mistakes_are_sentences():
    """Rule: what a simulated cluster cannot do is told with what was expected and seen."""
    planned = (PlannedOperation(op_id=1, process=0, at_ms=0, function="poll"),)
    with pytest.raises(PlanError, match="expected a plan without operations and faults, saw 1 operations"):
        SimulatedCluster.start(Plan(seed=0, operations=planned))
    cluster = SimulatedCluster.start(Plan(seed=0))
    with pytest.raises(PlanError, match="saw 'meteor'"):
        cluster.fault("meteor", "broker 1")
    with pytest.raises(PlanError, match="a role"):
        cluster.fault("crash", "somebody")
    with pytest.raises(PlanError, match="colour"):
        cluster.append(colour="red")
    cluster.end()
    with pytest.raises(FencepostError, match="expected a cluster that has not ended"):
        cluster.append()


def failing_trace():
    """A follower of a cluster with KIP-101 planted crashes with an append in its log, the other operations do
    not matter."""
    topic = TopicOptions(replication_factor=2)
    cluster = SimulatedCluster.start(
        Plan(seed=0, cluster=ClusterOptions(brokers=2, topics=(topic,), bugs=("KIP-101",)))
    )
    cluster.append()
    cluster.fault("crash", "follower 1 of t-0", duration_ms=10)
    cluster.poll(process=1)
    cluster.pass_time(15_000)
    cluster.append()
    return cluster.end()


FILES = {"trace.jsonl", "plan.json", "report.txt"}


def test_a_failure_is_told_and_kept(tmp_path):
    """Rule: a failure (planted: KIP-101) says anomaly, proof, timeline, the shrunk plan and how to replay it,
    and leaves all of it behind."""
    trace = failing_trace()
    keeping = Keeping(folder=tmp_path / "kept", shrink_s=20)
    with pytest.raises(RunFailedError) as failed:
        assert_ok(trace, keeping)
    text = str(failed.value)
    names = {path.name for path in keeping.folder.iterdir()}
    assert names == {*FILES, "shrunk.json", "shrunk.jsonl", "shrunk.html"}
    page = keeping.folder / "shrunk.html"
    assert f"watch it: {page} " in text and failed.value.verdict.anomaly in page.read_text()
    assert (keeping.folder / "report.txt").read_text() == text + "\n"
    assert next(iter(read_traces(keeping.folder / "trace.jsonl"))) == trace
    small = plan_from_json((keeping.folder / "shrunk.json").read_bytes())
    assert len(small.operations) + len(small.faults) < len(plan_from_json(trace.plan).operations) + 1
    assert combine(judge(run(small))).anomaly == failed.value.verdict.anomaly
    for words in (failed.value.verdict.anomaly, "expected:", "seen:", "Timeline", ">>>", '"operations": ['):
        assert words in text, words
    assert f"replay:    fencepost replay --plan {keeping.folder / 'shrunk.json'}" in text


def test_what_cannot_be_run_again_is_told_from_its_trace(tmp_path):
    """Rule: a trace without a plan is told too, and the command judges the trace."""
    folder = tmp_path / "kept"
    with pytest.raises(
        RunFailedError,
        match=f"(?s)fencepost check {folder / 'trace.jsonl'}.*watch it: {folder / 'trace.html'} ",
    ):
        assert_ok(evolve(failing_trace(), plan=""), Keeping(folder=folder, shrink_s=1))


def test_nothing_is_left_of_what_is_ok(tmp_path):
    """Rule: a run is saved before it is judged, and its file goes once it is Ok."""
    cluster = SimulatedCluster.start(Plan(seed=0))
    cluster.append()
    assert_ok(cluster.end(), Keeping(folder=tmp_path / "kept", shrink_s=1))
    assert not (tmp_path / "kept").exists()


@pytest.mark.java
def test_a_real_cluster_answers_the_same_calls(tmp_path):
    """Rule: processes over a real ZooKeeper take the same operations, and what their clients saw is a trace
    that is judged Ok."""
    pytest.importorskip("kazoo")
    from fencepost.systems.real_cluster import RealCluster

    plan = Plan(seed=0, cluster=ClusterOptions(brokers=2, topics=(TopicOptions(replication_factor=2),)))
    with RealCluster.started(tmp_path / "cluster", plan) as cluster:
        assert cluster.append(records=2).outcome is Outcome.OK
        assert [record.value for record in cluster.poll(process=1).records] == [1000, 1001]
        assert cluster.list_offsets().offset == 2
        with pytest.raises(PlanError, match="colour"):
            cluster.poll(colour="red")
        trace = cluster.end()
    assert [operation.function for operation in trace.operations] == ["append", "poll", "list_offsets"]
    assert combine(judge(trace, cluster.checks)).decision is Decision.OK
    assert all(broker.process == "dead" for broker in cluster.cluster.status().brokers)
