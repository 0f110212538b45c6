"""COMMIT-SAFE: a record below any high watermark ever exposed is on every later leader, and on every current replica at the end, at the same offset.

Owns committed_record_lost and committed_record_truncated. "Exposed" is a HIGH_WATERMARK event of a leader; "later" is a leader epoch that is not lower (a
broker that learns late that it led an older epoch owes nothing to a newer one). Loss that the claims allow is excused for its offsets only.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.loss import end_of_loss
from fencepost.checkers.invariants.replicas import Key, Replicas
from fencepost.model.replica_log import ReplicaLog
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import LossRange


@define
class Committed:
    """Of one partition. log: the records below the highest exposed high watermark. exposures: (position, leader epoch, broker, high watermark) of each
    exposure. highest: the highest per leader epoch. isr: as ZooKeeper holds it."""

    log: ReplicaLog = field(factory=ReplicaLog)
    exposures: list[tuple[int, int, int, int]] = field(factory=list)
    highest: dict[int, int] = field(factory=dict)
    isr: tuple[int, ...] = ()

    def exposed_by(self, offset: int, epoch: int) -> tuple[int, int, int, int]:
        """The first exposure of `offset` by a leader of `epoch` or below."""
        return next(exposure for exposure in self.exposures if exposure[1] <= epoch and exposure[3] > offset)

    def exposed_up_to(self, epoch: int) -> int:
        """The highest high watermark that leaders of `epoch` and below exposed."""
        return max((end for exposing, end in self.highest.items() if exposing <= epoch), default=0)


@define
class CommitSafe:
    """partitions: what was exposed in each."""

    replicas: Replicas
    findings: Findings
    loss: tuple[LossRange, ...]
    partitions: dict[Key, Committed] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that expose, and those that owe."""
        return {
            Name.PARTITION_STATE: self._partition_state,
            Name.HIGH_WATERMARK: self._high_watermark,
            Name.BECAME_LEADER: self._became_leader,
        }

    def _of(self, event: Event) -> Committed:
        key = event.topic, event.partition
        committed = self.partitions.get(key)
        if committed is None:
            committed = self.partitions[key] = Committed()
        return committed

    def _partition_state(self, position: int, event: Event) -> None:
        self._of(event).isr = event.isr

    def _high_watermark(self, position: int, event: Event) -> None:
        if event.cause != "leader":
            return
        committed, log = self._of(event), self.replicas.log(event)
        epoch, end, before = event.leader_epoch, event.high_watermark, committed.log.end_offset
        if any(exposing > epoch for exposing in committed.highest):
            # a deposed leader went on: it must show what its successor showed
            self._owes(position, event, min(end, before), max(committed.highest))
        if end > before:
            committed.log.extend(log, end)
        committed.exposures.append((position, epoch, event.node, end))
        committed.highest[epoch] = max(end, committed.highest.get(epoch, 0))

    def _became_leader(self, position: int, event: Event) -> None:
        epoch = event.leader_epoch
        self._owes(position, event, self._of(event).exposed_up_to(epoch), epoch)

    def _owes(self, position: int, event: Event, end: int, by_epoch: int) -> None:
        """The leader's log must hold the committed records below `end`, which leaders of `by_epoch` or below exposed."""
        committed = self._of(event)
        offset = self._first_lost(event.topic, event.partition, self.replicas.log(event), committed.log, end)
        if offset is None:
            return
        exposed_at, epoch, node, high_watermark = committed.exposed_by(offset, by_epoch)
        self.findings.add(
            "committed_record_lost",
            expected=f"{_record(committed.log, offset)}: leader {node} of epoch {epoch} had exposed the high watermark {high_watermark}",
            seen=f"broker {event.node} leads epoch {event.leader_epoch} with {_held(self.replicas.log(event), offset)}",
            topic=event.topic,
            partition=event.partition,
            offset=offset,
            events=(exposed_at, position),
        )

    def _first_lost(
        self, topic: str | None, partition: int, log: ReplicaLog, committed: ReplicaLog, end: int
    ) -> int | None:
        """The first committed offset below `end` that `log` certainly lacks and whose loss nothing excuses."""
        start = 0
        while start < end:
            offset = log.first_difference(start, committed.epochs[start:end], committed.values[start:end])
            if offset is None:
                return None
            excused_to = end_of_loss(self.loss, (topic, partition), offset)
            if excused_to == offset:
                return offset
            start = excused_to
        return None

    def at_the_end(self) -> None:
        """Every member of the ISR that was dumped holds every committed record."""
        for key, committed in self.partitions.items():
            for node, final in sorted(self.replicas.final.get(key, {}).items()):
                if node not in committed.isr:
                    continue
                offset = self._first_lost(*key, final.log, committed.log, committed.log.end_offset)
                if offset is None:
                    continue
                exposed_at, epoch, leader, high_watermark = committed.exposed_by(
                    offset, max(committed.highest)
                )
                self.findings.add(
                    "committed_record_truncated",
                    expected=f"{_record(committed.log, offset)}: leader {leader} of epoch {epoch} had exposed the high watermark {high_watermark}",
                    seen=f"at the end broker {node}, which is in the ISR {list(committed.isr)}, has {_held(final.log, offset)}",
                    topic=key[0],
                    partition=key[1],
                    offset=offset,
                    events=(exposed_at, final.position_of(offset)),
                )


def _record(log: ReplicaLog, offset: int) -> str:
    return f"value {log.values[offset]} of leader epoch {log.epochs[offset]} at offset {offset}"


def _held(log: ReplicaLog, offset: int) -> str:
    if offset >= log.end_offset:
        return f"a log that ends at {log.end_offset}"
    return f"value {log.values[offset]} of leader epoch {log.epochs[offset]} there"
