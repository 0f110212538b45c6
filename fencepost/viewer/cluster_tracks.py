"""Brokers, controllers and ZooKeeper over the whole run: tracks of who believes what.

Owns: the facts that the panel of the cluster shows. Must not know logs, clients or drawing.

What ZooKeeper holds and what a broker believes are two tracks, because most replication bugs live between
them.
"""

from collections.abc import Callable

from attrs import define, field

from fencepost.report.event_words import fault_nodes
from fencepost.report.lanes import PAUSING, STOPPING, Lanes
from fencepost.traces.events import Event, Name
from fencepost.viewer.replica_logs import Partition
from fencepost.viewer.tracks import Tracks

STOPPED_STATES = frozenset({"NotRunning", "BrokerShuttingDown"})
"""Kafka's names of states in which a broker's process has ended its work."""
FactKey = tuple[str, str]
"""What it is about (zk, a broker, a partition, a replica) and the name of the fact."""


def broker_key(node: int) -> str:
    """A broker as the subject of a fact."""
    return f"b{node}"


@define
class Cluster:
    """What ZooKeeper and brokers held, step by step."""

    # The partitions with facts; a key names them by their position here.
    partitions: tuple[Partition, ...]
    brokers: tuple[int, ...]
    # By (subject, name). Subjects: "zk"; "b1" for broker 1; "p0" for the first partition; "p0b1" for its
    # replica on broker 1.
    facts: Tracks[FactKey] = field(factory=Tracks)
    # A replica's role, by the same rule as in the text timeline.
    lanes: Lanes = field(init=False)
    # Position of each partition.
    numbers: dict[Partition, int] = field(init=False)
    _handlers: dict[Name, Callable[[int, Event], None]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.lanes = Lanes(brokers=self.brokers, partitions=self.partitions)
        self.numbers = {partition: number for number, partition in enumerate(self.partitions)}
        self._handlers = {
            Name.CONTROLLER_EPOCH: lambda s, e: self._zk(s, "controller_epoch", e.controller_epoch),
            Name.CONTROLLER_ZNODE: lambda s, e: self._zk(s, "controller", e.leader),
            Name.BROKER_ZNODE: self._registration,
            Name.PARTITION_STATE: self._partition_state,
            Name.ASSIGNMENT: lambda s, e: self._of_partition(s, e, "assignment", list(e.replicas)),
            Name.REASSIGNMENT: lambda s, e: self._of_partition(s, e, "reassignment", list(e.replicas)),
            Name.BROKER_STARTED: self._started,
            Name.BROKER_REGISTERED: lambda s, e: self._broker(s, e.node, "session", e.broker_epoch),
            Name.BROKER_STATE: self._broker_state,
            Name.LOG_DIRECTORY_FAILED: lambda s, e: self._stopped(s, e.node),
            Name.IMPLEMENTATION_ERROR: lambda s, e: self._stopped(s, e.node),
            Name.SESSION_EXPIRED: lambda s, e: self._broker(s, e.node, "session", -1),
            Name.CONTROLLER_ELECTED: lambda s, e: self._broker(s, e.node, "controller", e.controller_epoch),
            Name.CONTROLLER_RESIGNED: lambda s, e: self._broker(s, e.node, "controller", -1),
            Name.CONTROL_REQUEST_APPLIED: lambda s, e: self._broker(s, e.node, "obeys", e.controller_epoch),
            Name.LIVE_BROKERS: lambda s, e: self._broker(s, e.node, "knows", list(e.replicas)),
            Name.BECAME_LEADER: self._became,
            Name.BECAME_FOLLOWER: self._became,
            Name.ISR_PROPOSED: lambda s, e: self._of_replica(s, e, "proposes", list(e.isr)),
            Name.ISR_UPDATED: self._isr_updated,
            Name.ISR_REFUSED: lambda s, e: self._of_replica(s, e, "proposes", None),
            Name.PHASE: lambda s, e: self._zk(s, "phase", e.cause),
            Name.FAULT_BEGAN: self._fault,
            Name.FAULT_ENDED: self._fault,
        }

    def apply(self, step: int, event: Event) -> None:
        """Move on by one event."""
        self.lanes.apply(event)
        handler = self._handlers.get(event.name)
        if handler is not None:
            handler(step, event)
            self._letters(step)

    def _letters(self, step: int) -> None:
        for partition, number in self.numbers.items():
            for broker in self.brokers:
                down = self.facts.last((broker_key(broker), "process")) == "down"
                letter = "x" if down else self.lanes.letter(partition, broker)
                self.facts.set((f"p{number}b{broker}", "letter"), step, letter)

    # ---- setters

    def _zk(self, step: int, name: str, value: object) -> None:
        self.facts.set(("zk", name), step, value)

    def _broker(self, step: int, node: int, name: str, value: object) -> None:
        if node >= 0:
            self.facts.set((broker_key(node), name), step, value)

    def _of_partition(self, step: int, event: Event, name: str, value: object) -> None:
        number = self._number(event)
        if number is not None:
            self.facts.set((f"p{number}", name), step, value)

    def _of_replica(self, step: int, event: Event, name: str, value: object) -> None:
        number = self._number(event)
        if number is not None:
            self.facts.set((f"p{number}b{event.node}", name), step, value)

    def _number(self, event: Event) -> int | None:
        return self.numbers.get((event.topic, event.partition)) if event.topic is not None else None

    # ---- events that say several things

    def _registration(self, step: int, event: Event) -> None:
        known = dict(self.facts.last(("zk", "brokers")) or [])
        if event.broker_epoch >= 0:
            known[event.node] = event.broker_epoch
        else:
            known.pop(event.node, None)
        self._zk(step, "brokers", [list(pair) for pair in sorted(known.items())])

    def _partition_state(self, step: int, event: Event) -> None:
        state = {
            "leader": event.leader,
            "leader_epoch": event.leader_epoch,
            "isr": list(event.isr),
            "controller_epoch": event.controller_epoch,
            "version": event.zk_version,
        }
        self._of_partition(step, event, "state", state)

    def _stopped(self, step: int, node: int) -> None:
        """A process ended: what it believed is gone with it."""
        self._broker(step, node, "process", "down")
        for name, nothing in (("session", -1), ("controller", -1), ("knows", [])):
            self._broker(step, node, name, nothing)
        for number in self.numbers.values():
            replica = f"p{number}b{node}"
            for name in ("epoch", "leader", "isr", "proposes"):
                if self.facts.last((replica, name)) is not None:
                    self.facts.set((replica, name), step, None)

    def _started(self, step: int, event: Event) -> None:
        self._stopped(step, event.node)  # the process may have ended in any way before
        self._broker(step, event.node, "process", "up")

    def _broker_state(self, step: int, event: Event) -> None:
        self._broker(step, event.node, "state", event.cause)
        if event.cause in STOPPED_STATES:
            self._stopped(step, event.node)

    def _became(self, step: int, event: Event) -> None:
        leads = event.name is Name.BECAME_LEADER
        self._of_replica(step, event, "epoch", event.leader_epoch)
        self._of_replica(step, event, "leader", event.node if leads else event.leader)
        self._of_replica(step, event, "isr", list(event.isr) if leads else None)
        self._of_replica(step, event, "proposes", None)

    def _isr_updated(self, step: int, event: Event) -> None:
        self._of_replica(step, event, "isr", list(event.isr))
        self._of_replica(step, event, "proposes", None)

    def _fault(self, step: int, event: Event) -> None:
        began = event.name is Name.FAULT_BEGAN
        for node in fault_nodes(event):
            if event.cause in STOPPING and began:
                self._stopped(step, node)
            elif event.cause in PAUSING:
                self._broker(step, node, "process", "paused" if began else "up")
