"""The network: messages between nodes that are delayed, lost, duplicated, reordered or cut off.

Owns links, delays and the faults of links. Must not know the meaning of a message (predicates say which may
be duplicated, and which may be held back or late).

Delay of a message = latency_min + exponential-like tail, cut at latency_max, plus the link's extra delay. A
held-back message waits up to another latency_max, a late one up to late_max. Two messages of a link have no
order; `Channel` is an ordered stream.

Randomness of a message is keyed by (source, target, kind of message, cause, how often that key was seen). So
removing one operation from a plan does not change the delays of messages with other causes.

Cut links: a message is lost if its link is blocked when it is sent or when it would arrive. A message in
flight while a partition begins and ends arrives. Connections end with the process: a message to an
incarnation of a host that has ended since is lost, so no response to an earlier process reaches the new one.
What a process sent before it died still arrives. A node's messages to itself take LOOPBACK and are never
lost, duplicated or held back. Final.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from attrs import frozen

from fencepost.sim.randomness import (
    GOLDEN,
    MASK,
    MILLION,
    MIXER,
    Randomness,
    finish,
    latency,
    mix,
    stable_number,
)
from fencepost.sim.scheduler import MICROSECOND, MILLISECOND, Scheduler
from fencepost.traces.plan import NetworkOptions

LOOPBACK = 20 * MICROSECOND
RETRANSMISSION = 200 * MILLISECOND
"""How long a stream waits before it retries a blocked link: TCP's shortest retransmission timeout on
Linux."""

_STRIDE = 8 * GOLDEN  # eight draws are reserved for each message; their places:
_LOSS, _DUPLICATE, _SECOND_DELAY, _REORDER, _HOLD, _IS_LATE, _LATENESS, _SECOND_LATENESS = range(1, 9)

Pair = tuple[int, int]
"""A directed link: source, target."""


class Endpoint(Protocol):
    """A receiver of messages."""

    # Changes when its process dies.
    incarnation: int

    def receive(self, source: int, message: Any) -> None:
        """A `message` from the node `source` arrives."""
        ...


@frozen(kw_only=True)
class LinkFault:
    """A named fault of links."""

    # The directed links.
    links: frozenset[Pair]
    # Whether the links are blocked.
    blocked: bool = False
    # Additional losses per million messages.
    loss_ppm: int = 0
    # Additional delay in nanoseconds.
    delay: int = 0
    # Additional duplicates per million messages.
    duplicate_ppm: int = 0
    # Additional held-back messages per million.
    reorder_ppm: int = 0


class Link:
    """One direction between two nodes. minimum, tail, maximum, delay: the parts of a message's delay,
    nanoseconds. streams: for each kind of message, the prefix of its keys, and the last key of each cause."""

    __slots__ = (
        "blocked",
        "delay",
        "duplicate_ppm",
        "endpoint",
        "key",
        "loopback",
        "loss_ppm",
        "maximum",
        "minimum",
        "reorder_ppm",
        "source",
        "streams",
        "tail",
        "target",
    )

    def __init__(
        self, source: int, target: int, key: int, endpoint: Endpoint | None, *, loopback: bool
    ) -> None:
        self.source, self.target, self.key, self.endpoint = source, target, key, endpoint
        self.loopback = loopback
        self.blocked, self.loss_ppm, self.delay = False, 0, 0
        self.duplicate_ppm = self.reorder_ppm = 0
        self.minimum, self.tail, self.maximum = LOOPBACK, 0, LOOPBACK
        self.streams: dict[type, tuple[int, dict[tuple[int, ...], int]]] = {}


class Network:
    """sent, delivered, lost, duplicated, held_back, late: messages so far (streams not counted). names: of
    the classes of messages and frames, which key their randomness; any other value goes by its class."""

    def __init__(
        self,
        scheduler: Scheduler,
        randomness: Randomness,
        options: NetworkOptions,
        names: Mapping[type, str],
        *,
        may_duplicate: Callable[[Any], bool] = lambda message: True,
        may_be_late: Callable[[Any], bool] = lambda message: True,
    ) -> None:
        self._scheduler = scheduler
        self._names = names
        self._key = randomness.key("network")
        self._minimum = options.latency_min_us * MICROSECOND
        self._tail = options.latency_tail_us * MICROSECOND
        self._maximum = options.latency_max_us * MICROSECOND
        self._loss_ppm = options.loss_ppm
        self._duplicate_ppm = options.duplicate_ppm
        self._reorder_ppm = options.reorder_ppm
        self._late_ppm, self._late = options.late_ppm, options.late_max_us * MICROSECOND
        self._may_duplicate, self._may_be_late = may_duplicate, may_be_late
        self._endpoints: dict[int, Endpoint] = {}
        self._links: dict[Pair, Link] = {}
        self._faults: dict[str, LinkFault] = {}
        self._local: set[int] = set()
        self.sent = self.delivered = self.lost = self.duplicated = self.held_back = self.late = 0

    # ---- nodes and faults

    def attach(self, node: int, endpoint: Endpoint) -> None:
        """Register `endpoint` as the receiver of a `node`."""
        assert not any(node in pair for pair in self._links), (
            f"node {node} is attached after its first message"
        )
        self._endpoints[node] = endpoint

    def has(self, node: int) -> bool:
        """Whether a node has a receiver."""
        return node in self._endpoints

    def partition(self, name: str, links: Iterable[Pair]) -> None:
        """Block these directed links until `heal(name)`; overlapping partitions end independently."""
        self.add_fault(name, LinkFault(links=frozenset(links), blocked=True))

    def add_fault(self, name: str, fault: LinkFault) -> None:
        """Begin the fault `fault` of links under `name`."""
        assert name not in self._faults, f"the link fault {name} is already there"
        self._faults[name] = fault
        self._refresh(fault)

    def heal(self, name: str) -> None:
        """End a named fault; no effect if there is none."""
        fault = self._faults.pop(name, None)
        if fault is not None:
            self._refresh(fault)

    def settle(self) -> None:
        """From now on no message is lost, doubled, held back or late by chance; named faults stay."""
        self._loss_ppm = self._duplicate_ppm = self._reorder_ppm = self._late_ppm = 0
        for link in self._links.values():
            self._apply_faults(link)

    def make_local(self, node: int) -> None:
        """From now on `node` is as if it were on every other node's host: no fault reaches its messages."""
        self._local.add(node)
        for pair in [pair for pair in self._links if node in pair]:
            del self._links[pair]

    def blocked(self, source: int, target: int) -> bool:
        """Whether messages from `source` to `target` are blocked."""
        return self.link(source, target).blocked

    def _refresh(self, changed: LinkFault) -> None:
        for pair, link in self._links.items():
            if pair in changed.links:
                self._apply_faults(link)

    def _apply_faults(self, link: Link) -> None:
        if link.loopback:
            return
        pair = (link.source, link.target)
        faults = [fault for fault in self._faults.values() if pair in fault.links]
        link.blocked = any(fault.blocked for fault in faults)
        link.loss_ppm = self._loss_ppm + sum(fault.loss_ppm for fault in faults)
        link.delay = sum(fault.delay for fault in faults)
        link.duplicate_ppm = self._duplicate_ppm + sum(fault.duplicate_ppm for fault in faults)
        link.reorder_ppm = self._reorder_ppm + sum(fault.reorder_ppm for fault in faults)

    def link(self, source: int, target: int) -> Link:
        """The link from `source` to `target`, made on first use."""
        link = self._links.get((source, target))
        if link is None:
            key, endpoint = mix(mix(self._key, source), target), self._endpoints.get(target)
            near = source == target or not self._local.isdisjoint((source, target))
            link = Link(source, target, key, endpoint, loopback=near)
            self._links[source, target] = link
            if not link.loopback:
                link.minimum, link.tail, link.maximum = self._minimum, self._tail, self._maximum
            self._apply_faults(link)
        return link

    def forget_causes(self) -> None:
        """Forget the causes that were seen, so that an endless world needs no memory for them. A cause that
        comes again draws the same numbers as the first time."""
        for link in self._links.values():
            link.streams.clear()

    # ---- messages

    def send(self, source: int, target: int, message: Any, cause: tuple[int, ...] = ()) -> None:
        """Send one message; it may never arrive, or arrive twice.

        Args:
            source: the sender's node id.
            target: the receiver's node id.
            message: the message.
            cause: what caused it, as integers; it keys the draws.
        """
        link = self._links.get((source, target)) or self.link(source, target)
        endpoint = link.endpoint
        assert endpoint is not None, f"node {source} sent {message!r} to node {target}, which does not exist"
        self.sent += 1
        word = self._word(link, type(message), cause)
        if link.blocked or (link.loss_ppm and finish(word + _LOSS * GOLDEN) * MILLION >> 64 < link.loss_ppm):
            self.lost += 1
            return
        scheduler, incarnation = self._scheduler, endpoint.incarnation
        due = scheduler.now + link.delay + latency(word, link.minimum, link.tail, link.maximum)
        if (
            link.reorder_ppm
            and finish(word + _REORDER * GOLDEN) * MILLION >> 64 < link.reorder_ppm
            and self._may_be_late(message)
        ):
            self.held_back += 1
            due += self._minimum + (finish(word + _HOLD * GOLDEN) * self._maximum >> 64)
        if (
            self._late_ppm
            and not link.loopback
            and finish(word + _IS_LATE * GOLDEN) * MILLION >> 64 < self._late_ppm
            and self._may_be_late(message)
        ):
            self.late += 1
            due += finish(word + _LATENESS * GOLDEN) * self._late >> 64
        if (
            link.duplicate_ppm
            and finish(word + _DUPLICATE * GOLDEN) * MILLION >> 64 < link.duplicate_ppm
            and self._may_duplicate(message)
        ):
            self.duplicated += 1
            second = self._delay(link, (word + _SECOND_DELAY * GOLDEN) & MASK)
            if self._late and not link.loopback:  # as late as a request that was sent again meanwhile
                second += finish(word + _SECOND_LATENESS * GOLDEN) * self._late >> 64
            scheduler.at(scheduler.now + second, self._deliver, link, endpoint, message, incarnation)
        scheduler.at(due, self._deliver, link, endpoint, message, incarnation)

    def _deliver(self, link: Link, endpoint: Endpoint, message: Any, incarnation: int) -> None:
        if link.blocked or endpoint.incarnation != incarnation:
            self.lost += 1
            return
        self.delivered += 1
        endpoint.receive(link.source, message)

    def _word(self, link: Link, kind: type, cause: tuple[int, ...]) -> int:
        """The key of the next message of this kind and cause on the link."""
        stream = link.streams.get(kind)
        if stream is None:
            stream = link.streams[kind] = (
                mix(link.key, stable_number(self._names.get(kind, kind.__qualname__))),
                {},
            )
        first, words = stream
        word = words.get(cause)
        if word is None:
            word = first
            for part in cause:  # mix, inlined: most causes are new
                word = ((word ^ (part if part >= 0 else part & MASK)) * MIXER) & MASK
                word ^= word >> 32
        words[cause] = word = (word + _STRIDE) & MASK
        return word

    def _delay(self, link: Link, word: int) -> int:
        return link.delay + latency(word, link.minimum, link.tail, link.maximum)

    def stream_delay(self, link: Link, frame: Any, cause: tuple[int, ...] | None) -> int:
        """The delay of a stream's frame; a loss costs a retransmission.

        cause: None for the shortest delay of the link, which is a lower bound for all later frames. So such a
        frame delays no other, and the draws are as if it did not exist.
        """
        if cause is None:
            return min(link.minimum, link.maximum) + link.delay
        word = self._word(link, type(frame), cause)
        lost = link.loss_ppm and finish(word + _LOSS * GOLDEN) * MILLION >> 64 < link.loss_ppm
        return self._delay(link, word) + (RETRANSMISSION if lost else 0)

    def channel(self, source: int, target: int, receive: Callable[[Any], None]) -> "Channel":
        """A stream from `source` to `target`. receive: called with each frame that arrives."""
        return Channel(self._scheduler, self, self.link(source, target), receive)


class Channel:
    """One direction of a connection: frames arrive in order and once, or, after `close`, never.

    A blocked link delays the stream; it continues at most RETRANSMISSION later. The sender is not notified
    that the other end is gone: timeouts show that. open: False after `close`; frames in flight are lost then.
    """

    __slots__ = ("_armed", "_last", "_link", "_network", "_receive", "_scheduler", "_waiting", "open")

    def __init__(
        self, scheduler: Scheduler, network: Network, link: Link, receive: Callable[[Any], None]
    ) -> None:
        self._scheduler, self._network, self._link, self._receive = scheduler, network, link, receive
        self._waiting: deque[tuple[int, Any]] = deque()
        self._last = 0
        self._armed = False
        self.open = True

    def send(self, frame: Any, cause: tuple[int, ...] | None = ()) -> None:
        """Append a frame to the stream.

        Args:
            frame: the frame.
            cause: what caused it, as integers; it keys the draws. None: the shortest delay.
        """
        if not self.open:
            return
        due = self._scheduler.now + self._network.stream_delay(self._link, frame, cause)
        if due < self._last:
            due = self._last
        self._last = due
        self._waiting.append((due, frame))
        if not self._armed:
            self._arm(due)

    @property
    def clear(self) -> bool:
        """Whether no frame is in flight and the next one would not be delayed, so that it may be delivered at
        once."""
        link = self._link
        return self.open and not (self._waiting or link.blocked or link.delay or link.loss_ppm)

    def close(self) -> None:
        """From now on no frame arrives."""
        self.open = False
        self._waiting.clear()

    def _arm(self, time: int) -> None:
        self._armed = True
        self._scheduler.at(time, self._arrive)

    def _arrive(self) -> None:
        now, waiting, link = self._scheduler.now, self._waiting, self._link
        while waiting and waiting[0][0] <= now and not link.blocked:
            self._receive(waiting.popleft()[1])
        self._armed = False
        if waiting:
            self._arm(now + RETRANSMISSION if link.blocked else waiting[0][0])
