"""The log directory of a broker: all its logs, opened after a clean or unclean stop, and closed.

Owns the order of start and stop and the checkpoints over all partitions. Must not know roles. It corresponds
to Kafka's LogManager without threads.

    start   1. remove the marker
            2. read the checkpoints
            3. open every log, recovering it if there was no marker
    stop    1. close every log        2. write the checkpoints  3. create the marker
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from attrs import define, field

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.checkpoint.leader_epoch_cache import LeaderEpochCache
from fencepost.impl.log.checkpoint.log_checkpoints import (
    put_clean_shutdown_marker,
    read_offsets,
    take_clean_shutdown_marker,
    write_offsets,
)
from fencepost.impl.log.layout import CLEANER_OFFSETS, LOG_STARTS, RECOVERY_POINTS
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.readable_log import offline_error
from fencepost.impl.log.recovery import LogRecovery
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.errors import FencepostError


@define(eq=False)
class LogDirectory:
    """The log directory of a broker."""

    # The file system.
    files: FileSystem
    # The class of logs.
    log_type: type[SegmentedLog] = SegmentedLog
    # The class that recovers a log.
    recovery: type[LogRecovery] = LogRecovery
    # The class of leader epoch caches.
    epoch_cache: type[LeaderEpochCache] = LeaderEpochCache
    # Whether the last stop was clean.
    clean: bool = False
    # The open logs, by partition.
    logs: dict[TopicPartition, SegmentedLog] = field(factory=dict)
    # For each compacted log the offset from which on it is not clean.
    first_dirty: dict[TopicPartition, int] = field(factory=dict)
    # The recovery points in the checkpoint.
    recovery_points: dict[TopicPartition, int] = field(factory=dict)
    # The log start offsets in the checkpoint.
    log_starts: dict[TopicPartition, int] = field(factory=dict)
    # Each checkpoint by name, as it was last written or read.
    written: dict[str, dict[TopicPartition, int]] = field(factory=dict)

    @classmethod
    def start(
        cls,
        files: FileSystem,
        options: dict[TopicPartition, LogOptions],
        *,
        log_type: type[SegmentedLog] = SegmentedLog,
        recovery: type[LogRecovery] = LogRecovery,
    ) -> Self:
        """Open the logs of these partitions.

        Args:
            files: the file system.
            options: the options of each log.
            log_type: the class of logs.
            recovery: the class that recovers a log.

        Returns:
            the log directory, with all logs open.

        Raises:
            LogOfflineError: if the disk fails.
        """
        self = cls(files, log_type, recovery)
        self.begin()
        for key in sorted(options):
            self.open(key, options[key])
        self.loaded()
        return self

    def begin(self) -> None:
        """The steps before the first log is opened. Raises LogOfflineError."""
        with _disk_of("start"):
            self.take_marker_first()
            self.recovery_points = read_offsets(self.files, RECOVERY_POINTS)
            self.log_starts = read_offsets(self.files, LOG_STARTS)
            self.first_dirty = read_offsets(self.files, CLEANER_OFFSETS)
        self.written = {name: dict(offsets) for name, offsets in self.checkpoints().items()}

    def checkpoints(self) -> dict[str, dict[TopicPartition, int]]:
        """The intended content of each checkpoint, by name."""
        return {
            RECOVERY_POINTS: self.recovery_points,
            LOG_STARTS: self.log_starts,
            CLEANER_OFFSETS: self.first_dirty,
        }

    def take_marker_first(self) -> None:
        """Protection KAFKA-10471: remove the marker before the first log is touched, so that a crash after
        this point counts as one."""
        self.clean = take_clean_shutdown_marker(self.files)

    def loaded(self) -> None:
        """All logs are open."""

    def open(self, key: TopicPartition, options: LogOptions) -> SegmentedLog:
        """Open or create one log.

        Args:
            key: the partition.
            options: the options of the log.

        Returns:
            the open log.

        Raises:
            LogOfflineError: if the disk fails.
        """
        with _disk_of("open"):
            if not self.files.exists(str(key)):
                self.forget_former(key)
        log = self.log_type.open(
            self.files,
            str(key),
            options=options,
            recovery_point=self.recovery_points.get(key, 0),
            log_start_offset=self.log_starts.get(key, 0),
            clean=self.clean,
            epoch_cache=self.epoch_cache,
            recovery=self.recovery,
        )
        self.logs[key] = log
        self.lower_checkpoints(key, log.log_end_offset)
        return log

    def forget_former(self, key: TopicPartition) -> None:
        """A new replica must not inherit from a deleted one of the same name: its old checkpoint entries are
        removed before its directory exists."""
        for name, offsets in self.checkpoints().items():
            offsets.pop(key, None)
            if key in self.written.get(name, {}):
                self._write(name)

    def may_have_gaps(self, key: TopicPartition) -> bool:
        """Protection Z-GAPS: a log that was ever compacted, or may be according to `expect_gaps`, is opened
        with its gaps, whatever its cleanup.policy is by then."""
        return key in self.first_dirty

    def expect_gaps(self, key: TopicPartition) -> None:
        """An operator enables compaction for a topic that is not compacted by its plan. The cleaner's
        checkpoint records that durably before there is a gap. At the next start the log is opened before the
        configuration is known, and a gap would count as damage."""
        if key not in self.first_dirty:
            self.first_dirty[key] = 0
            with _disk_of("checkpoint"):
                self._write(CLEANER_OFFSETS)

    def forget(self, key: TopicPartition) -> None:
        """A replica is removed: release its files, and remove it from the checkpoints. The caller removes its
        directory."""
        self.logs.pop(key).abandon()
        for offsets in self.checkpoints().values():
            offsets.pop(key, None)

    def checkpoint(self) -> None:
        """Write the checkpoints. Offsets of partitions that are not open stay as they were (KAFKA-1647).

        Raises LogOfflineError: if the disk fails, no log of the directory may continue (KIP-112); the caller
        must take care of that.
        """
        points = {key: log.recovery_point for key, log in self.logs.items()}
        starts = {key: log.log_start_offset for key, log in self.logs.items()}
        self.recovery_points = {**self.recovery_points, **points}
        self.log_starts = {**self.log_starts, **starts}
        with _disk_of("checkpoint"):
            for name in self.checkpoints():
                self._write(name)

    def _write(self, name: str) -> None:
        """Replace a checkpoint that changed."""
        offsets = self.checkpoints()[name]
        if offsets != self.written.get(name):
            write_offsets(self.files, name, offsets)
            self.written[name] = dict(offsets)

    def truncate_to(self, key: TopicPartition, offset: int) -> None:
        """Truncate the log of the partition `key` to `offset`."""
        self.lower_checkpoints(key, self.logs[key].cut_at(offset))
        self.logs[key].truncate_to(offset)

    def truncate_fully_and_start_at(self, key: TopicPartition, offset: int) -> None:
        """Remove all records of the log of the partition `key` and continue at `offset`."""
        self.lower_checkpoints(key, offset)
        self.logs[key].truncate_fully_and_start_at(offset)

    def lower_checkpoints(self, key: TopicPartition, end_offset: int) -> None:
        """Before a log is truncated, and after recovery truncated it, lower its checkpoints: they must not
        say that future records at these offsets are durable, deleted or clean.

        Otherwise a crash would bring that back. Batches that no sync reached would not be rewritten, a log
        below its start would count as one that lost its end, and superseded records would stay (Kafka:
        LogManager.truncateTo, maybeTruncateCheckpoint).

        Args:
            key: the partition.
            end_offset: the new log end offset.
        """
        for name, offsets in self.checkpoints().items():
            if end_offset < offsets.get(key, 0):
                offsets[key] = end_offset
                with self.logs[key].in_service("checkpoint"):
                    self._write(name)

    def close(self) -> None:
        """Stop cleanly. If a log is offline or fails, there is no marker, and the error is raised after the
        others are closed. Raises LogOfflineError."""
        failed: Exception | None = None
        for _, log in sorted(self.logs.items()):
            try:
                log.close()
            except FencepostError as error:
                log.abandon()
                failed = error
        self.checkpoint()
        if failed is not None:
            raise failed
        with _disk_of("stop"):
            put_clean_shutdown_marker(self.files)

    def abandon(self) -> None:
        """Release all files as they are, as in a crash."""
        for log in self.logs.values():
            log.abandon()


@contextmanager
def _disk_of(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise offline_error("the log directory", what, error) from error
