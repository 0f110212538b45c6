"""COMMIT-SAFE: a record below any exposed high watermark is on every later leader, and at the end on every
current replica, at the same offset.

Owns committed_record_lost and committed_record_truncated. "Exposed" is a HIGH_WATERMARK event of a leader.
"Later" is a leader epoch that is not lower; a broker that learns late that it led an older epoch need not
have the records of a newer one. Loss that the claims allow is excused for its offsets only. Records below the
log start of a leader are deleted: a replica that has not heard of it, and leads next, may have others there.

For a compacted topic, the final dumps may lack an offset only if a later record of its key was committed too,
or if the record is a tombstone. A record that was not committed replaces nothing (KAFKA-13194). Records with
an unknown key (from no operation of the trace) are not checked.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.loss import end_of_loss
from fencepost.checkers.invariants.replicas import FinalLog, Key, Replicas
from fencepost.model.replication.replica_log import UNKNOWN_EPOCH, ReplicaLog
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function
from fencepost.traces.trace import LossRange, Trace

TOMBSTONE = "tombstone"
"""The argument of an append that deletes its key (docs/reference/traces.md)."""


@define
class Committed:
    """What was exposed of one partition.

    Attributes:
        log: the records below the highest exposed high watermark.
        exposures: (position, leader epoch, broker, high watermark) of each exposure.
        highest: the highest exposed high watermark per leader epoch.
        isr: the ISR in ZooKeeper.
        leader: (leader epoch, broker) of the latest leader.
        log_start: the highest log start offset of a leader.
        anew: by offset in a range of allowed loss, the values that leaders exposed there later.
    """

    log: ReplicaLog = field(factory=ReplicaLog)
    exposures: list[tuple[int, int, int, int]] = field(factory=list)
    highest: dict[int, int] = field(factory=dict)
    isr: tuple[int, ...] = ()
    leader: tuple[int, int] = (-1, -1)
    log_start: int = 0
    anew: dict[int, set[int]] = field(factory=dict)

    def exposed_by(self, offset: int, epoch: int) -> tuple[int, int, int, int]:
        """The first exposure of `offset` by a leader of `epoch` or below."""
        return next(exposure for exposure in self.exposures if exposure[1] <= epoch and exposure[3] > offset)

    def exposed_up_to(self, epoch: int) -> int:
        """The highest high watermark that leaders of `epoch` and below exposed."""
        return max((end for exposing, end in self.highest.items() if exposing <= epoch), default=0)


@define
class CommitSafe:
    """The state of the invariant."""

    replicas: Replicas
    findings: Findings
    loss: tuple[LossRange, ...]
    # The keys of the records of compacted topics, and whether each is a tombstone, by value id.
    keys: Mapping[int, tuple[str, bool]] = field(factory=dict)
    # What was exposed in each.
    partitions: dict[Key, Committed] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that expose records, and those after which a log must have them."""
        return {
            Name.PARTITION_STATE: self._partition_state,
            Name.HIGH_WATERMARK: self._high_watermark,
            Name.BECAME_LEADER: self._became_leader,
            Name.LOG_START: self._log_start,
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
        highest = committed.highest
        if highest and (latest := max(highest)) > epoch:
            # A deposed leader continued: it must show what its successor showed.
            self._owes(position, event, min(end, before), latest)
        if self.keys and self.loss:
            self._note_anew(event, log, min(end, before))
        if end > before:
            committed.log.extend(log, end)
        committed.exposures.append((position, epoch, event.node, end))
        highest[epoch] = max(end, highest.get(epoch, 0))

    def _note_anew(self, event: Event, log: ReplicaLog, end: int) -> None:
        """Note what a leader has where loss is allowed, below `end`: it may supersede earlier records."""
        anew = self._of(event).anew
        for loss in self.loss:
            if (loss.topic, loss.partition) == (event.topic, event.partition):
                for offset in range(loss.start, min(loss.end, end, log.end_offset)):
                    anew.setdefault(offset, set()).add(log.values[offset])

    def _became_leader(self, position: int, event: Event) -> None:
        epoch, committed = event.leader_epoch, self._of(event)
        self._owes(position, event, committed.exposed_up_to(epoch), epoch)
        committed.leader = max(committed.leader, (epoch, event.node))
        self._log_start(position, event)

    def _log_start(self, position: int, event: Event) -> None:
        committed = self._of(event)
        if event.node == committed.leader[1]:
            committed.log_start = max(committed.log_start, self.replicas.start(event))

    def _owes(self, position: int, event: Event, end: int, by_epoch: int) -> None:
        """Check that the leader's log has the committed records below `end` that leaders of `by_epoch` or
        below exposed."""
        committed = self._of(event)
        key, log = (event.topic, event.partition), self.replicas.log(event)
        start = max(self.replicas.start(event), committed.log_start)
        offset = self._first_lost(key, log, committed.log, start, end)
        if offset is None:
            return
        exposed_at, epoch, node, high_watermark = committed.exposed_by(offset, by_epoch)
        self.findings.add(
            "committed_record_lost",
            expected=f"{_record(committed.log, offset)}: leader {node} of epoch {epoch} had exposed the "
            f"high watermark {high_watermark}",
            seen=f"broker {event.node} leads epoch {event.leader_epoch} with {_held(log, offset)}",
            topic=event.topic,
            partition=event.partition,
            offset=offset,
            events=(exposed_at, position),
        )

    def _first_lost(
        self, key: Key, log: ReplicaLog, committed: ReplicaLog, start: int, end: int
    ) -> int | None:
        """The first committed offset from `start` to `end` that `log` certainly lacks without an excuse."""
        while start < end:
            offset = log.first_difference(start, committed.epochs[start:end], committed.values[start:end])
            if offset is None:
                return None
            excused_to = end_of_loss(self.loss, key, offset)
            if excused_to == offset:
                return offset
            start = excused_to
        return None

    def at_the_end(self) -> None:
        """Check that every dumped member of the ISR has every committed record."""
        for key, committed in self.partitions.items():
            for node, final in sorted(self.replicas.final.get(key, {}).items()):
                if node not in committed.isr or not final.opened:
                    continue
                start = max(final.log_start_offset, committed.log_start)
                offset = self._first_lost(key, final.log, committed.log, start, committed.log.end_offset)
                if offset is None:
                    offset = self._first_compacted_away(key, final, committed, start)
                if offset is None:
                    continue
                exposed_at, epoch, leader, high_watermark = committed.exposed_by(
                    offset, max(committed.highest)
                )
                self.findings.add(
                    "committed_record_truncated",
                    expected=f"{_record(committed.log, offset)}: leader {leader} of epoch {epoch} had "
                    f"exposed the high watermark {high_watermark}",
                    seen=f"at the end broker {node}, which is in the ISR {list(committed.isr)}, has "
                    f"{_held(final.log, offset)}",
                    topic=key[0],
                    partition=key[1],
                    offset=offset,
                    events=(exposed_at, final.position_of(offset)),
                )

    def _first_compacted_away(
        self, key: Key, final: FinalLog, committed: Committed, start: int
    ) -> int | None:
        """The first committed offset from `start` that the dump lacks although no committed record supersedes
        it. (An unknown record may have any key.)"""
        if not self.keys:
            return None
        latest: set[str] = set()
        lost, log, anew = None, committed.log, committed.anew
        for offset in range(log.end_offset - 1, start - 1, -1):
            latest.update(self.keys[value][0] for value in anew.get(offset, ()) if value in self.keys)
            if log.epochs[offset] == UNKNOWN_EPOCH:
                return lost
            if log.values[offset] not in self.keys:
                continue
            name, tombstone = self.keys[log.values[offset]]
            cut = offset >= final.log.end_offset  # a loss that is allowed
            gone = (cut or final.log.epochs[offset] == UNKNOWN_EPOCH) and not tombstone
            if gone and name not in latest and end_of_loss(self.loss, key, offset) == offset:
                lost = offset
            latest.add(name)
        return lost


def keys_of(trace: Trace) -> dict[int, tuple[str, bool]]:
    """The keys of the records of compacted topics, and whether each is a tombstone (which compaction may
    remove), by value id."""
    keys: dict[int, tuple[str, bool]] = {}
    for operation in trace.operations if trace.claims.compacted else ():
        if (
            operation.topic in trace.claims.compacted
            and operation.function is Function.APPEND
            and operation.key
        ):
            named = operation.key, operation.argument == TOMBSTONE
            keys.update((record.value, named) for record in operation.records)
    return keys


def _record(log: ReplicaLog, offset: int) -> str:
    return f"value {log.values[offset]} of leader epoch {log.epochs[offset]} at offset {offset}"


def _held(log: ReplicaLog, offset: int) -> str:
    if offset >= log.end_offset:
        return f"a log that ends at {log.end_offset}"
    return f"value {log.values[offset]} of leader epoch {log.epochs[offset]} there"
