"""MEANTIME: a decision reaches every broker that the protocol names, within a bound that counts from the
decision.

Owns late_decision. slow_delivery (recovery.py) applies only when the whole cluster is at rest, which takes a
calm of many seconds. This rule applies to each state that is written while nothing is broken. After a
controller's write, each live replica takes its role in that leader epoch or a later one, and each live broker
updates its metadata. After a leader's own ISR change, each live broker updates its metadata, once the
controller was notified. The time in which brokers worked on old segments is added to the bound. There is no
bound if a request usually takes longer than the controller waits for its answer: then it is sent again and
again.
"""

from collections import deque
from collections.abc import Callable, Mapping

from attrs import define, field, frozen

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.checkers.meantime.calm import Calm, row_ns
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.checkers.meantime.steps import Steps
from fencepost.traces.events import Event, Name

STEPS = 40
"""The longest sequence of messages: the rest of the controller's event (20), batches on the way to a broker
(12), the broker's own (6)."""
SLACK_MS = 1_500
"""Time for the disks of the brokers that take a role, and for requests that wait at a host."""
UPDATE = "UpdateMetadataRequest"


def is_prompt(options: Options) -> bool:
    """Whether the controller gets an answer before it sends its request again.

    Args:
        options: of the plan.
    """
    network = options.network
    usual_us = min(network.latency_max_us, network.latency_min_us + 2 * network.latency_tail_us)
    return 2 * usual_us <= options.cluster.controller_request_timeout_ms * 1_000


@frozen(kw_only=True)
class Decision:
    """A partition state that was written."""

    # Topic and partition.
    key: Key
    # When the state was written, in nanoseconds.
    time: int
    # The event of the write, as a position in the trace.
    position: int
    # When every broker must know it, if nothing is broken meanwhile; nanoseconds.
    due: int
    # The leader in the state.
    leader: int
    # The leader epoch in the state.
    leader_epoch: int
    elects: bool
    """Whether a controller wrote it, so that replicas take roles."""


@define
class Delivery:
    """The state of the rule."""

    # The findings so far.
    findings: Findings
    # The current calm.
    calm: Calm
    # The options of the plan.
    options: Options
    steps: Steps
    # Decisions of controllers that are not due yet, earliest first.
    elected: deque[Decision] = field(factory=deque)
    # ISR changes by leaders that are not due yet, earliest first.
    changed: deque[Decision] = field(factory=deque)
    epochs: dict[Key, int] = field(factory=dict)
    """The current leader epoch of each partition."""
    informed: dict[int, int] = field(factory=dict)
    """When each broker last handled an UpdateMetadata request."""
    # By broker and partition: the leader epoch of the broker's role.
    roles: dict[tuple[int, Key], int] = field(factory=dict)
    # The replicas of each partition.
    assigned: dict[Key, tuple[int, ...]] = field(factory=dict)
    unsettled: set[Key] = field(factory=set)
    """Partitions under reassignment: a replica that is removed takes no role."""
    # Topics that are being deleted.
    going: set[str | None] = field(factory=set)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Decisions, and the events that show their arrival."""
        return {
            Name.PARTITION_STATE: self._partition_state,
            Name.ASSIGNMENT: self._assignment,
            Name.REASSIGNMENT: self._reassignment,
            Name.TOPIC_DELETION: self._deletion,
            Name.BECAME_LEADER: self._role,
            Name.BECAME_FOLLOWER: self._role,
            Name.CONTROL_REQUEST_APPLIED: self._applied,
            Name.FAULT_BEGAN: self._ask,
            Name.PHASE: self._ask,
        }

    def _bound(self, *, elects: bool) -> int:
        cluster = self.options.cluster
        wait_ms = 2 * cluster.controller_request_timeout_ms + SLACK_MS
        if not elects:
            wait_ms += cluster.isr_change_propagation_ms
        return wait_ms * MILLISECOND + row_ns(self.options.network, STEPS)

    def _partition_state(self, position: int, event: Event) -> None:
        self._ask(position, event)
        key = event.topic, event.partition
        elects = event.leader_epoch != self.epochs.get(key, -1)
        self.epochs[key] = event.leader_epoch
        decision = Decision(
            key=key,
            time=event.time,
            position=position,
            due=event.time + self._bound(elects=elects),
            leader=event.leader,
            leader_epoch=event.leader_epoch,
            elects=elects,
        )
        (self.elected if elects else self.changed).append(decision)

    def _assignment(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        if event.replicas:
            self.assigned[key] = event.replicas
        else:
            self.assigned.pop(key, None)

    def _reassignment(self, position: int, event: Event) -> None:
        (self.unsettled.add if event.replicas else self.unsettled.discard)((event.topic, event.partition))

    def _deletion(self, position: int, event: Event) -> None:
        self.going.add(event.topic)

    def _role(self, position: int, event: Event) -> None:
        self._ask(position, event)
        place = event.node, (event.topic, event.partition)
        self.roles[place] = max(event.leader_epoch, self.roles.get(place, -1))

    def _applied(self, position: int, event: Event) -> None:
        self._ask(position, event)
        if event.cause == UPDATE:
            self.informed[event.node] = event.time

    def _ask(self, position: int, event: Event) -> None:
        """Before each event: check the decisions that are due by now."""
        for waiting in (self.elected, self.changed):
            while waiting and waiting[0].due < event.time:
                decision = waiting[0]
                cleaning = self.steps.cleaning(decision.time, event.time, self.calm.registered)
                if decision.due + cleaning >= event.time:
                    break
                waiting.popleft()
                if self.calm.reigns and self.calm.since <= decision.time:
                    self._judge(decision, position)

    def _judge(self, decision: Decision, position: int) -> None:
        key = decision.key
        if key[0] in self.going or key not in self.assigned:
            return
        deaf = [
            broker for broker in sorted(self.calm.registered) if self.informed.get(broker, -1) < decision.time
        ]
        if deaf:
            self._find(decision, position, f"brokers {deaf} took over no metadata since")
        elif decision.elects and decision.leader >= 0 and key not in self.unsettled:
            idle = [
                broker
                for broker in self.assigned[key]
                if broker in self.calm.registered
                and self.roles.get((broker, key), -1) < decision.leader_epoch
            ]
            if idle:
                self._find(decision, position, f"brokers {idle} took no role in it")

    def _find(self, decision: Decision, position: int, seen: str) -> None:
        bound_ms = (decision.due - decision.time) // MILLISECOND
        self.findings.add(
            "late_decision",
            expected=f"every broker to be notified within {bound_ms} ms of leader {decision.leader} in "
            f"leader epoch {decision.leader_epoch}, as nothing was broken",
            seen=seen,
            topic=decision.key[0],
            partition=decision.key[1],
            events=(decision.position, position),
        )
