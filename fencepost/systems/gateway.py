"""Where connections of Kafka's clients enter the simulated world and where their answers leave it.

Owns the streams between the machine that all clients are on and each broker, so that every fault of links
works on clients, too. Must not know sockets, nor what a message says: a connection is a number (its source,
from FIRST_WIRE_CLIENT on), a message is passed on as it is.

All clients are one node of the network, CLIENTS. What they send to a broker is one stream, and so is what the
broker sends back: in order and once, as TCP does it. A blocked link holds a stream up, a loss costs a
retransmission. A stream is closed when the broker's process dies: what was on its way is lost.
"""

from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field

from fencepost.impl.core.broker_context import FIRST_WIRE_CLIENT
from fencepost.impl.messages.broker_api import Request, Response
from fencepost.sim.host import Host
from fencepost.sim.network import Channel, Network
from fencepost.sim.world import FIRST_CLIENT_NODE

CLIENTS = FIRST_CLIENT_NODE - 1
"""The node of all clients that come from outside; clients inside the world begin after it."""

Frame = tuple[int, Any]
"""A connection's number and its message."""
Answer = Callable[[int, Response], None]
"""answer(source, message): what a broker says to a connection."""


@define(eq=False)
class _Streams:
    """The streams between the clients and one broker's process."""

    # The two directions.
    to_broker: Channel
    to_clients: Channel


@define(eq=False)
class Gateway:
    """A host's sender (sim/host.py) that takes answers to connections out of the world."""

    network: Network
    # The receiver of a broker's answers, by broker. Without one, they are lost.
    answers: dict[int, Answer] = field(factory=dict)
    _hosts: dict[int, Host] = field(factory=dict)
    _streams: dict[int, _Streams] = field(factory=dict)

    def serve(self, host: Host) -> None:
        """Let connections reach this broker."""
        self._hosts[host.node] = host
        self._open(host.node)

    def submit(self, broker: int, source: int, message: Request) -> None:
        """A connection asks this broker."""
        assert source >= FIRST_WIRE_CLIENT, f"{source} is no connection"
        stream = self._streams[broker].to_broker
        if stream.clear:
            self._hosts[broker].receive(source, message)
        else:
            stream.send((source, message))

    def send(self, source: int, target: int, message: Any, cause: tuple[int, ...] = ()) -> None:
        """Send a broker's message. source: the broker; target: a connection or another node; cause: keys the
        world's random decisions."""
        if target < FIRST_WIRE_CLIENT:
            self.network.send(source, target, message, cause)
            return
        stream = self._streams[source].to_clients
        if stream.clear:
            self._answer(source, (target, message))
        else:
            stream.send((target, message))

    def cut(self, broker: int) -> None:
        """The broker's process is gone: messages in flight are lost, and a new process has new streams."""
        streams = self._streams[broker]
        streams.to_broker.close()
        streams.to_clients.close()
        self._open(broker)

    def _open(self, broker: int) -> None:
        host, channel = self._hosts[broker], self.network.channel
        self._streams[broker] = _Streams(
            channel(CLIENTS, broker, lambda frame: host.receive(*frame)),
            channel(broker, CLIENTS, lambda frame: self._answer(broker, frame)),
        )

    def _answer(self, broker: int, frame: Frame) -> None:
        answer = self.answers.get(broker)
        if answer is not None:
            answer(*frame)


class Tap:
    """Gets the requests and answers of connections. Every method may be overridden; by default they do
    nothing."""

    def asking(self, broker: int, source: int, request: Any) -> Iterator[None]:
        """A connection asks a broker. A request with many records takes many steps, between which others are
        served."""
        return iter(())

    def asked(self, broker: int, source: int, request: Any) -> None:
        """The same in one step. broker, source, request: as of `asking`."""
        for _ in self.asking(broker, source, request):
            pass

    def answered(self, source: int, answer: Any, *, delivered: bool) -> None:
        """An answer reaches the socket of a connection, or (not delivered) finds that the connection has
        gone."""

    def lost(self, broker: int) -> None:
        """The broker's process is gone, and every request that it had."""
