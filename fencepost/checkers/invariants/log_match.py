"""LOG-MATCH: (offset, leader epoch) names one record for ever, and replicas agree below the lower of their
high watermarks.

Owns log_divergence. Claims do not excuse it. If loss is allowed, content is keyed by epoch and offset, which
is what this invariant compares, and at the end every dumped replica has truncated the lost records. There are
two exceptions, for the allowed offsets and the second half of the rule only. If the liveness phase failed, a
replica may not have truncated yet. And a partition may no longer be assigned to a replica, because its broker
was away when it had to be deleted.
"""

from collections.abc import Callable, Mapping, Sequence

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.loss import end_of_loss
from fencepost.checkers.invariants.replicas import FinalLog, Key, Replicas
from fencepost.model.replication.replica_log import ReplicaLog
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import LossRange


@define
class Names:
    """The records of one partition."""

    # (leader epoch, base offset) -> values, as first appended.
    batches: dict[tuple[int, int], tuple[int, ...]] = field(factory=dict)
    # Leader epoch -> offset -> value.
    records: dict[int, dict[int, int]] = field(factory=dict)


@define
class LogMatch:
    """The state of the invariant."""

    # The logs of all replicas.
    replicas: Replicas
    # The findings so far.
    findings: Findings
    # The whole trace, to find the first of two convicting events.
    events: Sequence[Event]
    # The loss that the claims allow.
    loss: tuple[LossRange, ...]
    # Whether a wait of the liveness phase did not end.
    liveness_failed: bool = False
    # What each (epoch, offset) names.
    partitions: dict[Key, Names] = field(factory=dict)
    # The replicas of each partition, if the trace reports them.
    assigned: dict[Key, tuple[int, ...]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that report the content of a log."""
        return {
            Name.APPENDED: self._holds,
            Name.ASSIGNMENT: self._assignment,
            Name.REPLICA_LOG: self._holds,
            Name.LIVENESS_FAILED: self._failed,
        }

    def _assignment(self, position: int, event: Event) -> None:
        self.assigned[event.topic, event.partition] = event.replicas

    def _failed(self, position: int, event: Event) -> None:
        self.liveness_failed = True

    def _holds(self, position: int, event: Event) -> None:
        if not event.values:
            return
        key = event.topic, event.partition
        names = self.partitions.get(key)
        if names is None:
            names = self.partitions[key] = Names()
        batch = event.leader_epoch, event.offset
        known = names.batches.setdefault(batch, event.values)
        if known is not event.values and known == event.values:
            return  # most batches of followers end here
        records = names.records.setdefault(event.leader_epoch, {})
        for offset, value in enumerate(event.values, event.offset):
            held = records.setdefault(offset, value)
            if held != value:
                self._diverged(position, event, offset, held, value)
                return

    def _diverged(self, position: int, event: Event, offset: int, held: int, value: int) -> None:
        first = self._first_with(event, offset)
        self.findings.add(
            "log_divergence",
            expected=(
                f"one record at offset {offset} of leader epoch {event.leader_epoch}: "
                f"broker {self.events[first].node} holds value {held} there"
            ),
            seen=f"broker {event.node} holds value {value} there",
            topic=event.topic,
            partition=event.partition,
            offset=offset,
            events=(first, position),
        )

    def _first_with(self, event: Event, offset: int) -> int:
        """The position of the first event that names a record at this offset and epoch."""
        return next(
            position
            for position, earlier in enumerate(self.events)
            if earlier.name in (Name.APPENDED, Name.REPLICA_LOG)
            and earlier.partition == event.partition
            and earlier.topic == event.topic
            and earlier.leader_epoch == event.leader_epoch
            and earlier.offset <= offset < earlier.offset + len(earlier.values)
        )

    def _first_difference(
        self, key: Key, one: ReplicaLog, other: ReplicaLog, start: int, end: int, *, excused: bool
    ) -> int | None:
        while start < end:
            offset = one.first_difference(start, other.epochs[start:end], other.values[start:end])
            if offset is None or not excused:
                return offset
            start = end_of_loss(self.loss, key, offset)
            if start == offset:
                return offset
        return None

    def at_the_end(self) -> None:
        """Compare each dump with each other one of its partition."""
        for key, finals in self.replicas.final.items():
            ordered = sorted(finals.items())
            for index, (node, final) in enumerate(ordered):
                for other_node, other in ordered[index + 1 :]:
                    self._agree(key, node, final, other_node, other)

    def _agree(self, key: Key, node: int, final: FinalLog, other_node: int, other: FinalLog) -> None:
        end = min(final.high_watermark, other.high_watermark, final.log.end_offset, other.log.end_offset)
        start = max(final.log_start_offset, other.log_start_offset, 0)
        assigned = self.assigned.get(key, ())
        stray = bool(assigned) and not {node, other_node} <= set(assigned)
        excused = stray or self.liveness_failed
        offset = self._first_difference(key, final.log, other.log, start, end, excused=excused)
        if offset is None:
            return
        one, two = ((log.epochs[offset], log.values[offset]) for log in (final.log, other.log))
        self.findings.add(
            "log_divergence",
            expected=(
                f"equal records below {end}, the lower high watermark: at offset {offset} "
                f"broker {node} holds value {one[1]} of leader epoch {one[0]}"
            ),
            seen=f"broker {other_node} holds value {two[1]} of leader epoch {two[0]} there",
            topic=key[0],
            partition=key[1],
            offset=offset,
            events=(final.position_of(offset), other.position_of(offset)),
        )
