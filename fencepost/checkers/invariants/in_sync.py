"""ISR-NONEMPTY, ISR-AGREE, STOP-SAFE and ISR-ALIVE: the members of the ISR, in ZooKeeper and in the leader's
view; and COMMIT-SAFE of a replica that is deleted.

Owns empty_isr, isr_disagrees, stopping_member_joined_isr, dead_member_left_in_isr and isr_member_deleted. A
leader's ISR may not lack a member of ZooKeeper's ISR. The leader's ISR is what a controller or ZooKeeper
confirmed to it in ZooKeeper's current leader epoch.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name

DELETED, FAILED_OVER = "replica_deleted", "failed_over"
"""Marks: of a broker that deleted its replica; of a controller that has taken over."""

ELIGIBLE, LAST_KNOWN = "eligible", "last_known"
"""Causes of a state in which the ISR may be empty (KIP-966): eligible leader replicas hold what was
committed; or the ISR's last member was killed, and nobody else may lead."""


@define
class InSyncState:
    """ZooKeeper's state of a partition, written at `position`."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    position: int
    # Its ISR by version of the node, in this leader epoch.
    versions: dict[int, tuple[int, ...]] = field(factory=dict)


@define
class InSync:
    """The state of the rules."""

    # The findings so far.
    findings: Findings
    # ZooKeeper's state of each partition.
    states: dict[Key, InSyncState] = field(factory=dict)
    # By broker and partition: the ISR that a leader uses.
    believed: dict[tuple[int, Key], tuple[int, ...]] = field(factory=dict)
    # For each broker the brokers that it knows to be alive, and the position at which it learned that.
    alive: dict[int, tuple[tuple[int, ...], int]] = field(factory=dict)
    # For each broker the position of its last registration.
    registered: dict[int, int] = field(factory=dict)
    # For each broker the position at which its node was last removed.
    unregistered: dict[int, int] = field(factory=dict)
    # The position of each controller's election, by epoch.
    elected: dict[int, int] = field(factory=dict)
    # The latest controller epoch.
    controller_epoch: int = -1
    # Topics that are being deleted.
    deleting: set[str | None] = field(factory=set)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that change an ISR, and those that report which brokers are alive."""
        return {
            Name.PARTITION_STATE: self._partition_state,
            Name.BECAME_LEADER: self._believes,
            Name.ISR_UPDATED: self._believes,
            Name.ISR_PROPOSED: self._proposed,
            Name.LIVE_BROKERS: self._live_brokers,
            Name.BROKER_STARTED: self._broker_started,
            Name.BROKER_ZNODE: self._broker_znode,
            Name.CONTROLLER_EPOCH: self._controller_epoch,
            Name.CONTROLLER_ELECTED: self._controller_elected,
            Name.TOPIC_DELETION: self._deletion,
            Name.MARK: self._mark,
        }

    # ---- ZooKeeper's states

    def _partition_state(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        before = self.states.get(key)
        same = before is not None and before.leader_epoch == event.leader_epoch
        versions = before.versions if before is not None and same else {}
        versions[event.zk_version] = event.isr
        self.states[key] = InSyncState(event.leader, event.leader_epoch, event.isr, position, versions)
        if not event.isr and event.cause not in (ELIGIBLE, LAST_KNOWN):
            self.findings.add(
                "empty_isr",
                expected="the last member to stay in the ISR, so that no other broker can lead cleanly",
                seen=f"broker {event.node} wrote an empty ISR in leader epoch {event.leader_epoch}",
                topic=event.topic,
                partition=event.partition,
                events=(before.position, position) if before else (position,),
            )

    def _live_brokers(self, position: int, event: Event) -> None:
        self.alive[event.node] = event.replicas, position

    def _broker_started(self, position: int, event: Event) -> None:
        self.alive.pop(event.node, None)

    def _broker_znode(self, position: int, event: Event) -> None:
        now, before = self.registered, self.unregistered
        if event.broker_epoch < 0:
            now, before = before, now
        now[event.node] = position
        before.pop(event.node, None)

    def _controller_epoch(self, position: int, event: Event) -> None:
        self.controller_epoch = event.controller_epoch

    def _controller_elected(self, position: int, event: Event) -> None:
        self.elected[event.controller_epoch] = position

    def _deletion(self, position: int, event: Event) -> None:
        self.deleting.add(event.topic)

    # ---- the leaders' view

    def _believes(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        self.believed[event.node, key] = event.isr
        state = self.states.get(key)
        if state is None or state.leader_epoch != event.leader_epoch or not event.isr:
            return
        held = state.isr if event.name is Name.BECAME_LEADER else state.versions.get(event.zk_version)
        if held is None or set(held) <= set(event.isr):
            return
        self.findings.add(
            "isr_disagrees",
            expected=f"the leader's ISR to hold all of ZooKeeper's, which is {list(held)} in leader epoch "
            f"{event.leader_epoch}",
            seen=f"leader {event.node} uses {list(event.isr)}",
            topic=event.topic,
            partition=event.partition,
            events=(state.position, position),
        )

    def _proposed(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        known, since = self.alive.get(event.node, ((), -1))
        before = self.believed.get((event.node, key), event.isr)
        gone = [member for member in event.isr if member not in before and member not in known]
        if event.cause != "expand" or not gone:
            return
        self.findings.add(
            "stopping_member_joined_isr",
            expected=f"only brokers to join the ISR that are alive and not stopping for leader {event.node}: "
            f"{list(known)}",
            seen=f"it proposed broker {gone[0]} in leader epoch {event.leader_epoch}",
            topic=event.topic,
            partition=event.partition,
            events=(since, position) if since >= 0 else (position,),
        )

    # ---- marks

    def _mark(self, position: int, event: Event) -> None:
        if event.cause == FAILED_OVER and event.controller_epoch == self.controller_epoch:
            self._failed_over(position, event)
        elif event.cause == DELETED and event.topic not in self.deleting:
            self._deleted(position, event)

    def _deleted(self, position: int, event: Event) -> None:
        state = self.states.get((event.topic, event.partition))
        if state is None or event.node not in state.isr:
            return
        self.findings.add(
            "isr_member_deleted",
            expected=f"no replica to be deleted that is in the ISR {list(state.isr)} of leader epoch "
            f"{state.leader_epoch}",
            seen=f"broker {event.node} deleted its own, which was of leader epoch {event.leader_epoch}",
            topic=event.topic,
            partition=event.partition,
            events=(state.position, position),
        )

    def _failed_over(self, position: int, event: Event) -> None:
        """Check states that were written before the election and have not changed since: the controller has
        read them, so a member that was gone by then must not be in the ISR now."""
        since = self.elected.get(event.controller_epoch, -1)
        for key, state in sorted(self.states.items(), key=lambda item: item[1].position):
            led = self.registered.get(state.leader, position) < since
            dead = [member for member in state.isr if self.unregistered.get(member, position) < since]
            if state.position < since and led and dead and key[0] not in self.deleting:
                self.findings.add(
                    "dead_member_left_in_isr",
                    expected=f"broker {dead[0]}, gone before controller {event.node} of epoch "
                    f"{event.controller_epoch} was elected, to be out of the ISR",
                    seen=f"the controller has taken over and the ISR is {list(state.isr)}",
                    topic=key[0],
                    partition=key[1],
                    events=(state.position, position),
                )
