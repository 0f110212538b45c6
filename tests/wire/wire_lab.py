"""A simulated cluster with real sockets of Kafka's protocol in front of it, for other people's clients.

The World runs as fast as the wall clock in an event loop of its own thread; each connection is one more node
of its network.
"""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from fencepost.impl.broker.broker import make_broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.broker_context import FIRST_WIRE_CLIENT
from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.messages.broker_api import Request
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.sim.world import World
from fencepost.traces.plan import ClusterOptions, GroupOptions, NetworkOptions, TopicOptions
from fencepost.wire.handling import BrokerView
from fencepost.wire.server import Server

HOST = "127.0.0.1"
BOUND_S = 600
PACE_S = 0.001
MOST_EVENTS = 50_000_000
NETWORK = NetworkOptions(latency_min_us=1, latency_tail_us=0, latency_max_us=1)
OFFSETS = TopicOptions(name="__consumer_offsets", partitions=4, cleanup_policy="compact")


def until(seen: Callable[[], Any], what: str = "it did not come true") -> Any:
    """Wait until something is so, for a bound that is no measure; returns it."""
    deadline = time.monotonic() + BOUND_S
    while not (found := seen()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found


class Desk:
    """A connection as a node of the simulated network."""

    incarnation = 0

    def __init__(self, server: Server, source: int) -> None:
        self.server, self.source = server, source

    def receive(self, _: int, message: Any) -> None:
        self.server.answer(self.source, message)


class WireLab:
    """brokers of a simulated cluster, each with a listener. servers: by broker id."""

    def __init__(
        self, topics: tuple[TopicOptions, ...], brokers: int, server: dict[str, Any], **options: Any
    ) -> None:
        replicas = min(3, brokers)
        groups = GroupOptions(initial_rebalance_delay_ms=50, offsets_topic_partitions=4)
        self.options = ClusterOptions(brokers=brokers, topics=topics, groups=groups, **options)
        self.world = World(1, network=NETWORK, maximum_events=MOST_EVENTS)
        self.loop = asyncio.new_event_loop()
        self.ports: dict[int, int] = {}
        self.servers: dict[int, Server] = {}
        sources = itertools.count(FIRST_WIRE_CLIENT)
        for node in range(1, brokers + 1):
            self.world.add_host(node, partial(self._core, node), zookeeper=True)
            view = BrokerView(node=node, addresses=lambda: {n: (HOST, p) for n, p in self.ports.items()})
            self.servers[node] = Server(
                broker=view,
                submit=partial(self._submit, node),
                ready=partial(self._ready, node),
                sources=sources,
                **server,
            )
        for node in self.servers:
            self.world.start(node)
        self.world.run_until(2_000_000_000)
        for topic in topics:
            assignment = {
                number: tuple(
                    (number + place) % brokers + 1 for place in range(min(replicas, topic.replication_factor))
                )
                for number in range(topic.partitions)
            }
            self.world.admin(Create(znodes.topic_path(topic.name), znodes.encode_topic(assignment)))
        self.world.run_until(5_000_000_000)
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def _core(self, node: int, files: Any, now: int) -> Any:
        return make_broker(node, self.options, files, Parts(), now)

    def _ready(self, node: int) -> bool:
        host = self.world.hosts[node]
        return host.up and host.core is not None and host.core.broker_context.broker_epoch >= 0

    def _submit(self, node: int, source: int, message: Request) -> None:
        network = self.world.network
        if source not in network._endpoints:
            network.attach(source, Desk(self.servers[node], source))
        self.world.hosts[node].accept(MessageArrived(source, message))

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.ports.values())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    async def _listen(self) -> None:
        for node, server in self.servers.items():
            self.ports[node] = await server.listen(HOST, 0)
        self._began = time.monotonic_ns() - self.world.now
        self._pacer = asyncio.ensure_future(self._pace())

    async def _pace(self) -> None:
        while True:
            self.world.run_until(time.monotonic_ns() - self._began)
            await asyncio.sleep(PACE_S)

    async def _close(self) -> None:
        self._pacer.cancel()
        for server in self.servers.values():
            await server.close()


@contextmanager
def wire_lab(
    *topics: TopicOptions, brokers: int = 3, server: dict[str, Any] | None = None, **options: Any
) -> Iterator[WireLab]:
    """A cluster with these topics and __consumer_offsets, up for the block."""
    lab = WireLab((*topics, OFFSETS), brokers, server or {}, **options)
    lab._thread.start()
    lab.run(lab._listen())
    try:
        yield lab
    finally:
        lab.run(lab._close())
        lab.loop.call_soon_threadsafe(lab.loop.stop)
        lab._thread.join()
        lab.loop.close()
        assert all(server.connections == 0 for server in lab.servers.values())
