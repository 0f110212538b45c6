"""What bench/scale.py measures: a large cluster's znodes on a real ZooKeeper server, and a controller process
that works on them.

Owns the znodes, the controller's process and what it counts, and stand-ins for the other brokers. Must not
know the table.

The controller is a broker of its own without replicas: the core, driver, network and ZooKeeper session as
`fencepost cluster` runs them, in a process of its own, whose peak memory is therefore its own. The five other
brokers are registered, and each is a socket that reads frames and answers that it has obeyed.
"""

import argparse
import asyncio
import gc
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import msgspec
from attrs import asdict, define, field, frozen

from fencepost.impl.broker.broker import Broker, make_broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.controller.writer import ControllerWriter
from fencepost.impl.core.core_interface import Effect, Input
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ControlResponse,
    Message,
    TopicPartition,
)
from fencepost.impl.runtime.codec import encode
from fencepost.impl.runtime.driver import Driver, HostClock
from fencepost.impl.runtime.files import RealFiles
from fencepost.impl.runtime.frames import framed, read_frame
from fencepost.impl.runtime.greeting import Credentials, broker_greeting
from fencepost.impl.runtime.network import Network
from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
from fencepost.impl.runtime.zookeeper.server import HOST
from fencepost.impl.runtime.zookeeper.session import ZooKeeperSession
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.grouping import GROUPED, Grouping, groups, read_size, write_size
from fencepost.impl.zookeeper.interface import (
    Check,
    Create,
    Data,
    Failed,
    Multi,
    MultiDone,
    MultiRead,
    MultiReadDone,
    SetData,
    SetWatches,
    ZooKeeperRequest,
)
from fencepost.model.explore.process import resident_bytes
from fencepost.systems.node import COLLECT_AFTER
from fencepost.traces.events import Event, Name
from fencepost.traces.outcomes import ErrorCode
from fencepost.traces.plan import ClusterOptions

CONTROLLER, FIRST_BROKER, BROKERS = 1, 2, 5
CREDENTIALS = Credentials(cluster_id="bench", secret="s" * 64)
LEAVING = FIRST_BROKER
"""The broker that is shut down, or that died with the controller that it was."""
SESSION_MS = 60_000


@frozen(kw_only=True)
class Cluster:
    """topics of so many partitions, each with two replicas, spread evenly over five brokers. dead: broker
    LEAVING is not registered."""

    topics: int
    partitions: int
    dead: bool = False

    @property
    def brokers(self) -> tuple[int, ...]:
        """The data brokers' ids."""
        return tuple(range(FIRST_BROKER, FIRST_BROKER + BROKERS))

    def assignments(self) -> Iterator[tuple[str, dict[int, tuple[int, ...]]]]:
        """Of each topic: replicas by partition, the leader first."""
        for topic in range(self.topics):
            yield (
                f"topic-{topic:05d}",
                {number: self._replicas(topic + number) for number in range(self.partitions)},
            )

    def _replicas(self, place: int) -> tuple[int, int]:
        first, second = place % BROKERS, (place + 1) % BROKERS
        return FIRST_BROKER + first, FIRST_BROKER + second

    def states(self) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        """Of each partition: replicas."""
        for topic, assignment in self.assignments():
            for number, replicas in assignment.items():
                yield TopicPartition(topic, number), replicas


# ---- ZooKeeper


def populate(zookeeper: BlockingZooKeeper, cluster: Cluster) -> None:
    """Registrations (of this session), then topics and states, whose transactions are therefore later than
    those."""
    for path in znodes.PERSISTENT_PATHS:
        zookeeper.ask(Create(path, b"1" if path == znodes.CONTROLLER_EPOCH else b""))
    for broker in cluster.brokers:
        if not (cluster.dead and broker == LEAVING):
            zookeeper.ask(Create(znodes.broker_path(broker), znodes.encode_broker(broker, 0), ephemeral=True))
    creations: list[Create] = []
    for topic, assignment in cluster.assignments():
        creations.append(Create(znodes.topic_path(topic), znodes.encode_topic(assignment)))
        creations.append(Create(f"{znodes.topic_path(topic)}/partitions"))
        for number, replicas in assignment.items():
            _, partition, path = znodes.partition_paths(TopicPartition(topic, number))
            creations += [Create(partition), Create(path, _state(replicas))]
    made = [Multi(tuple(group)) for group in groups(creations, write_size, GROUPED)]
    assert all(isinstance(reply, MultiDone) for reply in zookeeper.ask_all(made))


def _state(replicas: tuple[int, ...], leader_epoch: int = 0, controller_epoch: int = 1) -> bytes:
    return znodes.encode_state(
        znodes.LeaderAndIsr(
            leader=replicas[0], leader_epoch=leader_epoch, controller_epoch=controller_epoch, isr=replicas
        )
    )


def digest(zookeeper: BlockingZooKeeper, cluster: Cluster) -> str:
    """Of data and version of every topic and every state."""
    paths = [znodes.topic_path(topic) for topic, _ in cluster.assignments()]
    paths += [znodes.state_path(key) for key, _ in cluster.states()]
    seen = hashlib.sha256()
    for begin in range(0, len(paths), 500):
        reply = zookeeper.ask(MultiRead(tuple(paths[begin : begin + 500])))
        assert isinstance(reply, MultiReadDone)
        for one in reply.replies:
            assert isinstance(one, Data)
            seen.update(one.data + b" %d;" % one.stat.version)
    return seen.hexdigest()[:16]


def raw_requests(cluster: Cluster, scenario: str) -> list[ZooKeeperRequest]:
    """The operations that the grouped controller asks for, with nothing behind them."""
    fence = Check(znodes.CONTROLLER_EPOCH, 0)
    requests: list[ZooKeeperRequest] = []
    if scenario != "shutdown":
        topics = {znodes.topic_path(topic): 4_096 for topic, _ in cluster.assignments()}
        for group in groups(topics, lambda path: read_size(path, topics[path]), GROUPED):
            requests += [MultiRead(tuple(group)), SetWatches(tuple(group), 1 << 40)]
        states = [znodes.state_path(key) for key, _ in cluster.states()]
        size = znodes.state_bytes(2)
        requests += [
            MultiRead(tuple(group)) for group in groups(states, lambda path: read_size(path, size), GROUPED)
        ]
    if scenario != "reload":
        for place in (0, 1):  # those that it leads, then those that it follows
            writes = [
                SetData(
                    znodes.state_path(key), _state(tuple(one for one in replicas if one != LEAVING), 1, 2), 0
                )
                for key, replicas in cluster.states()
                if replicas[place] == LEAVING
            ]
            requests += [Multi((fence, *group)) for group in groups(writes, write_size, GROUPED)]
    return requests


# ---- the other brokers


async def stand_in(broker: int, port: int, controller_port: int) -> asyncio.Server:
    """Reads control requests and answers that they are obeyed."""

    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await read_frame(reader)  # the controller's greeting
        _, back = await asyncio.open_connection(HOST, controller_port)
        back.write(broker_greeting(broker, CREDENTIALS))
        while (frame := await read_frame(reader)) is not None:
            kind, fields = msgspec.msgpack.decode(frame, type=tuple[str, list[msgspec.Raw]])
            correlation_id = msgspec.msgpack.decode(fields[0], type=int)
            answer = ControlResponse(correlation_id=correlation_id, kind=kind, error=ErrorCode.NONE)
            back.write(framed(encode(answer)))
            await back.drain()

    return await asyncio.start_server(serve, HOST, port, limit=1 << 24)


async def stand_ins(ports: dict[int, int], controller_port: int) -> None:
    """All of them, in one process; a line on standard output says that they listen."""
    servers = [await stand_in(broker, port, controller_port) for broker, port in ports.items()]
    print("they listen", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


# ---- the controller's process


@frozen(kw_only=True)
class Orders:
    """What a controller's process is told. ports: of the stand-ins."""

    zookeeper: str
    scenario: str
    grouping: Grouping
    port: int
    ports: dict[int, int]


@frozen(kw_only=True)
class Measured:
    """Seconds until the work was done (see `Controller.run`), until every control request was on its way, and
    until every broker had obeyed; CPU seconds of the process until the work was done; requests to ZooKeeper;
    control requests to each broker, most of any; peak memory."""

    done_s: float
    told_s: float
    obeyed_s: float
    cpu_s: float
    requests: int
    per_broker: int
    peak_mb: float


@define(eq=False)
class Controller:
    """A controller that is watched from inside its process. marks: when things happened, by name."""

    orders: Orders
    marks: dict[str, float] = field(factory=dict)
    cpu: dict[str, float] = field(factory=dict)
    asked: int = 0
    sent: Counter[int] = field(factory=Counter)
    rest: asyncio.Event = field(factory=asyncio.Event)

    def mark(self, name: str) -> None:
        """Now, if it did not happen before."""
        if name not in self.marks:
            self.marks[name], self.cpu[name] = perf_counter(), process_time()

    async def run(self) -> Measured:
        """shutdown: from the request to the answer, which comes behind the control requests. reload: from the
        election until the context holds every partition's state. fail-over: from the election until every
        partition is led and every request is on its way."""
        orders = self.orders
        loop, clock = asyncio.get_running_loop(), HostClock()
        options = ClusterOptions(
            brokers=1 + BROKERS, topics=(), zookeeper_session_timeout_ms=SESSION_MS,
            leader_imbalance_check_ms=0, controller_request_timeout_ms=600_000,
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            parts = Parts(controller_writer=partial(_Marking, watcher=self))  # type: ignore[arg-type]
            core = make_broker(
                CONTROLLER, options, RealFiles(Path(folder)), parts, clock.now(), orders.grouping
            )
            driver = Driver(
                node=CONTROLLER, core=_Watched(core, self), clock=clock, loop=loop, on_event=self._event,
                on_halt=lambda reason: sys.exit(reason),
            )  # fmt: skip
            addresses = {CONTROLLER: (HOST, orders.port)} | {
                broker: (HOST, port) for broker, port in orders.ports.items()
            }
            network = driver.network = _CountedNetwork(CONTROLLER, addresses, driver.receive, CREDENTIALS)
            network.watcher = self
            zookeeper = driver.zookeeper = _CountedSession(
                orders.zookeeper, SESSION_MS, driver.accept_from_any_thread
            )
            zookeeper.watcher = self
            driver.start()
            await network.listen_to_brokers(HOST, orders.port)
            zookeeper.start()
            await self.rest.wait()
            if orders.scenario == "shutdown":
                await self._shut_down(driver, core)
            driver.stop()
            zookeeper.stop()
            await network.close()
        return self._measured()

    async def _shut_down(self, driver: Driver, core: Broker) -> None:
        self.rest.clear()
        self.asked, self.sent = 0, Counter()
        for name in ("handed", "obeyed"):
            self.marks.pop(name, None)
        self.mark("asked")
        epoch = core.controller.state.context.live_brokers[LEAVING]
        driver.receive(
            LEAVING, ControlledShutdownRequest(correlation_id=1, broker_id=LEAVING, broker_epoch=epoch)
        )
        await self.rest.wait()

    def _measured(self) -> Measured:
        begin, end = {
            "shutdown": ("asked", "answered"),
            "reload": ("elected", "loaded"),
            "fail-over": ("elected", "handed"),
        }[self.orders.scenario]
        return Measured(
            done_s=self.marks[end] - self.marks[begin],
            told_s=self.marks["handed"] - self.marks[begin],
            obeyed_s=self.marks["obeyed"] - self.marks[begin],
            cpu_s=self.cpu[end] - self.cpu[begin],
            requests=self.asked,
            per_broker=max(self.sent.values()),
            peak_mb=_peak_mb(),
        )

    def _event(self, event: Event) -> None:
        if event.name is Name.CONTROLLER_ELECTED:
            self.asked = 0
            self.mark("elected")

    def stepped(self, core: Broker) -> None:
        """The core has taken a step: does it rest?"""
        controller = core.controller
        if not controller.state.active or controller.running or controller.queue:
            return
        self.mark("handed")
        if not any(channel.queue for channel in controller.state.channels.channels.values()):
            self.mark("obeyed")
            self.rest.set()


@define(eq=False)
class _Watched:
    """The core, and somebody who looks at it after each step."""

    core: Broker
    watcher: Controller

    def step(self, input: Input, now: int) -> list[Effect]:
        """As the core's."""
        effects = self.core.step(input, now)
        self.watcher.stepped(self.core)
        return effects


@define
class _Marking(ControllerWriter):
    """Says when the states are read."""

    watcher: Controller

    def read_states(self, context: ControllerContext, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
        """As the writer's."""
        states = yield from super().read_states(context, keys)
        self.watcher.mark("loaded")
        return states


class _CountedSession(ZooKeeperSession):
    """Counts requests."""

    watcher: Controller

    def ask(self, request_id: int, request: ZooKeeperRequest) -> None:
        """Send and count."""
        self.watcher.asked += 1
        super().ask(request_id, request)


@define(eq=False)
class _CountedNetwork(Network):
    """Counts control requests, and sees the answer to a controlled shutdown."""

    watcher: Any = None

    def send(self, target: int, message: Message) -> None:
        """Send and count."""
        if not isinstance(message, ControlResponse):
            if isinstance(message, ControlledShutdownResponse):
                assert not message.remaining, message
                self.watcher.mark("answered")
                return
            self.watcher.sent[target] += 1
        super().send(target, message)


def raw(address: str, cluster: Cluster, scenario: str) -> Measured:
    """The same operations without a controller: sent with its window, the answers read and dropped."""
    requests = raw_requests(cluster, scenario)
    with BlockingZooKeeper(address, SESSION_MS) as zookeeper:
        begin, cpu = perf_counter(), process_time()
        for reply in zookeeper.ask_all(requests, GROUPED.window):
            assert not isinstance(reply, Failed), reply
        taken, cpu = perf_counter() - begin, process_time() - cpu
    return Measured(
        done_s=taken,
        told_s=taken,
        obeyed_s=taken,
        cpu_s=cpu,
        requests=len(requests),
        per_broker=0,
        peak_mb=_peak_mb(),
    )


def _peak_mb() -> float:
    return resident_bytes() / (1 << 20)


def main() -> None:
    """`raw ADDRESS CLUSTER SCENARIO`, `controller ORDERS` or `brokers PORTS CONTROLLER_PORT`; orders and
    results are JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("role", choices=("raw", "controller", "brokers"))
    parser.add_argument("first", help="an address, orders, or ports")
    parser.add_argument("rest", nargs="*")
    arguments = parser.parse_args()
    role, text, rest = arguments.role, arguments.first, arguments.rest
    if role == "brokers":
        ports = {int(broker): port for broker, port in json.loads(text).items()}
        asyncio.run(stand_ins(ports, int(rest[0])))
        return
    if role == "raw":
        cluster = msgspec.json.decode(rest[0], type=Cluster)
        print(json.dumps(asdict(raw(text, cluster, rest[1]))))
        return
    gc.set_threshold(*COLLECT_AFTER)
    orders = msgspec.json.decode(text, type=Orders)
    print(json.dumps(asdict(asyncio.run(Controller(orders).run()))))


if __name__ == "__main__":
    main()
