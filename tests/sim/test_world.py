"""The world's faults of links, each effective, independent and undone by its name; and the plan's options
reach their parts."""

import pytest

from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.messages.broker_api import MetadataRequest, ProduceRequest, TopicPartition
from fencepost.impl.zookeeper.interface import Create, Created, Exists
from fencepost.sim.host import Observer
from fencepost.sim.scheduler import MICROSECOND, MILLISECOND, SECOND
from fencepost.sim.world import World
from fencepost.traces.plan import ClusterOptions, DiskOptions, NetworkOptions, Plan


def reached(it, nodes=(1, 2, 3)):
    """Which node reaches which, tried with one message each."""
    before = {node: len(it.core(node).messages()) for node in nodes}
    for source in nodes:
        for target in nodes:
            if source != target:
                it.send(source, target, (source, target))
    it.run()
    return {pair for node in nodes for pair in it.core(node).messages()[before[node] :]}


def test_a_partition_cuts_groups_from_each_other(lab):
    """Both ways, between groups only, until it is healed; nodes outside the groups reach everybody."""
    it = lab(3)
    whole = reached(it)
    assert len(whole) == 6
    it.world.partition("p", [1], [2])
    assert reached(it) == whole - {(1, 2), (2, 1)}
    it.world.partition("q", [1], [2, 3])
    assert reached(it) == {(2, 3), (3, 2)}
    it.world.heal("q")
    assert reached(it) == whole - {(1, 2), (2, 1)}
    it.world.heal("p")
    assert reached(it) == whole


def test_a_block_is_directed(lab):
    """A one-way cut."""
    it = lab(2)
    it.world.block("b", [(1, 2)])
    assert reached(it, (1, 2)) == {(2, 1)}
    it.world.heal("b")
    assert len(reached(it, (1, 2))) == 2


def test_a_degraded_link_is_slow_or_lossy(lab):
    """Extra delay and loss apply to the named links until they are healed."""
    it = lab(3)
    it.world.degrade("slow", [(1, 2)], delay_us=500_000)
    it.world.degrade("lossy", [(1, 3)], loss_ppm=1_000_000)
    assert (1, 3) not in reached(it)
    assert max(it.core(2).times(MessageArrived)) >= 500 * MILLISECOND
    it.world.heal("slow")
    it.world.heal("lossy")
    begun = it.world.now
    assert len(reached(it)) == 6 and max(it.core(2).times(MessageArrived)) - begun < 100 * MILLISECOND


def test_a_cut_from_zookeeper_leaves_the_brokers_connected(lab):
    """Only the way to ZooKeeper is cut."""
    it = lab(3, zookeeper=True)
    it.world.cut_from_zookeeper("cut", [1])
    assert len(reached(it)) == 6
    assert it.ask(1, Create("/a")) == [] and isinstance(it.ask(2, Create("/b"))[0], Created)


def test_produce_requests_are_never_doubled(lab):
    """The network doubles any message but a produce request."""
    it = lab(2, network=NetworkOptions(duplicate_ppm=1_000_000))
    produce = ProduceRequest(
        correlation_id=1, partition=TopicPartition("t", 0), acks=1, records=b"", timeout=SECOND
    )
    it.send(1, 2, produce)
    it.send(1, 2, MetadataRequest(correlation_id=2)).run()
    kinds = [type(message) for message in it.core(2).messages()]
    assert (kinds.count(ProduceRequest), kinds.count(MetadataRequest)) == (1, 2)


def test_a_plan_makes_the_world():
    """Seed, network, disk and session time-out come from the plan."""
    plan = Plan(
        seed=11,
        network=NetworkOptions(latency_min_us=7_000, latency_tail_us=0),
        disk=DiskOptions(fsync_us=9_000),
        cluster=ClusterOptions(zookeeper_session_timeout_ms=600),
    )
    world = World.from_plan(plan, observer=Observer())
    inputs = []

    class Core:
        def __init__(self, files, now):
            file = files.open("x")
            file.sync()

        def step(self, input, now):
            inputs.append((now, input))
            return []

    world.add_host(1, Core, zookeeper=True)
    world.add_host(2, Core, zookeeper=False)
    world.start(1)
    world.network.send(2, 1, "hello")
    world.run_until(10 * MILLISECOND)
    busy = 20 * MICROSECOND + 9 * MILLISECOND  # creating the file and syncing it
    assert inputs[1:] == [(busy, MessageArrived(2, "hello"))]
    world.run_until(SECOND)
    world.crash(1)
    world.run_until(SECOND + 600 * MILLISECOND)
    assert world.randomness.seed == 11 and world.zookeeper.sessions(1) == []


def test_node_ids_are_unique_and_zero_is_zookeeper(lab):
    """Two hosts of one id, or a host in ZooKeeper's place, are our own mistakes."""
    it = lab(1)
    for node in (0, 1):
        with pytest.raises(AssertionError, match="taken"):
            it.world.add_host(node, lambda files, now: None, zookeeper=False)


def test_a_run_can_stop_when_its_caller_has_seen_enough(lab):
    """stop ends run_until at the current event, with the rest still to come."""
    it = lab(1)
    it.world.scheduler.at(10, it.world.stop)
    it.world.run_until(SECOND)
    assert it.world.now == 10
    it.world.run_until(SECOND)
    assert it.world.now == SECOND


def test_the_harness_reads_and_writes_zookeeper_at_once(lab):
    """admin needs no session and no time."""
    it = lab(0)
    assert isinstance(it.world.admin(Create("/brokers")), Created) and it.world.now == 0
    assert it.world.admin(Exists("/brokers")).stat.version == 0
