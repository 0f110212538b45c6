"""All of it at once: brokers and controllers come and go while partitions move, topics go, brokers are asked
to stop and leaders are elected."""

import random

import pytest
from controller_lab import cluster, on_disk, pending, refused_transitions
from impl_lab import Lab

from fencepost.impl.core.core_interface import StopRequested
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, SetData
from fencepost.traces.events import Name

BROKERS = 4
MOVES = 40


class Churn:
    """Random moves, by seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lab = cluster({0: (2, 3), 1: (3, 4, 1)}, brokers=BROKERS)
        self.moves = [
            self.crash,
            self.start,
            self.start,
            self.start,
            self.expire,
            self.lose_replies,
            self.reassign,
            self.reassign,
            self.delete,
            self.create,
            self.create,
            self.add_partition,
            self.stop,
            self.elect,
            self.hold,
            self.release,
            self.rest,
            self.rest,
            self.mail,
        ]

    def run(self) -> Lab:
        """The moves, then everybody is up and everything comes to rest."""
        for _ in range(MOVES):
            self.random.choice(self.moves)()
        for node in range(1, BROKERS + 1):
            self.lab.release_zookeeper(node)
            self.lab.drivers[node].replies_to_lose = 0
        for _ in range(4):
            for node in self.down():
                self.lab.start(node)
            self.lab.come_to_rest(30_000)
        return self.lab

    def up(self) -> list[int]:
        return [node for node, driver in self.lab.drivers.items() if driver.core is not None]

    def down(self) -> list[int]:
        return [node for node, driver in self.lab.drivers.items() if driver.core is None]

    def topics(self) -> list[str]:
        return self.lab.children(znodes.TOPICS)

    def crash(self) -> None:
        if len(self.up()) > 2:
            self.lab.crash(self.random.choice(self.up()))

    def start(self) -> None:
        if self.down():
            self.lab.start(self.random.choice(self.down()))

    def expire(self) -> None:
        self.lab.expire(self.random.choice(self.up()))

    def lose_replies(self) -> None:
        self.lab.drivers[self.random.choice(self.up())].replies_to_lose = self.random.randrange(3)

    def hold(self) -> None:
        self.lab.hold_zookeeper(self.random.choice(self.up()))

    def release(self) -> None:
        for node in range(1, BROKERS + 1):
            self.lab.release_zookeeper(node)

    def replicas(self) -> tuple[int, ...]:
        return tuple(self.random.sample(range(1, BROKERS + 1), self.random.randrange(1, 4)))

    def reassign(self) -> None:
        targets = {}
        for topic in self.topics():
            node = self.lab.tree.node(znodes.topic_path(topic))
            assert node is not None
            for number in znodes.decode_topic(node.data):
                if self.random.random() < 0.6:
                    targets[TopicPartition(topic, number)] = self.replicas()
        if targets:
            self.lab.admin(Create(znodes.REASSIGN, znodes.encode_reassignments(targets)))

    def delete(self) -> None:
        topic = self.random.choice([*self.topics(), "nobody"])
        self.lab.admin(Create(znodes.delete_topic_path(topic)))

    def create(self) -> None:
        self.lab.create_topic({0: self.replicas()}, self.random.choice("tuv"))

    def add_partition(self) -> None:
        for topic in self.topics()[:1]:
            node = self.lab.tree.node(znodes.topic_path(topic))
            assert node is not None
            assignment = znodes.decode_topic(node.data)
            assignment[len(assignment)] = self.replicas()
            self.lab.admin(SetData(znodes.topic_path(topic), znodes.encode_topic(assignment)))

    def stop(self) -> None:
        if len(self.up()) > 2:
            self.lab.step(self.random.choice(self.up()), StopRequested())

    def elect(self) -> None:
        keys = [TopicPartition(topic, 0) for topic in self.topics()]
        self.lab.admin(Create(znodes.PREFERRED_ELECTION, znodes.encode_partitions(keys)))

    def rest(self) -> None:
        self.lab.come_to_rest(self.random.choice((100, 1_000, 12_000)))

    def mail(self) -> None:
        for _ in range(self.random.randrange(30)):
            if self.lab.mail:
                self.lab.deliver()


@pytest.mark.parametrize("seed", [*range(30), 44, 135])
def test_everything_asked_for_is_done_in_the_end(seed: int) -> None:
    """Rule (C7, C11, C12, C14, C15): once all brokers are up nothing is pending, each partition is led and
    replicated as assigned, nobody holds more, and no illegal transition was met."""
    lab = Churn(seed).run()
    assert len(lab.controllers()) == 1
    assert pending(lab) == {} and lab.children(znodes.DELETE_TOPICS) == []
    assert lab.tree.node(znodes.PREFERRED_ELECTION) is None
    assert refused_transitions(lab) == 0
    state = lab.core(lab.controllers()[0]).controller.state
    for topic in lab.children(znodes.TOPICS):
        node = lab.tree.node(znodes.topic_path(topic))
        assert node is not None
        for number, replicas in znodes.decode_topic(node.data).items():
            key = TopicPartition(topic, number)
            stands = lab.state(key)
            assert state.context.assignments[key] == replicas
            assert stands.leader in replicas and set(stands.isr) == set(replicas), (key, stands, replicas)
            assert lab.partition(stands.leader, key).is_leader
            for broker in replicas:
                assert str(key) in on_disk(lab, broker)


def test_the_churn_reaches_what_it_is_for() -> None:
    """Rule: the moves above do reassign, delete, stop and depose; a churn that only crashes brokers proves
    nothing."""
    reached: set[str] = set()
    for seed in range(4):
        events = Churn(seed).run().events
        reached |= {event.cause for event in events if event.name is Name.MARK}
        reached |= {event.name.value for event in events}
    assert reached >= {
        "reassigned",
        "reassignment_refused",
        "topic_deleted",
        "replica_deleted",
        "controlled_shutdown",
        "controller_resigned",
        "isr_updated",
    }
