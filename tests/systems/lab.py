"""An embedded system without sockets, and a connection that is a number."""

import itertools
import threading
import time

from fencepost.impl.admin.topic_administration import create_topic
from fencepost.impl.core.broker_context import FIRST_WIRE_CLIENT
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages.broker_api import ProduceRequest, TopicPartition
from fencepost.kafka.readiness import all_heard
from fencepost.sim.scheduler import SECOND
from fencepost.systems.embedded import Embedded, quick_options
from fencepost.systems.requests import carry_out

PATIENCE_S = 600
"""Far above what anything here takes on a crowded machine."""


class Wall:
    """The wall clock, with jumps."""

    def __init__(self) -> None:
        self.jumped = 0

    def __call__(self) -> int:
        return time.monotonic_ns() + self.jumped


def until(reached, what="what a test waits for"):
    """Wait for something that happens soon."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.002)


def system(brokers=3, **options):
    """An embedded system that does not listen."""
    return Embedded(options=quick_options(brokers), listen=False, **options)


def add_topic(embedded, name="t", partitions=1, replication_factor=3):
    """Create a topic and wait for its leaders."""
    steps = create_topic(
        name, partitions=partitions, replication_factor=replication_factor, draw=lambda below: 0
    )
    embedded.do(carry_out, steps, embedded.world.admin)
    until(lambda: all_know(embedded), f"a leader of {name}")


def all_know(embedded):
    """Whether every broker knows what is decided."""
    return embedded.do(all_heard, embedded.simulation)


def leader(embedded, topic="t", partition=0):
    """As the first broker that runs has heard."""

    def look():
        cores = [embedded.world.hosts[broker].core for broker in embedded.brokers]
        key = TopicPartition(topic, partition)
        return next(core.metadata.leaders[key][0] for core in cores if core is not None)

    return embedded.do(look)


class Connection:
    """A client of one broker, beyond the simulated network."""

    numbers = itertools.count(FIRST_WIRE_CLIENT)

    def __init__(self, embedded, broker):
        self.embedded, self.broker, self.source = embedded, broker, next(self.numbers)
        self.answers, self.arrived, self.asked = {}, threading.Condition(), 0
        embedded.do(lambda: embedded.gateway.answers.setdefault(broker, self.hear))

    def hear(self, source, answer):
        """An answer has come out of the world."""
        with self.arrived:
            self.answers[source, answer.correlation_id] = answer
            self.arrived.notify_all()

    def produce(self, value, *, partition=0, acks=-1, timeout_s=5):
        """Send one record; answers the correlation id."""
        self.asked += 1
        request = ProduceRequest(
            correlation_id=self.asked,
            partition=TopicPartition("t", partition),
            acks=acks,
            records=batch_of((value,)),
            timeout=timeout_s * SECOND,
        )
        self.embedded.do(self.embedded.gateway.submit, self.broker, self.source, request)
        return self.asked

    def answer(self, number, patience_s=PATIENCE_S):
        """The answer to a request; None if it does not come in time."""
        with self.arrived:
            self.arrived.wait_for(lambda: (self.source, number) in self.answers, patience_s)
            return self.answers.get((self.source, number))
