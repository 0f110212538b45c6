"""The read side of a replica's log: whether it is in service, its offsets, batches, times and transactions.

Owns what a reader may use. Must not know how the log grows (segmented_log.py), or high watermarks: the caller
passes the bound.
"""

from collections.abc import Iterator
from types import TracebackType

from attrs import define, field

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.batch.record_batch import Record
from fencepost.impl.log.checkpoint.leader_epoch_cache import LeaderEpochCache
from fencepost.impl.log.index.index_file import CorruptIndexError
from fencepost.impl.log.index.transaction_index import AbortedTransaction, aborted_between
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.producer.producer_state import ProducerState
from fencepost.impl.log.producer.snapshot_files import find_aborted_again
from fencepost.impl.log.segment.segment import Segment
from fencepost.impl.log.segment.segments import SegmentList
from fencepost.traces.errors import FencepostError


class LogOfflineError(FencepostError):
    """KAFKA_STORAGE_ERROR: a file call failed. The log is out of service until it is opened again."""


@define(eq=False, kw_only=True)
class ReadableLog:
    """The log of one replica, for reading. log_start_offset <= recovery_point <= log_end_offset."""

    # The file system.
    files: FileSystem
    # The replica's directory.
    directory: str
    # The options of the log.
    options: LogOptions
    # The segments; never empty. The last one is appended to.
    segments: SegmentList
    # The start offset of each leader epoch.
    epochs: LeaderEpochCache
    # The state of producers at the log end.
    producers: ProducerState
    # The first offset that may be read. It never decreases, except in a full truncation.
    log_start_offset: int = 0
    # The offset of the next record.
    log_end_offset: int = 0
    # Everything below it is synced.
    recovery_point: int = 0
    # Why the log is out of service; "" while it is in service.
    offline: str = field(default="")

    # ---- service

    def in_service(self, what: str) -> "InService":
        """Refuses work while the log is offline, and takes it offline if the file system fails inside."""
        if self.offline:
            raise offline_error(self.directory, what, self.offline)
        return InService(self, what)

    # ---- reading

    def read(self, offset: int, *, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from the one that holds `offset`. They end at or below `end_offset`, fit `max_bytes`
        (at least one is returned) and are in one segment. A compacted log returns the next batch that
        exists."""
        if end_offset > self.log_end_offset:
            end_offset = self.log_end_offset
        if offset >= end_offset and not self.offline:
            return b""
        with self.in_service("read"):
            for segment in self.segments.from_offset(offset):
                if offset >= end_offset or segment.base_offset >= end_offset:
                    break
                data = self.bounded_read(segment, offset, max_bytes=max_bytes, end_offset=end_offset)
                if data:
                    return data
        return b""

    def bounded_read(self, segment: Segment, offset: int, *, max_bytes: int, end_offset: int) -> bytes:
        """Protection KAFKA-2477: the read is bounded by the ends that log and segment had when it began, not
        by the current size of the file."""
        return segment.read(offset, max_bytes=max_bytes, end_offset=end_offset)

    def find_timestamp(self, timestamp_ms: int, *, end_offset: int) -> Record | None:
        """The first record below `end_offset` with a timestamp of at least `timestamp_ms` (ListOffsets). The
        bound excludes unfinished transactions and uncommitted records (KAFKA-5522)."""
        with self.in_service("look up a timestamp"):
            for segment in self.segments.from_offset(self.log_start_offset):
                if segment.largest_timestamp_ms >= timestamp_ms:
                    found = segment.find_timestamp(timestamp_ms, self.log_start_offset)
                    if found is not None:
                        return found if found.offset < end_offset else None
        return None

    def batches(self, *, check_crc: bool = False) -> Iterator[tuple[BatchHeader, bytes]]:
        """Every batch, with the buffer that holds it. Raises CorruptBatchError, LogOfflineError."""
        with self.in_service("read"):
            for segment in self.segments.all:
                yield from segment.batches(check_crc=check_crc)

    # ---- transactions

    def last_stable_offset(self, high_watermark: int) -> int:
        """The end for a reader of committed records: the first record of an undecided transaction, or the
        high watermark."""
        unstable = self.producers.first_unstable_offset(high_watermark)
        return (
            high_watermark if unstable is None else min(max(unstable, self.log_start_offset), high_watermark)
        )

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The transactions to skip for a reader of the committed records from `offset` to below `end_offset`,
        which is at most the last stable offset."""
        with self.in_service("look up transactions"):
            for segment in self.segments.from_offset(offset):
                self.believe_aborted(segment)
            indexes = (segment.transactions for segment in self.segments.from_offset(offset))
            return aborted_between(indexes, offset, end_offset)

    def believe_aborted(self, segment: Segment) -> None:
        """Check a segment's transaction index, and rebuild it if it is invalid."""
        try:
            len(segment.transactions)
        except CorruptIndexError:
            find_aborted_again(self.files, self.directory, self.segments.all, segment, type(self.producers))


def offline_error(directory: str, what: str, why: object) -> LogOfflineError:
    """The error to raise.

    Args:
        directory: the replica's directory.
        what: the work that failed.
        why: the cause.

    Returns:
        the error.
    """
    return LogOfflineError(
        expected="a log in service",
        seen=str(why),
        where=f"{what} {directory}",
        hint="open it anew, which recovers it",
    )


@define
class InService:
    """A context for one piece of work of a log in service. It is a class, because every read and append
    enters one."""

    log: ReadableLog
    # The work, for the error.
    what: str

    def __enter__(self) -> None:
        """The log must be in service."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """An error of the file system takes the log out of service."""
        if isinstance(error, OSError):
            self.log.offline = f"{self.what}: {error}"
            raise offline_error(self.log.directory, self.what, error) from error
