"""What happened before an event, as far as marks ask for it.

Owns what is kept of a trace's earlier events. Must not know any mark (marks.py), nor look at anything but
events.
"""

import msgspec
from attrs import define, evolve, field, frozen

from fencepost.record.observed_state import Key, ObservedState
from fencepost.traces.events import Event, Name

REBALANCING = ("PreparingRebalance", "CompletingRebalance")

UNENDED = 1 << 62


@frozen
class Span:
    """A fault at a broker, from its onset to its end, in nanoseconds of the trace."""

    node: int
    begin: int
    end: int
    # The leader epochs of the partitions that the broker had a replica of when it began.
    epochs: dict[Key, int]


Replica = tuple[str, int, int]
"""Topic, partition number, broker."""


def key_of(event: Event) -> Key:
    """The partition of an event that has one."""
    return event.topic or "", event.partition


def fault_of(event: Event) -> int:
    """The id of the fault that begins or ends."""
    return int(msgspec.json.decode(event.detail)["fault"])


def replica_of(event: Event) -> Replica:
    """The replica of an event that has one."""
    return event.topic or "", event.partition, event.node


@define
class EventHistory:
    """What the events so far say, as the marks need it."""

    observed_state: ObservedState = field(factory=ObservedState)
    # Brokers that believe that they are the controller.
    controllers: set[int] = field(factory=set)
    # Brokers that have a znode.
    registered: set[int] = field(factory=set)
    # The controller epoch in which a topic's deletion was asked for.
    deleting: dict[str, int] = field(factory=dict)
    # (base offset, leader epoch) of each run of records of one epoch in a replica's log, in order.
    epochs: dict[Replica, list[tuple[int, int]]] = field(factory=dict)
    # The largest high watermark of each leader epoch of a partition.
    exposed: dict[Key, dict[int, int]] = field(factory=dict)
    # Replicas that were cut and have not appended since.
    cut: set[Replica] = field(factory=set)
    # The coordinator of each offsets partition.
    coordinators: dict[int, int] = field(factory=dict)
    # Offsets partition and phase of each group.
    phases: dict[str, tuple[int, str]] = field(factory=dict)
    # Times at which a group began a rebalance.
    rebalances: dict[str, list[int]] = field(factory=dict)
    # The leader that appended a value first.
    wrote: dict[int, int] = field(factory=dict)
    # What a broker took over of each topic's configuration, as events say it.
    configured: dict[tuple[str, int], list[str]] = field(factory=dict)
    # Faults that have begun at a broker and not ended, by id.
    lasting: dict[int, Span] = field(factory=dict)
    # What each member of a group has, and in which generation a group's partition was given up.
    shares: dict[tuple[str, str | None], set[Key]] = field(factory=dict)
    given_up: dict[tuple[str, str, int], int] = field(factory=dict)
    # Those that have ended, in order.
    spans: list[Span] = field(factory=list)

    def learn(self, event: Event) -> None:
        """Take one event in."""
        self.observed_state.learn(event)
        learn = _LEARN.get(event.name)
        if learn is not None:
            learn(self, event)

    def epochs_from(self, replica: Replica, offset: int) -> int:
        """How many leader epochs the records of a replica from this offset on have."""
        runs = self.epochs.get(replica, [])
        inside = {epoch for base, epoch in runs if base >= offset}
        before = [epoch for base, epoch in runs if base < offset]
        begins_here = any(base == offset for base, _ in runs)
        return len(inside | ({before[-1]} if before and not begins_here else set()))

    def exposed_to(self, replica: Replica) -> int:
        """The largest high watermark that leaders had exposed up to the epoch of the replica's last record:
        later ones speak of other records."""
        runs, epochs = self.epochs.get(replica), self.exposed.get(replica[:2], {})
        last = runs[-1][1] if runs else -1
        return max((offset for epoch, offset in epochs.items() if epoch <= last), default=0)

    def configurations(self, event: Event) -> list[str]:
        """Those that the broker of an event has had of its topic, none at first, without repetitions."""
        return self.configured.get((event.topic or "", event.node), ["{}"])

    def _configured(self, event: Event) -> None:
        known = self.configurations(event)
        if known[-1] != event.detail:
            self.configured[event.topic or "", event.node] = [*known, event.detail]

    def _exposed(self, event: Event) -> None:
        if event.cause == "leader":
            epochs = self.exposed.setdefault(key_of(event), {})
            epochs[event.leader_epoch] = max(event.high_watermark, epochs.get(event.leader_epoch, 0))

    def _elected(self, event: Event) -> None:
        self.controllers.add(event.node)

    def _no_controller(self, event: Event) -> None:
        self.controllers.discard(event.node)

    def _broker_znode(self, event: Event) -> None:
        if event.broker_epoch >= 0:
            self.registered.add(event.node)
        else:
            self.registered.discard(event.node)

    def _deletion(self, event: Event) -> None:
        if event.cause == "requested":
            self.deleting[event.topic or ""] = self.observed_state.controller_epoch
        else:
            self.deleting.pop(event.topic or "", None)

    def _appended(self, event: Event) -> None:
        replica = replica_of(event)
        self.cut.discard(replica)
        runs = self.epochs.setdefault(replica, [])
        if not runs or runs[-1][1] != event.leader_epoch:
            runs.append((event.offset, event.leader_epoch))
        if event.cause == "leader":
            for value in event.values:
                self.wrote.setdefault(value, event.node)

    def _truncated(self, event: Event) -> None:
        self.cut.add(replica_of(event))
        self._ends_at(event)

    def _ends_at(self, event: Event) -> None:
        runs = self.epochs.get(replica_of(event))
        while runs and runs[-1][0] >= event.offset:
            runs.pop()

    def _began(self, event: Event) -> None:
        if event.node >= 0:
            epochs = {
                key: known.leader_epoch
                for key, known in self.observed_state.partitions.items()
                if event.node in (*known.isr, *known.replicas)
            }
            self.lasting[fault_of(event)] = Span(event.node, event.time, UNENDED, epochs)

    def _ended(self, event: Event) -> None:
        span = self.lasting.pop(fault_of(event), None)
        if span is not None:
            self.spans.append(evolve(span, end=event.time))

    def _loaded(self, event: Event) -> None:
        self.coordinators[event.partition] = event.node

    def _phase(self, event: Event) -> None:
        group = msgspec.json.decode(event.detail)["group"]
        self.phases[group] = event.partition, event.cause
        if event.cause == REBALANCING[0]:
            self.rebalances.setdefault(group, []).append(event.time)


_LEARN = {
    Name.CONTROLLER_ELECTED: EventHistory._elected,
    Name.CONTROLLER_RESIGNED: EventHistory._no_controller,
    Name.BROKER_STARTED: EventHistory._no_controller,
    Name.BROKER_ZNODE: EventHistory._broker_znode,
    Name.TOPIC_DELETION: EventHistory._deletion,
    Name.APPENDED: EventHistory._appended,
    Name.HIGH_WATERMARK: EventHistory._exposed,
    Name.TRUNCATED: EventHistory._truncated,
    Name.LOG_RECOVERED: EventHistory._ends_at,
    Name.FAULT_BEGAN: EventHistory._began,
    Name.FAULT_ENDED: EventHistory._ended,
    Name.TOPIC_CONFIGURED: EventHistory._configured,
    Name.GROUPS_LOADED: EventHistory._loaded,
    Name.GROUP_PHASE: EventHistory._phase,
}
