"""What a kind of fault is: a row of the table in table.py.

Owns the shape of a row, and what a fault may act on: a simulated cluster, or a real system. Must not know any
kind.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

from attrs import field, frozen

from fencepost.record.observed_state import ObservedState
from fencepost.sim.world import World
from fencepost.systems.system import Pair, System
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import Fault, Plan, TopicOptions

NOTHING = (0, 0)
MICROSECONDS = 1_000
"""In a millisecond."""
Replicas = tuple[int, ...]
Targets = Callable[[Replicas, Replicas, int], list[Replicas]]
"""From replicas, all brokers and the least number of replicas to what the replicas may become; themselves if
nothing else is possible."""


class Breakable(Protocol):
    """What a fault acts on in a simulated cluster."""

    plan: Plan
    world: World
    observed_state: ObservedState
    broker_ids: tuple[int, ...]

    def client_nodes(self) -> list[int]:
        """Nodes of all clients, of those too that begin later."""
        ...

    def restart_later(self, node: int, delay_ms: int) -> None:
        """Start the host's process after a while, if it is down then.

        Args:
            node: the host's number.
            delay_ms: virtual milliseconds until the start.
        """
        ...

    def arm_power_loss(self, fault: Fault, node: int) -> None:
        """Let the power fail, or the process die, at one of the host's next file calls; the restart follows
        by itself.

        Args:
            fault: `parameter` is the number of the call, 0 is at once.
            node: the host's number.
        """
        ...

    def stop_cleanly(self, node: int, delay_ms: int) -> None:
        """Ask the process to stop, and start it again later.

        Args:
            node: the host's number.
            delay_ms: virtual milliseconds between its end and its start.
        """
        ...

    def rot(self, node: int, choice: int) -> None:
        """Turn over one bit under a checksum of the last segment of one of the host's logs.

        Args:
            node: the host's number.
            choice: which log and which bit, modulo what there is.
        """
        ...

    def disk_healed(self, node: int) -> None:
        """The disk works again: a process that halted because of it is started."""
        ...

    def create_new(self, topic: TopicOptions, replicas: dict[int, tuple[int, ...]]) -> str:
        """Write the assignment of a new topic; why not, if its name is taken."""
        ...


@frozen(kw_only=True)
class Hit:
    """A fault that strikes."""

    kind: "FaultKind"
    fault: Fault
    # The broker that it hits.
    node: int
    # The other one; None: all others.
    other: int | None = None

    @property
    def name(self) -> str:
        """What a network calls the fault: two of a kind end independently."""
        return f"{self.fault.kind} {self.fault.fault_id}"

    @property
    def parameter(self) -> int:
        """The kind's own number."""
        return self.fault.parameter

    @property
    def down_ms(self) -> int:
        """From the end of the process to its start, in milliseconds."""
        return self.parameter if self.kind.down_by_parameter else self.fault.duration_ms

    @property
    def delay_ms(self) -> int:
        """The parameter in microseconds, as a real system takes it."""
        return max(1, self.parameter // MICROSECONDS)

    def toward(self, others: list[int]) -> list[Pair]:
        """Directed links between the target and these. The parameter says 0 both ways, 1 only what the
        target sends, 2 only what it receives."""
        sent = [(self.node, other) for other in others] if self.parameter != 2 else []
        return sent + ([(other, self.node) for other in others] if self.parameter != 1 else [])

    def others(self, brokers: tuple[int, ...]) -> list[int]:
        """The other broker, or all others out of `brokers`."""
        return [one for one in brokers if one != self.node] if self.other is None else [self.other]


@frozen(kw_only=True)
class SimulatedHit(Hit):
    """A fault that strikes a simulated cluster."""

    cluster: Breakable

    @property
    def world(self) -> World:
        """Where the cluster is."""
        return self.cluster.world

    @property
    def links(self) -> list[Pair]:
        """Between the target and the other one, or all other brokers, as the parameter says."""
        return self.toward(self.others(self.cluster.broker_ids))

    @property
    def both_ways(self) -> list[Pair]:
        """Between the target and the other one, or all other brokers, in both directions."""
        return there_and_back(self.node, self.others(self.cluster.broker_ids))


def there_and_back(node: int, others: list[int]) -> list[Pair]:
    """The links between a host and others, in both directions."""
    return [pair for other in others for pair in ((node, other), (other, node))]


class Operators(Protocol):
    """Who takes the requests of operators over the wire. Each answers Kafka's name of the error."""

    def elect(self, topic: str, partition: int) -> str:
        """Elect the preferred leader of a partition."""
        ...

    def reassign(self, topic: str, partition: int, replicas: Replicas) -> str:
        """Give a partition other replicas."""
        ...

    def create_partitions(self, name: str, count: int) -> str:
        """Let a topic have more partitions.

        Args:
            name: of the topic.
            count: how many it has then.
        """
        ...

    def alter_topic(self, name: str, settings: Mapping[str, str]) -> str:
        """Set some of a topic's settings."""
        ...


@frozen(kw_only=True)
class Topic:
    """The topic of a run against a real system."""

    # In the cluster.
    name: str
    # Replicas as they were seen last, by partition.
    assigned: Mapping[int, Replicas]
    brokers: Replicas
    # Replicas that every partition keeps.
    least: int


@frozen(kw_only=True)
class RealHit(Hit):
    """A fault that strikes a real system."""

    system: System
    # Of the run's partitions, in each broker's log directory.
    folders: tuple[str, ...] = ()
    # Of the run; None: requests of operators have nothing to ask for.
    topic: Topic | None = None
    # Who takes these requests; None as above.
    operators: Operators | None = None
    # The cluster's name of each topic, by the plan's.
    names: Mapping[str, str] = field(factory=dict)

    @property
    def links(self) -> list[Pair]:
        """As of a simulated cluster."""
        return self.toward(self.others(self.system.brokers))

    @property
    def asked(self) -> tuple[Topic, Operators]:
        """What a request is about, and who takes it."""
        assert self.topic is not None and self.operators is not None, "the run has a topic"
        return self.topic, self.operators


DONE = ("NONE", "ELECTION_NOT_NEEDED")
"""Kafka's names of an answer that says that a request is done: an election that changes nothing is, too."""


def taken(hit: RealHit, answers: list[str]) -> None:
    """That a request was taken.

    Args:
        hit: the request.
        answers: Kafka's names of errors, one for each partition or topic; none if there was nothing to ask.

    Raises:
        FencepostError: it was refused; then the fault is recorded as skipped, with Kafka's name of the error.
    """
    refused = [answer for answer in answers if answer not in DONE]
    if refused or not answers:
        raise FencepostError(
            expected=f"that {hit.fault.kind} is taken",
            seen=", ".join(refused) or "that there is nothing to change",
            where=hit.fault.target,
        )


Ask = Callable[[Breakable, Fault], str]
"""Makes a request; answers why it could not be made, "" if it was."""


def nothing(hit: Hit) -> None:
    """A request hits no broker, so that nothing begins; and some faults end by themselves."""


class Reach(Enum):
    """Which brokers a fault may keep from replicating, or from their sessions with ZooKeeper."""

    TARGET = "the target"
    LINKS = "the target and the other broker, or all others"
    EVERYBODY = "all brokers"
    NOBODY = "none: only clients notice, or a later fault"


@frozen
class Real:
    """What a fault consists of in a real system."""

    # What the system must be able to do: one of `Inside.can`.
    verb: str
    begin: Callable[[RealHit], object]
    # Called when its time is over, and again when the cluster is healed.
    end: Callable[[RealHit], object] = nothing


@frozen(kw_only=True)
class FaultKind:
    """A kind of fault: what it does, what it may cost, which target and parameter it has."""

    # Its description in `campaign --list-faults`.
    says: str
    # How it begins and ends in a simulated cluster. Where it does not begin, it is none of the simulator's.
    begin: Callable[[SimulatedHit], object] = nothing
    end: Callable[[SimulatedHit], object] = nothing
    # How it begins and ends in a real system; None: no real system of ours can do it.
    real: Real | None = None
    # An operator's request (operator_requests.py): it hits no broker and lasts no time.
    ask: Ask | None = None
    # Whether the broker is down during the fault.
    stops: bool = False
    # Whether its process has ended at the onset, and is started again later: after the duration, or after the
    # parameter, in milliseconds.
    down: bool = False
    down_by_parameter: bool = False
    # Whether data that was not synced may be lost.
    loses: bool = False
    # Whether synced data may be lost.
    rots: bool = False
    # Whether a later power loss may take synced data.
    lies: bool = False
    # Whether it is a fault of the disk: a host has one at a time.
    disk: bool = False
    # Whether a host, or the cluster, has one of this kind at a time.
    single: bool = False
    # Whether it needs a broker that runs.
    needs_up: bool = True
    # Whether it needs a ZooKeeper that runs.
    asks_zookeeper: bool = False
    # Bounds of the parameter that the swarm draws; parameter_says: what it means.
    parameter: tuple[int, int] = NOTHING
    parameter_says: str = "not used"
    # What its target names: "broker", "partition", "topic", "group", "request". "cluster": everybody is hit,
    # and the target names nothing.
    on: str = "broker"
    # Of whom the budget says that nobody can rely on them meanwhile (keeping.py).
    reach: Reach = Reach.TARGET

    @property
    def simulated(self) -> bool:
        """Whether a simulated cluster can have it."""
        return self.begin is not nothing or self.ask is not None

    @property
    def holds(self) -> bool:
        """Whether it keeps the broker's process from running from the onset to the end: no other of this
        sort makes sense meanwhile."""
        return self.stops and not self.disk

    @property
    def hits_process(self) -> bool:
        """Whether the process may end because of it, at the onset or when it likes."""
        return self.down or (self.stops and self.disk)
