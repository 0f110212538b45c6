"""JUSTIFIED: a controller removes a leader or an ISR member, or raises a leader epoch, only for a recorded
reason.

Owns needless_election, needless_removal, unclean_election and stopping_member_left_in_isr. Reasons of a
broker: it was gone (its node in /brokers/ids was removed), or it was asked to stop. Reasons of a partition:
it had no leader, it is being reassigned, or its preferred replica is to lead. A controller acts on what it
read, possibly long ago, so a reason need not be recent. But a reason is used up: one absence of a broker
explains one removal from each ISR, and one loss of leadership of each partition.

An election without a reason is a defect, too: it costs availability, because it fences the clients and
followers of a healthy leader.
"""

from collections.abc import Callable, Iterable, Mapping

from attrs import define, field

from fencepost.checkers.conformance import UNCLEAN
from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import UNCLEAN_REQUESTED, Event, Name
from fencepost.traces.trace import plain

NO_LEADER = -1
STOPPING = "PendingControlledShutdown"
SHUT_DOWN = "controlled_shutdown"
"""The mark of a controller that finished a controlled shutdown. leader: the broker that stops."""


@define
class Known:
    """ZooKeeper's state of a partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    # The event that wrote it.
    position: int
    # The event that began the leader epoch.
    elected: int


@define
class Elections:
    """The state of the rules."""

    # The findings so far.
    findings: Findings
    # Topics that allow unclean elections.
    unclean: set[str]
    # The state of each partition.
    states: dict[Key, Known] = field(factory=dict)
    # For each broker the positions at which its node was removed, as far as this controller may notice.
    gone: dict[int, list[int]] = field(factory=dict)
    # For each broker with a node the position of its registration.
    registered: dict[int, int] = field(factory=dict)
    # Brokers that were asked to stop, with the position of the request.
    stopping: dict[int, int] = field(factory=dict)
    # For each broker the position at which its last process started.
    started: dict[int, int] = field(factory=dict)
    # Topics that are being deleted.
    going: set[str | None] = field(factory=set)
    # By (what, partition, broker): the position in `gone` up to which this broker's absence was used as a
    # reason.
    used: dict[tuple[str, Key, int], int] = field(factory=dict)
    # The replicas of each partition.
    assigned: dict[Key, tuple[int, ...]] = field(factory=dict)
    # Targets of reassignments that were pending when this reign began, or were added since.
    asked: dict[Key, list[tuple[int, ...]]] = field(factory=dict)
    # Targets of pending reassignments.
    pending: dict[Key, tuple[int, ...]] = field(factory=dict)
    # The position at which the current controller epoch began.
    reign: int = -1

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """States, and the events that give reasons."""
        return {
            Name.PARTITION_STATE: self._partition_state,
            Name.BROKER_ZNODE: self._broker_znode,
            Name.BROKER_STATE: self._broker_state,
            Name.BROKER_STARTED: self._broker_started,
            Name.ASSIGNMENT: self._assignment,
            Name.REASSIGNMENT: self._reassignment,
            Name.CONTROLLER_EPOCH: self._controller_epoch,
            Name.TOPIC_CONFIGURED: self._configured,
            Name.TOPIC_DELETION: self._deletion,
            Name.MARK: self._mark,
        }

    # ---- reasons

    def _broker_znode(self, position: int, event: Event) -> None:
        if event.broker_epoch < 0:
            self.gone.setdefault(event.node, []).append(position)
            self.registered.pop(event.node, None)
        else:
            self.registered[event.node] = position
            # Until its next process has registered, the controller knows the process that asked. A new
            # session is not a new process.
            if self.started.get(event.node, -1) > self.stopping.get(event.node, -1):
                self.stopping.pop(event.node, None)

    def _broker_state(self, position: int, event: Event) -> None:
        if event.cause == STOPPING:
            self.stopping[event.node] = position

    def _broker_started(self, position: int, event: Event) -> None:
        self.started[event.node] = position

    def _assignment(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        if event.replicas:
            self.assigned[key] = event.replicas
        else:
            self.assigned.pop(key, None)
            self.states.pop(key, None)

    def _reassignment(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        if event.replicas:
            self.pending[key] = event.replicas
            self.asked.setdefault(key, []).append(event.replicas)
        else:
            self.pending.pop(key, None)

    def _controller_epoch(self, position: int, event: Event) -> None:
        self.reign = position
        self.gone = {
            broker: absences[-1:] for broker, absences in self.gone.items() if broker not in self.registered
        }
        self.asked = {key: [target] for key, target in self.pending.items()}

    def _configured(self, position: int, event: Event) -> None:
        if UNCLEAN in event.detail and event.topic is not None:
            self.unclean.add(plain(event.topic))

    def _deletion(self, position: int, event: Event) -> None:
        self.going.add(event.topic)

    def _mark(self, position: int, event: Event) -> None:
        if event.cause == UNCLEAN_REQUESTED and event.topic is not None:
            self.unclean.add(plain(event.topic))
        elif event.cause == SHUT_DOWN:
            self._shut_down(position, event)

    def _shut_down(self, position: int, event: Event) -> None:
        """A controller answers a stopping broker: it is in no ISR any more, unless it leads, is the last
        member, or its leader added it again since."""
        broker = event.leader
        asked = self.stopping.get(broker, -1)
        for key, state in sorted(self.states.items(), key=lambda item: item[1].position):
            others = broker in state.isr and len(state.isr) > 1 and state.leader not in (broker, NO_LEADER)
            if others and state.position < asked and key[0] not in self.going:
                self.findings.add(
                    "stopping_member_left_in_isr",
                    expected=f"broker {broker}, which was asked to stop, to be out of the ISR when the "
                    f"controller answers",
                    seen=f"controller {event.node} answered, and the ISR is {list(state.isr)}",
                    topic=key[0],
                    partition=key[1],
                    events=(state.position, position),
                )

    def _reason(self, kind: str, key: Key, broker: int) -> bool:
        """Whether there is a reason to remove the broker. It stops, it is gone, or it was gone in a way that
        this controller must notice and that was not used as a reason of this kind yet. A broker that was
        registered when the reign began, and stayed registered, is alive to this controller."""
        absence = self._absence(kind, key, broker, self.gone.get(broker, ()))
        return absence >= 0 or broker not in self.registered or broker in self.stopping

    def _absence(self, kind: str, key: Key, broker: int, absences: Iterable[int]) -> int:
        """Use the first of these absences that was no reason of this kind yet: a controller may act on it
        when the broker is gone again. Returns -1 if there is none."""
        used = self.used.get((kind, key, broker), -1)
        first = next((position for position in absences if position > used), -1)
        if first >= 0:
            self.used[kind, key, broker] = first
        return first

    # ---- what a controller writes

    def _partition_state(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        before = self.states.get(key)
        same = before is not None and event.leader_epoch == before.leader_epoch
        elected = before.elected if same and before is not None else position
        self.states[key] = Known(event.leader, event.leader_epoch, event.isr, position, elected)
        if before is None or event.leader_epoch <= before.leader_epoch:
            return
        outside = event.leader != NO_LEADER and event.leader not in before.isr
        if outside:
            self._outside(key, before, position, event)
        targets = self.asked.get(key, [])
        removed = [] if outside else [member for member in before.isr if member not in event.isr]
        needless = [member for member in removed if not self._may_go(key, member, targets)]
        for member in needless:
            expected = (
                f"broker {member} to stay in the ISR {list(before.isr)}: it was neither gone nor "
                f"stopping, nor moved away"
            )
            self._find("needless_removal", key, before, position, event, expected)
        if not (removed or outside or targets or self._leader_explained(key, before, event)):
            expected = (
                f"leader {before.leader} to lead on in epoch {before.leader_epoch}: "
                "it was neither gone nor stopping, and the partition is not reassigned"
            )
            self._find("needless_election", key, before, position, event, expected)

    def _may_go(self, key: Key, member: int, targets: list[tuple[int, ...]]) -> bool:
        moved = any(member not in target for target in targets) or member not in self.assigned.get(
            key, (member,)
        )
        return moved or self._reason("isr", key, member)

    def _leader_explained(self, key: Key, before: Known, event: Event) -> bool:
        """Whether there is a reason for the new leader, or for the new epoch of the same leader."""
        if before.leader == NO_LEADER:
            return event.leader != NO_LEADER or self._only_member(key, before)
        if self.registered.get(before.leader, -1) > before.elected or self._reason(
            "leader", key, before.leader
        ):
            # another incarnation than the elected one (docs/decisions/0001-restarted-leader.md), or gone
            return True
        preferred = self.assigned.get(key, (NO_LEADER,))[0]
        return event.leader == preferred != before.leader

    def _only_member(self, key: Key, before: Known) -> bool:
        """A controller that would take the last ISR member away keeps it, and raises the epoch: when that
        member stops, or is gone, and once at the beginning of each reign."""
        if len(before.isr) != 1:
            return False
        member = before.isr[0]
        if member in self.stopping:
            return True
        absences = self.gone.get(member, ())
        if member not in self.registered:
            absences = sorted({max(position, self.reign) for position in absences} or {self.reign})
        return self._absence("kept", key, member, absences) >= 0

    def _outside(self, key: Key, before: Known, position: int, event: Event) -> None:
        """A leader from outside the ISR: allowed only if the topic permits it and no ISR member could lead. A
        broker that was registered when this reign began, and stayed registered, was known to be alive."""
        if plain(key[0] or "") not in self.unclean:
            self._find(
                "unclean_election",
                key,
                before,
                position,
                event,
                f"a leader out of the ISR {list(before.isr)}: topic {key[0]} does not allow another one",
            )
            return
        well = [
            member
            for member in before.isr
            if self.registered.get(member, position) < self.reign and member not in self.stopping
        ]
        if well and not self.asked.get(key):
            self._find(
                "unclean_election",
                key,
                before,
                position,
                event,
                f"broker {well[0]} to lead, which is in the ISR {list(before.isr)} and was there since this "
                f"controller was elected",
            )

    def _find(
        self, anomaly: str, key: Key, before: Known, position: int, event: Event, expected: str
    ) -> None:
        self.findings.add(
            anomaly,
            expected=expected,
            seen=f"broker {event.node} wrote leader {event.leader}, leader epoch {event.leader_epoch}, ISR "
            f"{list(event.isr)}",
            topic=key[0],
            partition=key[1],
            events=(before.position, position),
        )
