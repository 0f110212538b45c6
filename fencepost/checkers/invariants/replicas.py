"""The logs of all replicas according to the events, and the final dumps.

Owns the bookkeeping that COMMIT-SAFE and LOG-MATCH share. Must not check anything.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.model.replication.replica_log import ReplicaLog
from fencepost.traces.events import Event, Name

Key = tuple[str | None, int]
"""Topic and partition number."""


@define
class FinalLog:
    """A replica's log as dumped at the end. rows: the positions of its REPLICA_LOG events, with the base
    offset of each."""

    log: ReplicaLog = field(factory=ReplicaLog)
    high_watermark: int = 0
    log_start_offset: int = 0
    rows: list[tuple[int, int]] = field(factory=list)

    def position_of(self, offset: int) -> int:
        """The position of the row that holds `offset`, or of the last row."""
        return next((position for position, base in reversed(self.rows) if base <= offset), self.rows[-1][0])


@define
class Replicas:
    """The replicas of a trace.

    logs: by partition and node, at the current event. starts: the log start offset of each replica, if it is
    not 0; records below it no longer exist. final: the dumps.
    """

    logs: dict[Key, dict[int, ReplicaLog]] = field(factory=dict)
    starts: dict[tuple[Key, int], int] = field(factory=dict)
    final: dict[Key, dict[int, FinalLog]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that change a log."""
        return {
            Name.APPENDED: self._appended,
            Name.TRUNCATED: self._truncated,
            Name.LOG_RECOVERED: self._recovered,
            Name.LOG_START: self._started_at,
            Name.REPLICA_LOG: self._dumped,
        }

    def log(self, event: Event) -> ReplicaLog:
        """The log of the event's replica."""
        key = event.topic, event.partition
        nodes = self.logs.get(key)
        if nodes is None:
            nodes = self.logs[key] = {}
        log = nodes.get(event.node)
        if log is None:
            log = nodes[event.node] = ReplicaLog()
        return log

    def start(self, event: Event) -> int:
        """The log start offset of the event's replica."""
        return self.starts.get(((event.topic, event.partition), event.node), 0)

    def _started_at(self, position: int, event: Event) -> None:
        self.starts[(event.topic, event.partition), event.node] = event.log_start_offset

    def _recovered(self, position: int, event: Event) -> None:
        if event.log_start_offset >= 0:
            self._started_at(position, event)
        self._resized(position, event)

    def _appended(self, position: int, event: Event) -> None:
        log = self.log(event)
        log.append(event.offset, event.leader_epoch, event.values)
        if event.end_offset > log.end_offset:
            log.resize(event.end_offset)  # compaction left a gap

    def _truncated(self, position: int, event: Event) -> None:
        if event.cause == "full":
            self.log(event).start_over(event.offset)
        else:
            self._resized(position, event)

    def _resized(self, position: int, event: Event) -> None:
        self.log(event).resize(event.offset)

    def _dumped(self, position: int, event: Event) -> None:
        nodes = self.final.setdefault((event.topic, event.partition), {})
        final = nodes.setdefault(event.node, FinalLog())
        final.rows.append((position, event.offset))
        if event.values:
            final.log.append(event.offset, event.leader_epoch, event.values)
        if event.end_offset > final.log.end_offset:
            final.log.resize(
                event.end_offset
            )  # what follows may have been removed by retention or compaction; a later row takes its place
        final.log_start_offset = event.log_start_offset
        final.high_watermark = event.high_watermark
