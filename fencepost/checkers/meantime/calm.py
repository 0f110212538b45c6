"""Calm: since when nothing is broken, no broker came or went, and no controller was elected; and how long a
sequence of messages takes then.

Owns both. Must not know rules. A request of an operator does not end the calm, because a healthy cluster
handles it meanwhile. A dead broker does not end it either: once its node is gone, the others are healthy.
Until then no other broker knows that it is dead, so there is no calm.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.meantime.options import Network
from fencepost.traces.events import Event, Name

STOPPING = "PendingControlledShutdown"
STOPS = frozenset({"bit_rot", "bounce", "crash"})
"""Kinds of fault that only end a process at once, until it is started again."""
SLOWEST = 3
"""This many messages of a sequence may take the longest time that the network allows. The others take its
latency plus twice its tail."""
FAR_US = 600_000
"""In microseconds. If the slowest message of a network takes longer than this, some messages are held back
for seconds and others overtake them."""


def fault_of(event: Event) -> str:
    """The id of a fault: the number at the beginning of its detail."""
    return event.detail.split(",")[0].rstrip("}")


def is_asked(network: Network) -> bool:
    """Whether time bounds can be stated. They cannot if messages are lost at random, because the number of
    resends is unbounded."""
    return not (
        network.loss_ppm or network.reorder_ppm or network.late_ppm or network.latency_max_us > FAR_US
    )


def row_ns(network: Network, messages: int) -> int:
    """How long a sequence of `messages` takes in `network` if each waits for the one before; nanoseconds."""
    usual_us = min(network.latency_max_us, network.latency_min_us + 2 * network.latency_tail_us)
    slowest_us = network.latency_max_us + (network.late_max_us if network.late_ppm else 0)
    return 1_000 * (messages * usual_us + SLOWEST * (slowest_us - usual_us))


@define
class Calm:
    """The current calm. since: nanoseconds; position: of the event that began it."""

    since: int = 0
    position: int = 0
    active: set[str] = field(factory=set)
    """Active faults by id, without those that ended a process."""
    down: set[int] = field(factory=set)
    """Brokers that were ended or asked to stop, and not started since; also those that started again while
    the node of their earlier incarnation stays, until that node goes."""
    returned: set[int] = field(factory=set)
    """Of those in `down`: the brokers that run again. Until the node of the earlier incarnation goes, the
    others take them for what they were before, perhaps the controller, which does nothing now."""
    registered: set[int] = field(factory=set)
    """Brokers that have a node."""

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that disturb the calm."""
        return {
            Name.FAULT_BEGAN: self._began,
            Name.FAULT_ENDED: self._ended,
            Name.BROKER_STARTED: self._started,
            Name.BROKER_STATE: self._broker_state,
            Name.BROKER_ZNODE: self._broker_znode,
            Name.IMPLEMENTATION_ERROR: self._down,
            Name.CONTROLLER_EPOCH: self._disturbed,
            Name.PHASE: self._phase,
        }

    def after(self, moment: int) -> int | None:
        """When a bound begins to count: at the moment, or at the beginning of the calm if that is later. None
        while something is broken."""
        return max(moment, self.since) if self.reigns else None

    @property
    def reigns(self) -> bool:
        """Whether nothing is broken at this moment."""
        return not self.active and self.down.isdisjoint(self.registered)

    def _disturbed(self, position: int, event: Event) -> None:
        self.since, self.position = event.time, position

    def _began(self, position: int, event: Event) -> None:
        if event.cause in STOPS:
            self.down.add(event.node)
            self.returned.discard(event.node)
        else:
            self.active.add(fault_of(event))
        self._disturbed(position, event)

    def _started(self, position: int, event: Event) -> None:
        if event.node in self.registered:
            self.down.add(event.node)
            self.returned.add(event.node)
        else:
            self.down.discard(event.node)
        self._disturbed(position, event)

    def _broker_znode(self, position: int, event: Event) -> None:
        if event.node in self.returned:
            self.returned.discard(event.node)
            self.down.discard(event.node)
        (self.registered.discard if event.broker_epoch < 0 else self.registered.add)(event.node)
        self._disturbed(position, event)

    def _ended(self, position: int, event: Event) -> None:
        self.active.discard(fault_of(event))
        self._disturbed(position, event)

    def _broker_state(self, position: int, event: Event) -> None:
        if event.cause == STOPPING:
            self._down(position, event)

    def _down(self, position: int, event: Event) -> None:
        self.down.add(event.node)
        self.returned.discard(event.node)
        self._disturbed(position, event)

    def _phase(self, position: int, event: Event) -> None:
        if event.cause in ("safety", "heal"):
            self._disturbed(position, event)
