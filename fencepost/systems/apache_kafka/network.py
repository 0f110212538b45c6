"""The network of a real cluster: every connection passes a byte proxy of its own pair, which can be cut or
delayed without a reset.

Owns addresses, hosts files and what is cut now. Must not know brokers' processes (cluster.py) or sockets
(proxy/server/links.py).

A proxy cannot see who connects to it. So source s reaches destination d at an address that only s is given:
127.1.s.d, on the port that d really listens on. Brokers name each other `broker-d` and ZooKeeper
`zookeeper`; the JVM of each resolves these names from a hosts file of its own (`-Djdk.net.hosts.file`).
Clients need no names: what brokers advertise to them is 127.1.<CLIENTS>.d. The brokers themselves listen on
127.0.0.1. None of this needs a privilege (Linux; elsewhere only 127.0.0.1 exists).

Cuts are directed. What s sends to d travels on two kinds of connections: those that s opened (their way
there) and those that d opened (their way back). A cut from s to d stops both.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, field, frozen

from fencepost.impl.runtime.zookeeper.server import HOST
from fencepost.proxy.server.links import LONGEST_DELAY_MS, Links, Way
from fencepost.proxy.server.links import Pair as Link
from fencepost.systems.apache_kafka.settings import Names, Ports
from fencepost.systems.system import Pair
from fencepost.traces.errors import EnvironmentError_, FencepostError

ZOOKEEPER = 201
"""The node number of the ZooKeeper server."""
CLIENTS = 202
"""The node number of all clients together."""
MOST_NODES = 200
"""Node numbers are one byte of an address; those of ZooKeeper and the clients are above all brokers'."""
CLIENT, INTER, CTRL = "CLIENT", "INTER", "CTRL"
"""The listeners of settings.py."""
SESSIONS = "ZOOKEEPER"
"""The listener of the ZooKeeper server."""
ANY = "*"
LONGEST_CALL_S = 60.0
"""A call only changes flags in the thread of the sockets; a crowded machine may take this long to run it."""
Answer = TypeVar("Answer")


@frozen
class Listener:
    """Where a node accepts connections: on this port of 127.0.0.1."""

    node: int
    name: str
    port: int

    def accepts(self, source: int) -> bool:
        """Whether connections of this source arrive here. Clients use CLIENT, brokers all others."""
        return source != self.node and (source == CLIENTS) is (self.name == CLIENT)


@frozen
class Cut:
    """What one name of `cut` or `delay` does to some pairs until its heal."""

    pairs: tuple[Pair, ...]
    listener: str
    # 0 if nothing passes.
    delay_ms: int = 0


def host_name(node: int) -> str:
    """The name by which brokers know a node."""
    return "zookeeper" if node == ZOOKEEPER else f"broker-{node}"


def address_of(source: int, target: int) -> str:
    """Where the source reaches the target. Raises FencepostError for a number that fits in no address."""
    for node in (source, target):
        if not 0 < node <= MOST_NODES and node not in (ZOOKEEPER, CLIENTS):
            raise FencepostError(
                expected=f"a node number from 1 to {MOST_NODES}", seen=str(node), where="the network"
            )
    return f"127.1.{source}.{target}"


def hosts_of(source: int, nodes: Iterable[int]) -> str:
    """The text of the hosts file of one broker: of all nodes, itself included."""
    lines = [f"{HOST} localhost {host_name(source)}\n"]
    lines += [f"{address_of(source, node)} {host_name(node)}\n" for node in sorted(nodes) if node != source]
    return "".join(lines)


@define(eq=False)
class Network:
    """The proxies of all pairs. Calls may come from any thread."""

    listeners: tuple[Listener, ...]
    # What was cut or delayed and not healed, by name.
    cuts: dict[str, Cut] = field(factory=dict, init=False)
    _links: Links = field(factory=Links, init=False)
    _loop: asyncio.AbstractEventLoop = field(factory=asyncio.new_event_loop, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    @classmethod
    def open(cls, listeners: Iterable[Listener]) -> "Network":
        """Listen for every pair. Raises EnvironmentError_ where that is impossible; nothing is left then."""
        made = cls(tuple(listeners))
        made._thread = threading.Thread(target=made._loop.run_forever, name="links", daemon=True)
        made._thread.start()
        try:
            made._call(made._listen())
        except BaseException:
            made.close()
            raise
        return made

    @property
    def nodes(self) -> tuple[int, ...]:
        """Every node, clients included."""
        return (*sorted({each.node for each in self.listeners}), CLIENTS)

    def write_hosts(self, source: int, folder: Path) -> str:
        """Write the hosts file of one broker. source: the broker; folder: where. Returns the flag for its
        Java."""
        path = folder / "hosts"
        path.write_text(hosts_of(source, (node for node in self.nodes if node != CLIENTS)), encoding="ascii")
        return f"-Djdk.net.hosts.file={path.absolute()}"

    # ---- faults

    def cut(self, name: str, pairs: Iterable[Pair], listener: str = ANY) -> None:
        """Nothing gets from source to target of each pair, and nobody notices a reset, until `heal(name)`.
        Cutting again by the same name replaces it.

        Args:
            name: of the cut.
            pairs: (source, target), of brokers, ZOOKEEPER and CLIENTS.
            listener: only on connections to this listener of either side.

        Raises:
            FencepostError: for a pair without a connection.
        """
        self._begin(name, Cut(self._known(pairs, listener), listener))

    def delay(self, name: str, pairs: Iterable[Pair], milliseconds: int, listener: str = ANY) -> None:
        """Bytes from source to target take longer by so much, until `heal(name)`. Raises FencepostError."""
        if not 1 <= milliseconds <= LONGEST_DELAY_MS:
            raise FencepostError(
                expected=f"1 to {LONGEST_DELAY_MS} milliseconds", seen=str(milliseconds), where="a delay"
            )
        self._begin(name, Cut(self._known(pairs, listener), listener, milliseconds))

    def cut_clients(self, name: str, broker: int, parameter: int) -> None:
        """The broker and all clients do not reach each other. name: of the cut; parameter: 0 both ways, 1
        only what clients send is lost, 2 only what they receive. Raises FencepostError."""
        sent, received = (CLIENTS, broker), (broker, CLIENTS)
        self.cut(name, [(sent, received), (sent,), (received,)][parameter])

    def delay_clients(self, name: str, broker: int, milliseconds: int) -> None:
        """What clients send to the broker until the heal takes longer by so much; it arrives that late also
        after the heal, and after its connection was closed. name: of the delay. Raises FencepostError."""
        self.delay(name, [(CLIENTS, broker)], milliseconds)

    def cut_controllers(self, name: str, broker: int) -> None:
        """The broker and all controllers, or ZooKeeper, do not reach each other. name: of the cut. Raises
        FencepostError."""
        if ZOOKEEPER in self.nodes:
            self.cut(name, both_ways([(broker, ZOOKEEPER)]), SESSIONS)
            return
        others = [each.node for each in self.listeners if each.name == CTRL and each.node != broker]
        self.cut(name, both_ways((broker, node) for node in others), CTRL)

    def heal(self, name: str) -> None:
        """End the cut or delay of this name; other names stay. Nothing happens if there is none."""
        if self.cuts.pop(name, None) is not None:
            self._call(self._apply())

    def heal_all(self) -> None:
        """End every cut and delay."""
        self.cuts.clear()
        self._call(self._apply())

    def state(self) -> list[dict[str, object]]:
        """Each link and what it does now."""
        return self._call(self._state())

    def close(self) -> None:
        """End every connection and the thread. Closing again does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._links.close(), self._loop).result(LONGEST_CALL_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join(LONGEST_CALL_S)
        self._loop.close()

    # ---- in the thread of the sockets

    async def _listen(self) -> None:
        for listener in self.listeners:
            for source in self.nodes:
                if not listener.accepts(source) or source == ZOOKEEPER:
                    continue
                listen = (address_of(source, listener.node), listener.port)
                target = (HOST, listener.port)
                await self._links.add(_link(source, listener.node, listener.name), target, listen)

    async def _state(self) -> list[dict[str, object]]:
        return self._links.state()

    async def _apply(self) -> None:
        """Set every way of every link to what the cuts together say."""
        wanted: dict[tuple[Link, Way], int] = {}
        for cut in self.cuts.values():
            for link, way in self._ways(cut.pairs, cut.listener):
                before = wanted.get((link, way), -1)
                wanted[link, way] = 0 if 0 in (before, cut.delay_ms) else max(before, cut.delay_ms)
        for name, proxy in self._links.links.items():
            for way in (Way.THERE, Way.BACK):
                delay = wanted.get((name, way), -1)
                proxy.set(way, passes=delay != 0, delay_ms=max(0, delay))

    # ---- pairs and links

    def _begin(self, name: str, cut: Cut) -> None:
        self.cuts[name] = cut
        self._call(self._apply())

    def _known(self, pairs: Iterable[Pair], listener: str) -> tuple[Pair, ...]:
        known = tuple(pairs)
        for pair in known:
            if not self._ways((pair,), listener):
                raise FencepostError(
                    expected=f"two of the nodes {', '.join(map(str, self.nodes))} that are connected",
                    seen=f"{pair[0]} -> {pair[1]}" + (f" on {listener}" if listener != ANY else ""),
                    where="the network",
                )
        return known

    def _ways(self, pairs: Iterable[Pair], listener: str) -> list[tuple[Link, Way]]:
        names = {each.name for each in self.listeners} if listener == ANY else {listener}
        found = []
        for source, target in pairs:
            for name in sorted(names):
                found.append((_link(source, target, name), Way.THERE))
                found.append((_link(target, source, name), Way.BACK))
        return [(link, way) for link, way in found if link in self._links.links]

    def _call(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        if self._thread is None:
            work.close()
            raise EnvironmentError_(
                expected="a network that is open", seen="a closed one", where="the links between brokers"
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LONGEST_CALL_S)


NAMES = Names(clients=f"127.1.{CLIENTS}.{{}}", brokers="broker-{}")
"""What brokers advertise."""


def both_ways(pairs: Iterable[Pair]) -> list[Pair]:
    """Each pair in both directions."""
    return [each for source, target in pairs for each in ((source, target), (target, source))]


def listeners_of(ports: Mapping[int, Ports], zookeeper: str) -> list[Listener]:
    """The listeners of a cluster.

    Args:
        ports: of each broker.
        zookeeper: HOST:PORT where the server really listens; empty with KRaft.

    Returns:
        them all.
    """
    found = [
        Listener(broker, name, port)
        for broker, each in sorted(ports.items())
        for name, port in ((CLIENT, each.client), (INTER, each.inter), (CTRL, each.control))
        if port
    ]
    return [*found, Listener(ZOOKEEPER, SESSIONS, int(zookeeper.rpartition(":")[2]))] if zookeeper else found


def _link(source: int, target: int, listener: str) -> Link:
    return Link(str(source), str(target), listener)
