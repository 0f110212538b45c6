"""Probes: cores that only note what they hear, and worlds full of them."""

from collections.abc import Callable
from itertools import count
from typing import Any, Self

import pytest

from fencepost.impl.core.core_interface import AskZooKeeper, Effect, MessageArrived, Send, ZooKeeperReplied
from fencepost.impl.zookeeper.interface import Reply, ZooKeeperRequest
from fencepost.sim.disk import Disk
from fencepost.sim.host import Observer
from fencepost.sim.randomness import Randomness
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.sim.world import World
from fencepost.traces.plan import DiskOptions


class Probe:
    """A core that notes its inputs with the time, and does only what a test makes it do through
    `Host.invoke`."""

    def __init__(self, files: Any, now: int) -> None:
        self.files, self.started = files, now
        self.inputs: list[tuple[int, Any]] = []
        self.answers: Callable[[Any], list[Effect]] = lambda input: []

    def step(self, input: Any, now: int) -> list[Effect]:
        self.inputs.append((now, input))
        return self.answers(input)

    def heard(self, kind: type) -> list[Any]:
        """The inputs of this kind, in order."""
        return [input for _, input in self.inputs if isinstance(input, kind)]

    def times(self, kind: type) -> list[int]:
        """When they came."""
        return [now for now, input in self.inputs if isinstance(input, kind)]

    def messages(self) -> list[Any]:
        """What the network brought."""
        return [input.message for input in self.heard(MessageArrived)]


class Notes(Observer):
    """An observer that keeps everything."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.operations: list[Any] = []
        self.halts: list[Any] = []
        self.power_losses: list[Any] = []

    def recorded(self, event: Any) -> None:
        self.events.append(event)

    def completed(self, node: int, operation: Any) -> None:
        self.operations.append((node, operation))

    def halted(self, node: int, reason: str) -> None:
        self.halts.append((node, reason))

    def lost_power(self, node: int, report: Any) -> None:
        self.power_losses.append((node, report))


class Lab:
    """A world of started probes."""

    def __init__(self, nodes: int, *, seed: int = 1, zookeeper: bool = False, **options: Any) -> None:
        self.notes, self.commits = Notes(), []
        options = {"observer": self.notes, "on_commit": self.commits.append} | options
        self.world = World(seed, **options)
        self._ids = count()
        for node in range(1, nodes + 1):
            self.world.add_host(node, Probe, zookeeper=zookeeper)
            self.world.start(node)
        if zookeeper:
            self.run(SECOND)

    def run(self, duration: int = SECOND) -> None:
        """Let so much virtual time pass."""
        self.world.run_until(self.world.now + duration)

    def core(self, node: int) -> Any:
        """The probe that runs on a node."""
        return self.world.hosts[node].core

    def do(self, node: int, *effects: Effect) -> Self:
        """Make a core have these effects in one step."""
        self.world.hosts[node].invoke(lambda core, now: list(effects))
        return self

    def send(self, source: int, target: int, message: Any, *cause: int) -> Self:
        """Make a core send a message."""
        return self.do(source, Send(target, message, cause))

    def ask(self, node: int, *requests: ZooKeeperRequest, run: int = 100 * MILLISECOND) -> list[Reply]:
        """Ask ZooKeeper, let time pass, return the replies that came."""
        ids = [next(self._ids) for _ in requests]
        self.do(node, *(AskZooKeeper(number, request) for number, request in zip(ids, requests, strict=True)))
        self.run(run)
        replies = {reply.request_id: reply.reply for reply in self.core(node).heard(ZooKeeperReplied)}
        return [replies[number] for number in ids if number in replies]


@pytest.fixture
def lab() -> type[Lab]:
    """Makes a world of probes: lab(nodes, ...)."""
    return Lab


@pytest.fixture
def it() -> Lab:
    """A world of one probe."""
    return Lab(1)


@pytest.fixture
def where() -> Disk:
    """A fresh disk."""
    return Disk(node=1, randomness=Randomness(1), options=DiskOptions())
