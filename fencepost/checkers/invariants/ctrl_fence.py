"""CTRL-FENCE: a deposed controller has no effect, in ZooKeeper or at a broker.

Owns fenced_controller_wrote and fenced_controller_obeyed. In ZooKeeper the fence is /controller_epoch, in the
order of commits. If a write of a partition's state raises the leader epoch, a controller wrote it. (A
leader's ISR change repeats the controller epoch that the leader knows, which may be old.) A broker forgets
the highest controller epoch when it restarts. An epoch belongs to the broker that wrote /controller_epoch.
Another broker that uses it has read it somewhere (KAFKA-1096).
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name


@define
class CtrlFence:
    """The state of the invariant."""

    # The findings so far.
    findings: Findings
    # The epoch in the last write of /controller_epoch.
    controller_epoch: int = -1
    # The broker that wrote it.
    owner: int = -1
    # The position of that write.
    epoch_position: int = -1
    # ZooKeeper's leader epoch of each partition.
    leader_epochs: dict[Key, int] = field(factory=dict)
    # For each broker the highest controller epoch that it obeyed in this incarnation, and its position.
    obeyed: dict[int, tuple[int, int]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Events of controllers, and restarts, which discard a broker's epoch."""
        return {
            Name.CONTROLLER_EPOCH: self._controller_epoch,
            Name.PARTITION_STATE: self._partition_state,
            Name.CONTROL_REQUEST_APPLIED: self._applied,
            Name.BROKER_STARTED: self._broker_started,
        }

    def _controller_epoch(self, position: int, event: Event) -> None:
        self.controller_epoch, self.epoch_position = event.controller_epoch, position
        self.owner = event.node

    def _broker_started(self, position: int, event: Event) -> None:
        self.obeyed.pop(event.node, None)

    def _partition_state(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        before = self.leader_epochs.get(key, -1)
        self.leader_epochs[key] = event.leader_epoch
        if event.leader_epoch <= before:
            return
        if event.controller_epoch == self.controller_epoch and -1 not in (self.owner, event.node):
            self._by_its_owner(position, event)
        if event.controller_epoch < self.controller_epoch:
            self.findings.add(
                "fenced_controller_wrote",
                expected=f"no write by a controller of an epoch below {self.controller_epoch}, once "
                f"/controller_epoch had become that",
                seen=(
                    f"controller {event.node} of epoch {event.controller_epoch} wrote leader {event.leader}, "
                    f"leader epoch {event.leader_epoch} to ZooKeeper"
                ),
                topic=event.topic,
                partition=event.partition,
                events=(self.epoch_position, position),
            )

    def _by_its_owner(self, position: int, event: Event) -> None:
        if event.node != self.owner:
            self.findings.add(
                "fenced_controller_wrote",
                expected=f"controller epoch {self.controller_epoch} to be used by broker {self.owner}, "
                f"which was elected in it",
                seen=f"broker {event.node} wrote leader {event.leader}, leader epoch {event.leader_epoch} "
                f"to ZooKeeper with it",
                topic=event.topic,
                partition=event.partition,
                events=(self.epoch_position, position),
            )

    def _applied(self, position: int, event: Event) -> None:
        highest, before = self.obeyed.get(event.node, (-1, -1))
        if event.controller_epoch >= highest:
            self.obeyed[event.node] = event.controller_epoch, position
            return
        self.findings.add(
            "fenced_controller_obeyed",
            expected=f"broker {event.node} to refuse controller epochs below {highest}, which it had obeyed",
            seen=f"it applied a {event.cause or 'control request'} of controller epoch "
            f"{event.controller_epoch}",
            events=(before, position),
        )
