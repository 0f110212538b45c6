"""The logs of all replicas according to the events, and the final dumps.

Owns the bookkeeping that COMMIT-SAFE, LOG-MATCH and COMPACTION share. Must not check anything.
"""

from collections.abc import Callable, Iterable, Mapping

from attrs import define, field

from fencepost.model.refinement import LOSING
from fencepost.model.replication.replica_log import ReplicaLog
from fencepost.traces.events import Event, Name

Key = tuple[str | None, int]
"""Topic and partition number."""


@define
class FinalLog:
    """A replica's log as dumped at the end."""

    log: ReplicaLog = field(factory=ReplicaLog)
    high_watermark: int = 0
    log_start_offset: int = 0
    # The positions of its REPLICA_LOG events, with the base offset of each.
    rows: list[tuple[int, int]] = field(factory=list)
    # Whether the broker has opened the log since its disk last lost something. Before that, what it has to
    # take from others again is not there.
    opened: bool = True

    def position_of(self, offset: int) -> int:
        """The position of the row that holds `offset`, or of the last row."""
        return next((position for position, base in reversed(self.rows) if base <= offset), self.rows[-1][0])


@define
class Replicas:
    """The replicas of a trace."""

    # By partition and node, at the current event.
    logs: dict[Key, dict[int, ReplicaLog]] = field(factory=dict)
    # The log start offset of each replica, if it is not 0; records below it no longer exist.
    starts: dict[tuple[Key, int], int] = field(factory=dict)
    # At which position the disk of a node last lost something.
    lost: dict[int, int] = field(factory=dict)
    # At which each log was last opened.
    opened: dict[tuple[Key, int], int] = field(factory=dict)
    # The dumps.
    final: dict[Key, dict[int, FinalLog]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that change a log."""
        return {
            Name.APPENDED: self._appended,
            Name.TRUNCATED: self._truncated,
            Name.LOG_RECOVERED: self._recovered,
            Name.LOG_START: self._started_at,
            Name.FAULT_BEGAN: self._fault,
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

    def _fault(self, position: int, event: Event) -> None:
        if event.cause in LOSING:
            self.lost[event.node] = position

    def _recovered(self, position: int, event: Event) -> None:
        self.opened[(event.topic, event.partition), event.node] = position
        if event.log_start_offset >= 0:
            self._started_at(position, event)
        self.log(event).resize(event.offset)

    def _appended(self, position: int, event: Event) -> None:
        log = self.log(event)
        log.append(event.offset, event.leader_epoch, event.values)
        if event.end_offset > log.end_offset:
            log.resize(event.end_offset)  # compaction left a gap

    def _truncated(self, position: int, event: Event) -> None:
        if event.cause == "full":
            self.log(event).start_over(event.offset)
        else:
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
        opened = self.opened.get(((event.topic, event.partition), event.node), 0)
        final.opened = self.lost.get(event.node, -1) < opened


def replicas_of(events: Iterable[Event]) -> Replicas:
    """The replicas at the end of a trace with these events."""
    replicas = Replicas()
    handlers = replicas.handlers()
    for position, event in enumerate(events):
        if (handler := handlers.get(event.name)) is not None:
            handler(position, event)
    return replicas
