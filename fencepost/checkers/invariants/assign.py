"""ASSIGN and ISR-IN-AR: replicas change as an operator requested until the change is complete, and the ISR
contains only assigned replicas.

Owns stale_reassignment, reassignment_forgotten, reassignment_incomplete, assigned_replica_deleted and
isr_outside_assignment. A controller may write two assignments into a topic's node. One is the target of an
entry that was in /admin/reassign_partitions during its reign. The other is the old replicas plus those of
that target. Operators may write anything.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name

DELETED = "replica_deleted"
"""The mark of a broker that deleted its replica."""
REFUSED = "reassignment_refused"
"""The mark of a controller that removes an entry because it is impossible. It excuses nothing by itself:
what is registered and assigned has to say so, too."""
NEVER_ENDED = "every reassignment has ended"
"""The condition that the liveness phase waits for."""


@define
class Assign:
    """The state of the rules, by partition."""

    # The findings so far.
    findings: Findings
    # The replicas in the topic's node, with the position of the write.
    assigned: dict[Key, tuple[tuple[int, ...], int]] = field(factory=dict)
    # Target and position of each reassignment entry.
    pending: dict[Key, tuple[tuple[int, ...], int]] = field(factory=dict)
    # Every target of the current reign.
    asked: dict[Key, list[tuple[int, ...]]] = field(factory=dict)
    # ZooKeeper's ISR and its position.
    isrs: dict[Key, tuple[tuple[int, ...], int]] = field(factory=dict)
    # The leader epoch of each partition's state.
    epochs: dict[Key, int] = field(factory=dict)
    # The last leader epoch in which a broker was not assigned.
    unassigned: dict[tuple[Key, int], int] = field(factory=dict)
    # The brokers that ever were.
    holders: dict[Key, set[int]] = field(factory=dict)
    # Partitions with an entry that a controller called impossible.
    refused: set[Key] = field(factory=set)
    # Brokers with a node, each with the position of its registration; and where the reign began.
    registered: dict[int, int] = field(factory=dict)
    reign: int = -1
    # Topics that are being deleted.
    deleting: set[str | None] = field(factory=set)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Requests to ZooKeeper, its state, and the end of the run."""
        return {
            Name.BROKER_ZNODE: self._broker_znode,
            Name.CONTROLLER_EPOCH: self._controller_epoch,
            Name.ASSIGNMENT: self._assignment,
            Name.REASSIGNMENT: self._reassignment,
            Name.PARTITION_STATE: self._partition_state,
            Name.MARK: self._mark,
            Name.TOPIC_DELETION: self._deletion,
            Name.LIVENESS_FAILED: self._liveness_failed,
        }

    def _broker_znode(self, position: int, event: Event) -> None:
        if event.broker_epoch < 0:
            self.registered.pop(event.node, None)
        else:
            self.registered[event.node] = position

    def _controller_epoch(self, position: int, event: Event) -> None:
        self.reign = position
        self.asked = {key: [target] for key, (target, _) in self.pending.items()}

    def _mark(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        if event.cause == REFUSED:
            if self._is_impossible(key):
                self.refused.add(key)
        elif event.cause == DELETED and event.topic not in self.deleting:
            self._deleted(position, event, key)

    def _is_impossible(self, key: Key) -> bool:
        """Whether a reassignment may be refused: the partition is gone, about to be, or without a state yet,
        so that no controller knows it; the target says nothing new or names a broker twice, or one of its
        brokers was away in this reign."""
        target, _ = self.pending.get(key, ((), -1))
        replicas, _ = self.assigned.get(key, ((), -1))
        if not replicas or key not in self.epochs or key[0] in self.deleting:
            return True
        if not target or len(set(target)) < len(target):
            return True
        away = [broker for broker in target if self.registered.get(broker, self.reign + 1) > self.reign]
        return replicas == target or bool(away)

    def _deletion(self, position: int, event: Event) -> None:
        self.deleting.add(event.topic)

    def _deleted(self, position: int, event: Event, key: Key) -> None:
        """Step 6 of a reassignment: the broker deletes its replica only if an entry exists and the broker is
        not in its target. A broker that has not heard of a later leader epoch may act on what was written
        in that epoch before it was assigned again."""
        if 0 <= event.leader_epoch < self.unassigned.get((key, event.node), -1):
            return
        replicas, since = self.pending.get(key) or self.assigned.get(key, ((), -1))
        if event.node in replicas:
            self.findings.add(
                "assigned_replica_deleted",
                expected=f"broker {event.node} to keep its replica, which is still assigned: "
                f"{list(replicas)}",
                seen=f"it deleted it in leader epoch {event.leader_epoch}",
                topic=event.topic,
                partition=event.partition,
                events=(since, position),
            )

    def _reassignment(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        if event.replicas:
            self.pending[key] = event.replicas, position
            self.asked.setdefault(key, []).append(event.replicas)
            self.refused.discard(key)
            return
        target, since = self.pending.pop(key, ((), -1))
        replicas, _ = self.assigned.get(key, ((), -1))
        if event.node < 0 or not replicas or replicas == target or key in self.refused:
            return
        self.findings.add(
            "reassignment_forgotten",
            expected=f"the entry for replicas {list(target)} to stay in /admin/reassign_partitions until "
            f"it is done or refused",
            seen=f"broker {event.node} took it out while the replicas are {list(replicas)}",
            topic=event.topic,
            partition=event.partition,
            events=(since, position),
        )

    def _assignment(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        before, since = self.assigned.get(key, ((), -1))
        self.assigned[key] = event.replicas, position
        self.holders.setdefault(key, set()).update(event.replicas)
        self._leave_out(key)
        if not event.replicas:
            return
        self._within(key, position)
        if event.node < 0 or not before or self._was_asked_for(key, before, event.replicas):
            return
        targets = " or ".join(str(list(target)) for target in self.asked.get(key, ())) or "nothing"
        self.findings.add(
            "stale_reassignment",
            expected=f"replicas {list(before)} to become a target requested in this controller's reign: "
            f"{targets}",
            seen=f"broker {event.node} wrote replicas {list(event.replicas)}",
            topic=event.topic,
            partition=event.partition,
            events=(since, position),
        )

    def _was_asked_for(self, key: Key, before: tuple[int, ...], replicas: tuple[int, ...]) -> bool:
        return any(
            replicas == target or set(replicas) == {*before, *target} for target in self.asked.get(key, ())
        )

    def _partition_state(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        self.isrs[key] = event.isr, position
        self.epochs[key] = event.leader_epoch
        self._leave_out(key)
        self._within(key, position)

    def _leave_out(self, key: Key) -> None:
        """Note the leader epoch of who is not assigned, after a write of either."""
        replicas, _ = self.assigned.get(key, ((), -1))
        for broker in self.holders.get(key, set()).difference(replicas):
            self.unassigned[key, broker] = self.epochs.get(key, -1)

    def _within(self, key: Key, position: int) -> None:
        """Check that the ISR is part of the assignment, after a write of either."""
        (replicas, assigned_at), (isr, written_at) = (
            self.assigned.get(key, ((), -1)),
            self.isrs.get(key, ((), -1)),
        )
        strangers = [member for member in isr if member not in replicas]
        if not replicas or not strangers:
            return
        self.findings.add(
            "isr_outside_assignment",
            expected=f"an ISR out of the replicas {list(replicas)}",
            seen=f"ISR {list(isr)}",
            topic=key[0],
            partition=key[1],
            events=tuple(sorted((assigned_at, written_at))),
        )

    def _liveness_failed(self, position: int, event: Event) -> None:
        if event.cause != NEVER_ENDED:
            return
        for key, (target, since) in sorted(self.pending.items(), key=lambda item: item[1][1]):
            replicas, _ = self.assigned.get(key, ((), -1))
            self.findings.add(
                "reassignment_incomplete",
                expected=f"replicas {list(target)}, within the bound of the liveness phase, once the faults "
                f"had ended",
                seen=f"the replicas are {list(replicas)} and the entry is still there",
                topic=key[0],
                partition=key[1],
                events=(since, position),
            )
