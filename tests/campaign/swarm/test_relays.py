"""Relays of leaders: the profile `relays`, and KAFKA-7415 by hand, which it was made to reach."""

import pytest
from alone import alone

from fencepost.checkers.judges import judge
from fencepost.run.simulated.run import run
from fencepost.run.simulated.simulated_cluster import SimulatedCluster
from fencepost.traces.plan import (
    BudgetOptions,
    ClientOptions,
    ClusterOptions,
    NetworkOptions,
    Plan,
    TopicOptions,
)

MOST_MS = 10_000
"""Of virtual time for anything that the story waits for."""


def until(cluster: SimulatedCluster, happened: object) -> bool:
    """Let time pass until it happens."""
    assert callable(happened)
    for _ in range(MOST_MS):
        if happened():
            return True
        cluster.pass_time(1)
    return False


def relay(*bugs: str) -> set[str]:
    """Brokers 1 to 4, all in sync. 1 leads and shows a record of which no follower knows that it is shown; 2
    writes, 4 copies it, 3 is late and has not heard of 2; 3 leads and writes nothing; 4 asks it about 2's
    epoch, cuts its log, and leads. Returns what is found."""
    topic = TopicOptions(replication_factor=4)
    cluster = SimulatedCluster.start(
        Plan(
            seed=0,
            cluster=ClusterOptions(
                brokers=4,
                topics=(topic,),
                bugs=bugs,
                leader_imbalance_check_ms=0,
                zookeeper_session_timeout_ms=3_000,
            ),
            network=NetworkOptions(latency_min_us=20_000, latency_tail_us=0, latency_max_us=20_001),
            client=ClientOptions(request_timeout_ms=400, delivery_timeout_ms=20_000),
            budget=BudgetOptions(brokers_down=3),
        )
    )
    facts = cluster.run.cluster.observed_state
    partition = facts.partition(("t", 0))

    def gone() -> None:
        leader = f"broker {partition.leader}"
        assert cluster.fault("expire_session", leader, duration_ms=1)
        assert cluster.fault("crash", leader, duration_ms=60_000)

    cluster.append(acks=1)
    for _ in range(6):
        if facts.controller != 4:
            cluster.fault("expire_session", f"broker {facts.controller}", duration_ms=1)
            cluster.pass_time(3_000)
    assert facts.controller == 4 and until(cluster, lambda: len(partition.isr) == 4)
    cluster.pass_time(2_000)
    cluster.append(acks=1)
    cluster.pass_time(500)
    cluster.begin("append", acks=1)
    assert until(cluster, lambda: partition.exposed >= 3)
    gone()
    cluster.fault("slow_link", "broker 3", duration_ms=60_000, parameter=400_000)
    assert until(cluster, lambda: partition.led_by[0] == 2)
    for process in range(1, 12):
        if partition.replicas[4].end < 4:
            cluster.begin("append", acks=1, process=process)
            cluster.pass_time(100)
    assert partition.replicas[4].end >= 4
    gone()
    assert until(cluster, lambda: partition.replicas[4].end < 4)
    gone()
    cluster.pass_time(3_000)
    return {finding.anomaly for verdict in judge(cluster.end()) for finding in verdict.findings}


def test_a_leader_that_wrote_nothing_costs_a_committed_record_without_its_epoch_in_the_cache() -> None:
    """Rule (KAFKA-7415): asked for an epoch in between it cannot tell; the follower cuts at its lagging high
    watermark, and leads. With it nothing is found."""
    assert "committed_record_lost" in relay("KAFKA-7415")
    assert relay() == set()


def test_relays_are_rows_of_leaders_that_go_behind_their_writes() -> None:
    """Rule: all faults but the late broker follow an event and hit the leader; each relay begins seconds
    after the last; every broker has a replica."""
    for seed in range(12):
        plan = alone(seed, "relayed")
        late, *others = plan.faults
        assert (late.kind, late.at_ms, late.duration_ms) == ("slow_link", 0, plan.safety_ms)
        assert {fault.follows for fault in others} <= {"appended", "became_leader", "truncated"}
        assert {fault.target for fault in others} == {"leader of t-0"}
        assert {fault.kind for fault in others} <= {"expire_session", "crash"}
        assert len({fault.fault_id for fault in plan.faults}) == len(plan.faults)
        assert plan.cluster.topics[0].replication_factor == plan.cluster.brokers >= 4
    follows = [fault.follows for seed in range(12) for fault in alone(seed, "relayed").faults]
    assert follows.count("appended") > follows.count("truncated") > 12


@pytest.mark.parametrize(("asked", "left"), [("pause", {"pause"}), ("expire_session", {"expire_session"})])
def test_fewer_kinds_may_be_asked_for(asked: str, left: set[str]) -> None:
    """Rule: --faults narrows the profile; without the end of sessions there are no relays."""
    assert {
        fault.kind for seed in range(4) for fault in alone(seed, "relayed", faults=(asked,)).faults
    } == left


def test_nothing_is_found_in_a_healthy_cluster() -> None:
    """Rule: short reigns show nothing where no protection is missing."""
    for seed in (0,):
        assert not [one for verdict in judge(run(alone(seed, "relayed"))) for one in verdict.findings], seed
