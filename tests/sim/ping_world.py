"""A toy run that uses everything a simulated world has, printed line by line: `python ping_world.py SEED`.

Three hosts ping each other, write and sync files, keep an ephemeral in ZooKeeper and watch the others', while
all faults strike. Run by tests/test_determinism.py in processes of their own.
"""

import sys
from typing import Any

from attrs import frozen

from fencepost.impl.core import core_interface
from fencepost.impl.zookeeper.interface import Create, GetChildren
from fencepost.sim.host import Observer
from fencepost.sim.scheduler import MILLISECOND, SECOND
from fencepost.sim.world import World
from fencepost.traces.events import Name
from fencepost.traces.plan import NetworkOptions

NODES = (1, 2, 3)
LINES: list[str] = []


@frozen
class Ping:
    """tick: whose answer is asked for."""

    tick: int


@frozen
class Pong:
    """tick: of the ping."""

    tick: int


class Core:
    """Pings the others at every tick and says what it hears."""

    def __init__(self, node: int, files: Any, now: int) -> None:
        self.node, self.files, self.tick, self.requests = node, files, 0, 0
        self.log = files.open("log")
        files.sync_directory("")

    def step(self, input: Any, now: int) -> list[core_interface.Effect]:
        LINES.append(f"{now} {self.node} {input}")
        if isinstance(input, (core_interface.Started, core_interface.TimerFired)):
            self.tick += 1
            self.log.append(b"%d\n" % self.tick)
            if self.tick % 16 == 0:
                self.log.sync()
            others = {"peers": {node for node in NODES if node != self.node}}
            pings: list[core_interface.Effect] = [
                core_interface.Send(node, Ping(self.tick), (self.tick,)) for node in sorted(others["peers"])
            ]
            return [*pings, core_interface.SetTimer(("tick", self.node), now + 20 * MILLISECOND)]
        if isinstance(input, core_interface.MessageArrived) and isinstance(input.message, Ping):
            return [
                core_interface.Send(input.source, Pong(input.message.tick), (input.message.tick,)),
                core_interface.Complete(input.message),
            ]
        if isinstance(input, core_interface.ZooKeeperConnected) and input.new:
            return [
                self.ask(Create(f"/node-{self.node}-", ephemeral=True, sequential=True)),
                self.ask(GetChildren("/", watch=True)),
                core_interface.RecordEvent(Name.MARK, {"cause": "registered"}),
            ]
        if isinstance(input, core_interface.ZooKeeperWatchFired):
            return [self.ask(GetChildren("/", watch=True))]
        return []

    def ask(self, request: Any) -> core_interface.AskZooKeeper:
        """The request under a running number."""
        self.requests += 1
        return core_interface.AskZooKeeper(self.requests, request)


class Notes(Observer):
    """Writes all it is told."""

    def recorded(self, event: Any) -> None:
        LINES.append(str(event))

    def completed(self, node: int, operation: Any) -> None:
        LINES.append(f"{node} completed {operation}")

    def lost_power(self, node: int, report: Any) -> None:
        LINES.append(f"{node} {report}")


def run(seed: int, seconds: int = 30) -> list[str]:
    """The log of one run."""
    LINES.clear()
    options = NetworkOptions(loss_ppm=20_000, duplicate_ppm=20_000, reorder_ppm=20_000)
    world = World(seed, network=options, observer=Notes(), on_commit=lambda commit: LINES.append(str(commit)))
    for node in NODES:
        world.add_host(
            node, lambda files, now, node=node: Core(node, files, now), zookeeper=True, clock_offset=node
        )
        world.start(node)
    faults = [
        (2, world.partition, "p", [1], [2, 3]),
        (3, world.pause, 2),
        (4, world.heal, "p"),
        (5, world.crash, 3),
        (6, world.start, 3),
        (11, world.resume, 2),
        (12, world.arm_power_loss, 1, 5),
        (13, world.start, 1),
        (14, world.power_loss, 2),
        (15, world.start, 2),
        (16, world.cut_from_zookeeper, "cut", NODES),
        (18, world.degrade, "slow", [(1, 2), (3, 2)]),
        (24, world.heal, "cut"),
        (26, world.lose_zookeeper_replies, 1, 2),
        (27, world.expire_session, 1),
    ]
    for second, fault, *args in faults:
        world.scheduler.at(second * SECOND, fault, *args)
    world.run_until(seconds * SECOND)
    LINES.append(f"{world.network.delivered} delivered, {world.network.lost} lost")
    return LINES


if __name__ == "__main__":
    print("\n".join(run(int(sys.argv[1]))))  # noqa: T201 - its output is its purpose
