"""MEANTIME: a broker that is gone leads no partition and is in no ISR with other members, and a partition has
a leader as soon as some broker can lead it.

Owns late_election and late_removal. slow_election (recovery.py) waits until every broker is registered again.
This rule applies to the brokers that are left. Its bound counts from the last broker that came or went and
the last elected controller. What the controller does then is a single event.
"""

from collections.abc import Callable, Iterator, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.checkers.meantime.calm import Calm, row_ns
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.traces.events import Event, Name

STEPS = 30
"""The longest sequence of messages: reads and writes of a fail-over (20), then the changes of brokers. The
controller waits for no responses."""
SLACK_MS = 1_500
"""Time for disks, and for events in the controller's queue."""


OPERATORS = frozenset(
    {
        "add_partitions",
        "alter_topic",
        "create_topic",
        "delete_topic",
        "preferred_election",
        "reassign_back",
        "reassign_grow",
        "reassign_move",
        "reassign_reorder",
        "reassign_shrink",
    }
)
"""Requests of operators, which are recorded like faults."""


@define
class Handover:
    """The state of the rules."""

    # The findings so far.
    findings: Findings
    # The current calm.
    calm: Calm
    # The options of the plan.
    options: Options
    # By partition: leader, ISR and position, as in ZooKeeper.
    states: dict[Key, tuple[int, tuple[int, ...], int]] = field(factory=dict)
    # The beginning of the last calm that was checked.
    asked: int = -1
    # Partitions under reassignment.
    unsettled: set[Key] = field(factory=set)
    # Topics that are being deleted.
    going: set[str | None] = field(factory=set)
    requests: list[int] = field(factory=list)
    """When operators asked for something, in nanoseconds."""
    bound: int = field(init=False)
    """Nanoseconds."""

    def __attrs_post_init__(self) -> None:
        self.bound = SLACK_MS * MILLISECOND + row_ns(self.options.network, STEPS)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """States, and moments at which a change may be due."""
        return {
            Name.PARTITION_STATE: self._partition_state,
            Name.ASSIGNMENT: self._assignment,
            Name.REASSIGNMENT: self._reassignment,
            Name.TOPIC_DELETION: self._deletion,
            Name.APPENDED: self._ask,
            Name.HIGH_WATERMARK: self._ask,
            Name.CONTROL_REQUEST_APPLIED: self._ask,
            Name.FAULT_BEGAN: self._began,
            Name.FAULT_ENDED: self._ask,
            Name.BROKER_STARTED: self._ask,
            Name.PHASE: self._ask,
        }

    def _partition_state(self, position: int, event: Event) -> None:
        self._ask(position, event)
        self.states[event.topic, event.partition] = event.leader, event.isr, position

    def _assignment(self, position: int, event: Event) -> None:
        if not event.replicas:
            self.states.pop((event.topic, event.partition), None)

    def _reassignment(self, position: int, event: Event) -> None:
        (self.unsettled.add if event.replicas else self.unsettled.discard)((event.topic, event.partition))

    def _deletion(self, position: int, event: Event) -> None:
        self.going.add(event.topic)

    def _began(self, position: int, event: Event) -> None:
        self._ask(position, event)
        if event.cause in OPERATORS:
            self.requests.append(event.time)

    def _ask(self, position: int, event: Event) -> None:
        calm = self.calm
        if calm.position == self.asked or event.time - calm.since <= self.bound or not calm.reigns:
            return
        # the controller's queue is in order: what operators asked for is as long a sequence each
        waiting = sum(since > calm.since - 2 * self.bound for since in self.requests)
        if event.time - calm.since <= self.bound * (1 + waiting):
            return
        self.asked = calm.position
        for key, (leader, isr, since) in sorted(self.states.items(), key=lambda item: item[1][2]):
            if key in self.unsettled or key[0] in self.going:
                continue
            for anomaly, expected in self._missing(leader, isr):
                self.findings.add(
                    anomaly,
                    expected=f"{expected} within {self.bound // MILLISECOND} ms, as nothing else was broken",
                    seen=f"leader {leader}, ISR {list(isr)}; brokers {sorted(calm.registered)} are "
                    f"registered",
                    topic=key[0],
                    partition=key[1],
                    events=(since, calm.position, position),
                )

    def _missing(self, leader: int, isr: tuple[int, ...]) -> Iterator[tuple[str, str]]:
        registered = self.calm.registered
        able = [member for member in isr if member in registered]
        dead = [member for member in isr if member not in registered]
        if leader not in registered and able:
            yield "late_election", f"broker {able[0]}, which is registered and in the ISR, to lead"
        elif leader in registered and dead:
            yield "late_removal", f"brokers {dead}, which are gone, to be out of the ISR"
