"""Calm: since when nothing is broken, nobody came or went, and no controller was elected; and how long a row
of messages takes then.

Owns both. Must not know rules. What an operator asks for does not end it: a cluster that is well does it
meanwhile. Nor does a broker that is dead: the others are well once its node is gone, and until then nobody
knows, so that there is no calm.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.meantime.options import Network
from fencepost.traces.events import Event, Name

STOPPING = "PendingControlledShutdown"
STOPS = frozenset({"bit_rot", "bounce", "crash"})
"""Kinds of fault that do nothing but end a process at once, until it is started again."""
SLOWEST = 3
"""So many messages of a row may take as long as the network allows; the others take its latency and twice its
tail."""
FAR_US = 600_000
"""A network whose slowest message takes longer than that holds some back for seconds, so that others overtake
them."""


def fault_of(event: Event) -> str:
    """What names a fault: its number, with which its detail begins."""
    return event.detail.split(",")[0].rstrip("}")


def is_asked(network: Network) -> bool:
    """Whether anything can be said about time: how often a message must be sent again that was lost by chance
    has no bound."""
    return not (network.loss_ppm or network.reorder_ppm or network.latency_max_us > FAR_US)


def row_ns(network: Network, messages: int) -> int:
    """How long so many messages take that wait for each other, nanoseconds."""
    usual_us = min(network.latency_max_us, network.latency_min_us + 2 * network.latency_tail_us)
    return 1_000 * (messages * usual_us + SLOWEST * (network.latency_max_us - usual_us))


@define
class Calm:
    """since: nanoseconds; position: of the event that began it."""

    since: int = 0
    position: int = 0
    active: set[str] = field(factory=set)
    """Faults that last, as the beginning of their detail names them, without those that ended a process."""
    down: set[int] = field(factory=set)
    """Brokers that were ended, or asked to stop, and not started since."""
    registered: set[int] = field(factory=set)
    """Brokers that have a node."""

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """What disturbs."""
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
        """From when on a bound counts: the moment, or the beginning of the calm if that is later; None while
        something is broken."""
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
        else:
            self.active.add(fault_of(event))
        self._disturbed(position, event)

    def _started(self, position: int, event: Event) -> None:
        self.down.discard(event.node)
        self._disturbed(position, event)

    def _broker_znode(self, position: int, event: Event) -> None:
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
        self._disturbed(position, event)

    def _phase(self, position: int, event: Event) -> None:
        if event.cause in ("safety", "heal"):
            self._disturbed(position, event)
