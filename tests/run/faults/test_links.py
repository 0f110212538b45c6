"""Faults of links, time, ZooKeeper and configuration: each has the effect that it says, while it lasts and no
longer, and a correct cluster survives it."""

import json

import pytest
from attrs import evolve

from fencepost.campaign.swarm.bounds import WIDE
from fencepost.campaign.swarm.profiles import PROFILES
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.faults.clocks import TIME_FAULTS
from fencepost.run.faults.link_faults import LINK_FAULTS, ring
from fencepost.run.simulated.cluster_of_run import FaultyCluster
from fencepost.run.simulated.run import Run, run
from fencepost.run.story import at_once
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.sim.world import FIRST_CLIENT_NODE
from fencepost.sim.zookeeper import ZOOKEEPER_NODE
from fencepost.traces.events import Name
from fencepost.traces.plan import BudgetOptions, ClusterOptions, Fault, TopicOptions
from fencepost.traces.plan_json import plan_from_json
from tests.selfcheck.amounts import amount


@pytest.fixture
def cluster(small_plan):
    """A maker of clusters of three or more brokers that run, with nothing on them."""

    def make(brokers: int = 3) -> FaultyCluster:
        run = Run(small_plan(cluster=ClusterOptions(brokers=brokers, zookeeper_session_timeout_ms=2_000)))
        assert at_once(run.set_up())
        return run.cluster

    return make


@pytest.fixture
def world(cluster) -> FaultyCluster:
    """Three brokers that run."""
    return cluster()


def begin(cluster: FaultyCluster, kind: str, parameter: int = 0, **changes) -> Fault:
    """A fault of broker 1 that lasts until it is ended."""
    number = len(cluster.active)
    fault = Fault(
        fault_id=number, kind=kind, at_ms=0, duration_ms=1_000_000, target="broker 1", parameter=parameter
    )
    cluster.begin(evolve(fault, **changes))
    return fault


def cut(cluster: FaultyCluster, nodes: tuple[int, ...]) -> set[tuple[int, int]]:
    """The directed links that are blocked between these nodes."""
    network = cluster.world.network
    return {(a, b) for a in nodes for b in nodes if a != b and network.blocked(a, b)}


BROKERS = (1, 2, 3)
CLIENTS = (FIRST_CLIENT_NODE, FIRST_CLIENT_NODE + 1)


def across(one: tuple[int, ...], other: tuple[int, ...]) -> set[tuple[int, int]]:
    """Both ways between two sides."""
    return {(a, b) for a in one for b in other} | {(b, a) for a in one for b in other}


@pytest.mark.parametrize(
    ("kind", "parameter", "other", "expected"),
    [
        ("ring_partition", 0, "", {(3, 1), (1, 2), (2, 3)}),
        ("ring_partition", 1, "", {(1, 3), (2, 1), (3, 2)}),
        ("majority_partition", 0, "", across((1,), (2, 3))),
        ("majority_partition", 1, "", across((1,), (0, 2, 3))),
        ("majority_partition", 2, "", across((1,), (0, 2, 3, *CLIENTS))),
        ("majority_partition", 3, "", across((1, 2), (3,))),
        ("majority_partition", 4, "broker 2", across((2,), (0, 1, 3))),
        ("client_partition", 0, "", across((1,), CLIENTS)),
        ("client_partition", 1, "", {(client, 1) for client in CLIENTS}),
        ("client_partition", 2, "", {(1, client) for client in CLIENTS}),
        ("zookeeper_unreachable", 0, "", across((0,), BROKERS)),
    ],
)
def test_a_partition_cuts_the_links_that_it_says_and_heals(cluster, kind, parameter, other, expected):
    """Each shape of partition blocks exactly its links, and none once it has ended."""
    world, nodes = cluster(), (ZOOKEEPER_NODE, *BROKERS, *CLIENTS)
    fault = begin(world, kind, parameter, other=other)
    assert cut(world, nodes) == expected
    world.end(fault.fault_id)
    assert not cut(world, nodes)


@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_in_a_ring_everybody_hears_another_majority(count):
    """The ring of majorities: each broker hears a majority, itself included, and no two hear the same one."""
    brokers = tuple(range(1, count + 1))
    for reverse in (False, True):
        blocked = set(ring(brokers, 2, reverse=reverse))
        heard = [frozenset(s for s in brokers if (s, target) not in blocked) for target in brokers]
        assert all(
            target in hears and len(hears) == count // 2 + 1
            for target, hears in zip(brokers, heard, strict=True)
        )
        assert len(set(heard)) == count


@pytest.mark.parametrize(("kind", "counted"), [("duplication", "duplicated"), ("reordering", "held_back")])
def test_messages_of_brokers_are_doubled_or_held_back_while_it_lasts(kind, counted, world):
    """Duplication and reordering hit links between brokers, not those of clients, and stop."""
    network = world.world.network
    fault = begin(world, kind, 500_000)
    client = network.link(FIRST_CLIENT_NODE, 1)
    assert client.duplicate_ppm == client.reorder_ppm == 0
    world.world.run_until(world.now + 3 * SECOND)
    during = getattr(network, counted)
    assert during > 5
    world.end(fault.fault_id)
    world.world.run_until(world.now + 3 * SECOND)
    assert getattr(network, counted) == during


def test_a_slow_host_does_less_in_the_same_time(world):
    """Each step of a slow host takes longer, so that it takes fewer; afterwards it is as quick as before."""
    host = world.world.hosts[1]

    def steps() -> int:
        before = host.steps
        world.world.run_until(world.now + 2 * SECOND)
        return host.steps - before

    quick = steps()
    fault = begin(world, "slow_host", 400_000)
    assert steps() <= 5 < quick
    assert begin(world, "slow_host", 1).fault_id not in world.active, "a host is slow once at a time"
    world.end(fault.fault_id)
    steps()  # what has waited
    assert steps() >= quick // 2


@pytest.mark.parametrize(("parameter", "expected_ms"), [(5_000, 5_000), (5_001, -5_001)])
def test_a_clock_jumps_for_one_host_and_jumps_back(parameter, expected_ms, world):
    """The time of day of the host alone is wrong by the parameter, its monotonic time is not, and it is right
    at the end."""
    fault = begin(world, "clock_jump", parameter)
    clocks = {node: host.clock for node, host in world.world.hosts.items()}
    wrong = {node: clock.now() - world.now for node, clock in clocks.items() if clock.now() != world.now}
    assert wrong == {1: expected_ms * MILLISECOND}
    assert clocks[1].elapsed() == world.now
    world.end(fault.fault_id)
    assert clocks[1].now() == world.now


def test_a_clock_that_jumps_is_what_the_broker_measures_with(small_plan):
    """A leader whose clock jumps beyond the retention believes that its records are old, and gives them up,
    as a real broker does; no judge complains."""

    def gave_up(parameter: int) -> int:
        jump = Fault(
            fault_id=0,
            kind="clock_jump",
            at_ms=5_000,
            duration_ms=3_000,
            target="broker 1",
            parameter=parameter,
        )
        topic = TopicOptions(retention_ms=60_000, segment_bytes=100)
        options = ClusterOptions(topics=(topic,), log_retention_check_interval_ms=500)
        trace = run(small_plan(cluster=options, faults=(jump,)))
        assert combine(judge(trace)).decision is Decision.OK
        return sum(e.name is Name.LOG_START and e.cause == "retention" and e.node == 1 for e in trace.events)

    assert gave_up(10_000) == 0 < gave_up(100_000)


def test_a_drifting_clock_stretches_timers_and_stays_where_it_got(world):
    """At a third of the true speed the host's timers fire a third as often and its clock falls behind; at the
    end it runs on from there."""
    clock = world.world.hosts[1].clock
    fault, begun = begin(world, "clock_drift", 333_333), world.now
    world.world.run_until(begun + 3 * SECOND)
    behind = world.now - clock.now()
    assert behind == pytest.approx(2 * SECOND, rel=1e-4)
    assert begin(world, "clock_drift", 2_000_000).fault_id not in world.active
    world.end(fault.fault_id)
    world.world.run_until(world.now + SECOND)
    assert world.now - clock.now() == behind


@pytest.mark.parametrize(("speed", "expires"), [(150_000, True), (1_000_000, False), (3_000_000, False)])
def test_a_slow_clock_costs_a_broker_its_session(speed, expires, world):
    """The ZooKeeper client pings by its host's clock: one that runs too slowly is too late, while ZooKeeper's
    own clock is right."""
    begin(world, "clock_drift", speed)
    world.world.run_until(world.now + 6 * SECOND)
    lost = any(e.name is Name.SESSION_EXPIRED and e.node == 1 for e in world.events)
    assert lost is expires


def test_a_restart_of_zookeeper_breaks_every_connection_and_ends_no_session(world):
    """All brokers lose their connection, nobody gets one meanwhile, all go on with the same session, and a
    watch that was set before fires after it."""
    zookeeper, clients = world.world.zookeeper, [world.world.hosts[node].zookeeper for node in BROKERS]
    sessions = [client.session for client in clients]
    fault = begin(world, "zookeeper_restart", duration_ms=8_000)
    world.world.run_until(world.now + 7 * SECOND)
    assert not zookeeper.up and not any(client.connected for client in clients)
    assert begin(world, "expire_session").fault_id not in world.active
    world.world.run_until(world.now + 3 * SECOND)
    assert fault.fault_id not in world.active and zookeeper.up
    assert all(client.connected for client in clients)
    assert [client.session for client in clients] == sessions
    assert not any(event.name is Name.SESSION_EXPIRED for event in world.events)
    world.begin(Fault(fault_id=9, kind="alter_topic", at_ms=0, target="topic t", parameter=2))
    world.world.run_until(world.now + 2 * SECOND)
    assert {event.node for event in world.events if event.name is Name.TOPIC_CONFIGURED} == set(BROKERS)


def test_requests_are_skipped_while_zookeeper_is_down(world):
    """An operator cannot write to a ZooKeeper that is not there: the request is skipped, with that reason."""
    begin(world, "zookeeper_restart")
    world.begin(Fault(fault_id=7, kind="alter_topic", at_ms=0, target="topic t", parameter=1))
    skipped = [json.loads(e.detail) for e in world.events if e.name is Name.FAULT_SKIPPED]
    assert skipped == [{"fault": 7, "reason": "ZooKeeper is down"}]


def test_unreachable_for_all_means_that_sessions_expire(world):
    """ZooKeeper goes on while nobody reaches it: all sessions end, and all brokers come back with new
    ones."""
    fault = begin(world, "zookeeper_unreachable")
    world.world.run_until(world.now + 4 * SECOND)
    world.end(fault.fault_id)
    world.world.run_until(world.now + 4 * SECOND)
    assert {e.node for e in world.events if e.name is Name.SESSION_EXPIRED} == set(BROKERS)
    assert world.observed_state.controller > 0


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (2, {"min.insync.replicas": "2"}),
        (3, {"unclean.leader.election.enable": "true"}),
        (8, {"segment.bytes": "150"}),
    ],
)
def test_a_configuration_change_is_applied_by_every_broker_and_can_be_taken_back(parameter, expected, world):
    """alter_topic writes the overrides, all brokers apply them; the first change takes all of them out."""
    for number, change in enumerate((parameter, parameter, 0)):
        fault = Fault(fault_id=number, kind="alter_topic", at_ms=0, target="topic t", parameter=change)
        world.begin(fault)
        world.world.run_until(world.now + SECOND)
    applied = [(e.node, json.loads(e.detail)) for e in world.events if e.name is Name.TOPIC_CONFIGURED]
    assert sorted(applied[:3]) == [(node, expected) for node in BROKERS], applied
    assert sorted(applied[3:]) == [(node, {}) for node in BROKERS]
    again = [json.loads(e.detail)["reason"] for e in world.events if e.name is Name.FAULT_SKIPPED]
    assert again == ["there is nothing to change"]


def test_no_change_asks_for_more_replicas_than_there_are(small_plan):
    """min.insync.replicas is not raised above a partition's replicas, nor are replicas taken away below it:
    nothing could be acknowledged any more."""
    alone = ClusterOptions(topics=(TopicOptions(replication_factor=1),))
    alter = Fault(fault_id=0, kind="alter_topic", at_ms=1_000, target="topic t", parameter=2)
    shrink = Fault(fault_id=1, kind="reassign_shrink", at_ms=3_000, target="partition t-0")
    refused = [
        e for e in run(small_plan(cluster=alone, faults=(alter,))).events if e.name is Name.FAULT_SKIPPED
    ]
    assert "partition of 1 replicas" in refused[0].detail
    two = ClusterOptions(topics=(TopicOptions(replication_factor=2),))
    trace = run(small_plan(cluster=two, faults=(alter, shrink)))
    assert [e.cause for e in trace.events if e.name is Name.FAULT_SKIPPED] == ["reassign_shrink"]
    assert combine(judge(trace)).decision is Decision.OK


def test_a_loss_after_unclean_leaders_were_allowed_is_a_claim(small_plan):
    """An operator allows unclean leaders while the cluster works: the one elected then loses records; the
    claims say so, and no judge complains."""
    down = [
        Fault(fault_id=0, kind="partition", at_ms=1_000, duration_ms=3_000, target="broker 1"),
        Fault(fault_id=1, kind="crash", at_ms=3_500, duration_ms=6_000, target="broker 1"),
    ]
    alter = Fault(fault_id=2, kind="alter_topic", at_ms=2_000, target="topic t", parameter=3)
    plan = small_plan(faults=(*down, alter), budget=BudgetOptions(brokers_down=1))
    plan = evolve(
        plan, cluster=evolve(plan.cluster, replica_lag_time_max_ms=500, zookeeper_session_timeout_ms=1_000)
    )
    trace = run(plan)
    assert any("outside the ISR" in loss.reason for loss in trace.claims.loss)
    assert combine(judge(trace)).decision is Decision.OK
    without = run(evolve(plan, faults=tuple(down)))
    assert not without.claims.loss and combine(judge(without)).decision is Decision.OK


@pytest.mark.parametrize("kind", [*WIDE, "alter_topic"])
def test_a_healthy_cluster_survives_each_of_them(kind):
    """No false alarm: some swarm plans that draw from this kind alone are judged Ok, most of them were hit by
    it, and it ended each time."""
    began = ended = 0
    for seed in range(amount(2, 12)):
        trace = run(swarm(seed, faults=(kind,)))
        verdict = combine(judge(trace))
        assert verdict.decision is Decision.OK, (seed, verdict.anomaly, verdict.reason)
        began += sum(e.name is Name.FAULT_BEGAN and e.cause == kind for e in trace.events)
        ended += sum(e.name is Name.FAULT_ENDED and e.cause == kind for e in trace.events)
        assert plan_from_json(trace.plan).faults == swarm(seed, faults=(kind,)).faults
    assert began == ended >= amount(2, 12)


def test_every_kind_is_drawn():
    """The kinds of this file are drawn by the swarm, and all are kinds of links, of time or of ZooKeeper."""
    assert set(WIDE) == {*LINK_FAULTS, *TIME_FAULTS, "zookeeper_restart", "zookeeper_unreachable"}
    assert {kind for profile in PROFILES.values() for kind in profile.kinds} >= set(WIDE)
