"""Round trips in virtual time: with a network that takes a millisecond each way a controller's work takes two
for each round of its formula, not one more."""

from math import ceil

import pytest

from fencepost.impl.broker.broker import make_broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.grouping import GROUPED, ONE_AT_A_TIME, PIPELINED, Grouping
from fencepost.impl.zookeeper.interface import Create
from fencepost.impl.zookeeper.znodes import LeaderAndIsr
from fencepost.sim.host import Observer
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.sim.world import World
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, DiskOptions, NetworkOptions

TOPICS, BROKERS = 200, (2, 3, 4, 5, 6)
ROUND = 2 * MILLISECOND
STRATEGIES = {
    "one at a time": ONE_AT_A_TIME,
    "pipelined": PIPELINED,
    "groups of 7": Grouping(members=7, window=3),
    "grouped": GROUPED,
}


class Silent:
    """A broker that hears and says nothing."""

    def step(self, input, now):
        return []


class Times(Observer):
    """When events happened, by name or by the cause of a mark."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}

    def recorded(self, event: Event) -> None:
        self.times.setdefault(event.cause if event.name is Name.MARK else event.name.value, event.time)


def world_of(grouping: Grouping, times: Times) -> World:
    """Broker 1 is about to become the controller of topics of one partition each, on five brokers that are
    registered and say nothing."""
    network = NetworkOptions(latency_min_us=1_000, latency_tail_us=0, latency_max_us=1_000)
    world = World(
        1,
        network=network,
        disk=DiskOptions(write_us=0, fsync_us=0),
        session_timeout=600 * SECOND,
        observer=times,
    )
    for path in znodes.PERSISTENT_PATHS:
        world.admin(Create(path, b"1" if path == znodes.CONTROLLER_EPOCH else b""))
    for broker in BROKERS:
        world.admin(Create(znodes.broker_path(broker), znodes.encode_broker(broker, 0)))
    for number in range(TOPICS):
        topic, replicas = f"topic-{number:03d}", (BROKERS[number % 5], BROKERS[(number + 1) % 5])
        state = LeaderAndIsr(leader=replicas[0], leader_epoch=0, controller_epoch=1, isr=replicas)
        path = znodes.topic_path(topic)
        world.admin(Create(path, znodes.encode_topic({0: replicas})))
        for child, data in (("", b""), ("/0", b""), ("/0/state", znodes.encode_state(state))):
            world.admin(Create(f"{path}/partitions{child}", data))
    options = ClusterOptions(
        brokers=6, topics=(), leader_imbalance_check_ms=0, controller_request_timeout_ms=1_000_000
    )
    world.add_host(
        1, lambda files, now: make_broker(1, options, files, Parts(), now, grouping), zookeeper=True
    )
    for broker in BROKERS:
        world.add_host(broker, lambda files, now: Silent(), zookeeper=False)
        world.start(broker)
    return world


def rounds(count: int, grouping: Grouping) -> int:
    """For so many independent members."""
    return ceil(ceil(count / grouping.members) / grouping.window)


def until(world: World, condition) -> int:
    """Let one millisecond after another pass until it holds; answers when."""
    for _ in range(10_000):
        if condition():
            return world.now
        world.run_until(world.now + MILLISECOND)
    raise AssertionError("it did not come true")


@pytest.mark.parametrize("grouping", STRATEGIES.values(), ids=STRATEGIES)
def test_reload_and_controlled_shutdown_take_two_milliseconds_a_round(grouping: Grouping) -> None:
    """Rule (S): a reload takes three rounds of lists and those of registrations, topics, watches and states;
    a controlled shutdown those of its leaders and those of its followers."""
    times = Times()
    world = world_of(grouping, times)
    world.start(1)
    core = world.hosts[1].core
    controller = core.controller
    loaded = until(world, lambda: controller.state.active and not controller.running)
    watches = rounds(TOPICS, grouping) if grouping.members > 1 else 0
    expected = 3 + rounds(len(BROKERS) + 1, grouping) + rounds(TOPICS, grouping) * 2 + watches
    assert loaded - times.times[Name.CONTROLLER_ELECTED.value] == expected * ROUND

    request = kafka.ControlledShutdownRequest(
        correlation_id=1, broker_id=2, broker_epoch=controller.state.context.live_brokers[2]
    )
    begin = world.now
    world.hosts[1].accept(MessageArrived(2, request))
    until(world, lambda: "controlled_shutdown" in times.times)
    led = followed = TOPICS // 5
    expected = rounds(led, grouping) + rounds(followed, grouping)
    assert times.times["controlled_shutdown"] - begin == expected * ROUND
