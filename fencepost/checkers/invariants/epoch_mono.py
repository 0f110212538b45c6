"""EPOCH-MONO: leader epochs grow, and each has one leader.

Owns two_leaders_one_epoch, leader_epoch_regressed and leader_epoch_repeated. Kafka keeps leader epochs in
memory only, so a restarted broker has forgotten them. The epochs of a broker are therefore compared within
one incarnation.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name

NOBODY = -1
DELETED = "replica_deleted"
"""The mark of a broker that deleted its replica."""


@define
class EpochMono:
    """The state of the invariant."""

    findings: Findings
    # ZooKeeper's last (leader epoch, leader, position).
    states: dict[Key, tuple[int, int, int]] = field(factory=dict)
    # (broker, position) by leader epoch.
    led: dict[Key, dict[int, tuple[int, int]]] = field(factory=dict)
    # A broker's last (leader epoch, position) per partition, in this incarnation.
    known: dict[int, dict[Key, tuple[int, int]]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that name a leader or an epoch."""
        return {
            Name.PARTITION_STATE: self._partition_state,
            Name.BROKER_STARTED: self._broker_started,
            Name.BECAME_LEADER: self._became_leader,
            Name.BECAME_FOLLOWER: self._learned,
            Name.MARK: self._mark,
        }

    def _broker_started(self, position: int, event: Event) -> None:
        self.known.pop(event.node, None)

    def _mark(self, position: int, event: Event) -> None:
        """A deleted replica is forgotten; a later replica of the partition is a new one."""
        if event.cause == DELETED:
            self.known.get(event.node, {}).pop((event.topic, event.partition), None)

    def _partition_state(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        epoch, leader, before = self.states.get(key, (-1, NOBODY, -1))
        self.states[key] = event.leader_epoch, event.leader, position
        if event.leader_epoch < epoch:
            self._regressed(position, event, before, f"ZooKeeper held leader epoch {epoch}", "ZooKeeper")
        elif event.leader_epoch == epoch and leader != event.leader and NOBODY not in (leader, event.leader):
            self._two_leaders(position, event, before, "ZooKeeper named", leader, event.leader)

    def _became_leader(self, position: int, event: Event) -> None:
        leaders = self.led.setdefault((event.topic, event.partition), {})
        node, before = leaders.setdefault(event.leader_epoch, (event.node, position))
        if node != event.node:
            self._two_leaders(position, event, before, "the leader was", node, event.node)
        self._learned(position, event)

    def _learned(self, position: int, event: Event) -> None:
        known = self.known.setdefault(event.node, {})
        key = event.topic, event.partition
        epoch, before = known.get(key, (-1, -1))
        known[key] = event.leader_epoch, position
        if event.leader_epoch == epoch:
            self.findings.add(
                "leader_epoch_repeated",
                expected=f"broker {event.node} to take a role once in leader epoch {epoch}, as it remembers "
                f"having done",
                seen=f"it took one again: {event.name.value.replace('_', ' ')}",
                topic=event.topic,
                partition=event.partition,
                events=(before, position),
            )
        elif event.leader_epoch < epoch:
            reason = f"broker {event.node} had learned leader epoch {epoch}"
            self._regressed(position, event, before, reason, f"broker {event.node}")

    def _two_leaders(self, position: int, event: Event, before: int, reason: str, one: int, two: int) -> None:
        self.findings.add(
            "two_leaders_one_epoch",
            expected=f"one leader in epoch {event.leader_epoch}: {reason} broker {one}",
            seen=f"broker {two} leads in it too",
            topic=event.topic,
            partition=event.partition,
            events=(before, position),
        )

    def _regressed(self, position: int, event: Event, before: int, reason: str, who: str) -> None:
        self.findings.add(
            "leader_epoch_regressed",
            expected=f"a leader epoch that only grows: {reason}",
            seen=f"{who} went back to {event.leader_epoch}",
            topic=event.topic,
            partition=event.partition,
            events=(before, position),
        )
