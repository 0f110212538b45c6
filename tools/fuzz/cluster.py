"""Three simulated brokers with leaders, groups and compaction, to send anything to.

Owns the cluster of one case and what it must still do afterwards. Must not know what is sent. Brokers, disks
and ZooKeeper are those of the simulator: a mistake in a broker's step comes out as an exception, a broker
that gives up as a halt.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field

from fencepost.impl.broker.broker import Broker, make_broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.broker_context import FIRST_CLIENT
from fencepost.impl.core.core_interface import Effect, MessageArrived
from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import Message, TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.sim.host import Observer
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.sim.world import World
from fencepost.traces.kafka_names.outcomes import NO_ERROR
from fencepost.traces.plan import ClusterOptions, GroupOptions, TopicOptions

BROKERS = (1, 2, 3)
CLIENTS = (1_000, 1_001)
OFFSETS = "__consumer_offsets"
TOPICS = (
    TopicOptions(name="t", partitions=3, segment_bytes=4_000),
    TopicOptions(name="c", cleanup_policy="compact", segment_bytes=1_000, min_cleanable_dirty_ppm=0),
    TopicOptions(name=OFFSETS, cleanup_policy="compact", segment_bytes=2_000, min_cleanable_dirty_ppm=0),
)
WARM_UP = 10 * SECOND
PATIENCE = 60 * SECOND
"""Virtual time in which a healthy cluster answers again: above every session and time-out here."""


@define(eq=False)
class Listener:
    """A client that notes what brokers send it."""

    heard: Callable[[Message], None]

    def step(self, input: Any, now: int) -> list[Effect]:
        """Take it in."""
        if isinstance(input, MessageArrived):
            self.heard(input.message)
        return []


class Nobody:
    """A broker's address where nobody listens: a peer may say that it is alive."""

    incarnation = 0

    def receive(self, source: int, message: Any) -> None:
        """It is lost."""


@define(eq=False)
class Cluster(Observer):
    """heard: takes every message that a broker sent to a client. halts: brokers that gave up, and why."""

    seed: int
    heard: Callable[[Message], None]
    world: World = field(init=False)
    halts: list[tuple[int, str]] = field(factory=list)
    answers: list[Message] = field(factory=list)
    options: ClusterOptions = field(
        factory=lambda: ClusterOptions(
            brokers=len(BROKERS),
            topics=TOPICS,
            groups=GroupOptions(initial_rebalance_delay_ms=0),
            log_cleaner_backoff_ms=1_000,
        )
    )

    def __attrs_post_init__(self) -> None:
        self.world = World(self.seed, observer=self)
        for broker in BROKERS:
            self.world.add_host(broker, partial(self._broker, broker), zookeeper=True)
        for client in CLIENTS:
            self.world.add_host(client, lambda files, now: Listener(self._heard), zookeeper=False)
        for broker in range(max(BROKERS) + 1, FIRST_CLIENT):
            self.world.network.attach(broker, Nobody())
        for node in (*BROKERS, *CLIENTS):
            self.world.start(node)
        self.run(WARM_UP)  # a controller is elected, and its nodes are there
        for topic in TOPICS:
            assignment = {
                number: tuple(BROKERS[(number + place) % len(BROKERS)] for place in range(len(BROKERS)))
                for number in range(topic.partitions)
            }
            self.world.admin(Create(znodes.topic_path(topic.name), znodes.encode_topic(assignment)))
        self.run(WARM_UP)
        assert not self.halts and self.leader(TopicPartition("t", 0)), "the cluster never came up"

    def _broker(self, broker: int, files: FileSystem, now: int) -> Any:
        return make_broker(broker, self.options, files, Parts(), now)

    def _heard(self, message: Message) -> None:
        self.answers.append(message)
        self.heard(message)

    def halted(self, node: int, reason: str) -> None:
        """A broker gave up."""
        self.halts.append((node, reason))

    def run(self, duration: int) -> None:
        """Let virtual time pass."""
        self.world.run_until(self.world.now + duration)

    def core(self, node: int) -> Broker:
        """A broker's core."""
        core = self.world.hosts[node].core
        assert isinstance(core, Broker), f"broker {node} is down"
        return core

    def send(self, source: int, target: int, message: Message) -> None:
        """Hand a message to a broker as its network does."""
        self.world.hosts[target].receive(source, message)

    def leader(self, key: TopicPartition) -> int:
        """The broker that leads a partition; 0 if there is none."""
        for node in BROKERS:
            partition = self.core(node).replicas.partitions.get(key)
            if partition is not None and partition.is_leader:
                return node
        return 0

    def expect_service(self) -> None:
        """Restart every broker: each recovers its logs and takes a good batch of every partition that it
        leads."""
        for node in BROKERS:
            self.world.crash(node)
            self.world.start(node)
        self.run(PATIENCE)
        assert not self.halts, self.halts
        for number, node in enumerate(BROKERS):
            self.core(node)
            self._expect_append(TopicPartition("t", number))

    def _expect_append(self, key: TopicPartition) -> None:
        leader = self.leader(key)
        assert leader, f"nobody leads {key} after the restart"
        batch = encode_batch([Record(0, 1, b"k", b"1")], base_offset=0, leader_epoch=-1)
        request = kafka.ProduceRequest(
            correlation_id=-77, partition=key, acks=-1, records=batch, timeout=30 * SECOND
        )
        del self.answers[:]
        self.send(CLIENTS[0], leader, request)
        self.run(40 * SECOND)
        errors = [
            answer.error
            for answer in self.answers
            if isinstance(answer, kafka.ProduceResponse) and answer.correlation_id == -77
        ]
        assert errors == [NO_ERROR], f"{key} at broker {leader}: {errors}"


STEP = 20 * MILLISECOND
"""Virtual time between two messages; sometimes much more passes (cases.py)."""
