"""What a lab is made of: a message under way, one broker's host."""

from collections import deque
from typing import Any

from fencepost.impl.broker.broker import Broker
from fencepost.impl.core.core_interface import AskZooKeeper
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.sim.disk import Disk
from fencepost.sim.randomness import Randomness
from fencepost.traces.plan import DiskOptions

MILLISECOND = 1_000_000
T0 = TopicPartition("t", 0)
CLIENT = 1000
SCRIPT = 99
"""The node id of a test that plays the controller."""
MOST_STEPS = 20_000
"""Bound of `settle` and `advance`: far above what any scenario needs."""


class Mail:
    """A message under way."""

    def __init__(self, source: int, target: int, message: Any) -> None:
        self.source, self.target, self.message = source, target, message

    def __repr__(self) -> str:
        return f"{self.source}->{self.target} {self.message}"


class Driver:
    """One broker's host. held: ZooKeeper requests that wait while `holds_zookeeper`; replies_to_lose: writes
    that are done but not answered."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.disk = Disk(node=node, randomness=Randomness(node), options=DiskOptions(write_us=0, fsync_us=0))
        self.core: Broker | None = None
        self.inbox: deque[Any] = deque()
        self.timers: dict[Any, int] = {}
        self.session = 0
        self.holds_zookeeper = False
        self.held: list[AskZooKeeper] = []
        self.replies_to_lose = 0
