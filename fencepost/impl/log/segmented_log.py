"""The log of one replica in segments of Kafka's format.

Owns the order in which file, offsets, epochs and producers change. Must not know leaders, followers, high
watermarks or clocks: the caller passes epoch and time.

    log_start_offset <= recovery_point <= log_end_offset
    |---- deleted ----|------ durable ------|---- may be lost by a power loss ----|

1. Check producers.
2. Roll if the segment is full.
3. Checkpoint a new epoch.
4. Write.
5. Move the end.
6. Update producers.
7. Sync if due.

A failure before 5 leaves the log end where it was. After any error of the file system the log is offline. The
content of the disk is then unknown, so no promise is made until the log is opened again and recovered.
"""

from typing import Self

from attrs import define, frozen

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch
from fencepost.impl.log.batch.header import BatchHeader, read_header, read_headers
from fencepost.impl.log.batch.record_batch import CorruptBatchError, Damage, with_leader_fields
from fencepost.impl.log.batch.stamping import with_append_time
from fencepost.impl.log.checkpoint.epoch_recovery import restore_epochs
from fencepost.impl.log.checkpoint.leader_epoch_cache import LeaderEpochCache
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.producer.producer_state import ProducerState
from fencepost.impl.log.producer.snapshot_files import (
    load_producers,
    marker_of,
    note_aborted,
    remove_snapshots,
    secure_snapshot,
    settle_aborted,
    write_snapshot,
)
from fencepost.impl.log.readable_log import LogOfflineError, ReadableLog, offline_error
from fencepost.impl.log.recovery import LogRecovery, create_segment, remove_all, remove_segment_files
from fencepost.impl.log.segment.segment import Segment
from fencepost.impl.log.segment.segments import SegmentList
from fencepost.traces.errors import FencepostError

__all__ = ["CLOSED", "Appended", "LogOfflineError", "SegmentedLog", "UnexpectedOffsetError"]

CLOSED = "closed"
"""The reason for being out of service after a complete close."""


class UnexpectedOffsetError(FencepostError):
    """The batches of a leader do not continue this log."""


@frozen(kw_only=True)
class Appended:
    """The place of a produced batch."""

    base_offset: int
    last_offset: int
    # Of the batch in the log (-1: no longer known).
    leader_epoch: int
    # It was there before and nothing was written.
    duplicate: bool = False


@define(eq=False, kw_only=True)
class SegmentedLog(ReadableLog):
    """A replica's log. It has one writer at a time: a leader or a follower."""

    # ---- opening and closing

    @classmethod
    def open(
        cls,
        files: FileSystem,
        directory: str,
        *,
        options: LogOptions,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean: bool = False,
        epoch_cache: type[LeaderEpochCache] = LeaderEpochCache,
        producer_state: type[ProducerState] = ProducerState,
        recovery: type[LogRecovery] = LogRecovery,
    ) -> Self:
        """Open or create a log; recover it unless it was closed completely.

        Args:
            files: the file system.
            directory: the replica's directory.
            options: the options of the log.
            recovery_point: everything below it was synced once.
            log_start_offset: the first offset that may be read.
            clean: whether the log was closed completely.
            epoch_cache: the class of leader epoch caches.
            producer_state: the class of the producer state.
            recovery: the class that recovers a log.

        Returns:
            the open log.

        Raises:
            LogOfflineError: if the disk fails.
        """
        try:
            if not files.exists(directory):
                files.make_directory(directory)
                files.sync_directory("")
            loaded = recovery(files, directory, options, recovery_point, log_start_offset, clean).load()
            segments = SegmentList(loaded.segments)
            end = segments.active.next_offset
            if end < log_start_offset:
                remove_all(files, directory, segments.all)
                segments = SegmentList([create_segment(files, directory, log_start_offset, options)])
                end = log_start_offset
            epochs = epoch_cache(files, directory)
            epochs.load()
            start = max(log_start_offset, segments.first.base_offset)
            restore_epochs(
                epochs, segments.all, loaded.recovered_from, loaded.epochs, start, end, gaps=options.has_gaps
            )
            cls.remove_snapshots_beyond(files, directory, end)
            producers = load_producers(
                files, directory, segments.all, end, producer_state, recovered_from=loaded.recovered_from
            )
            secure_snapshot(files, directory, segments.all, producer_state)
            if remove_snapshots(files, directory, below=segments.first.base_offset):
                files.sync_directory(directory)  # a disk failed while segments were removed
            if loaded.recovered_from is not None:
                settle_aborted(files, directory, segments.from_offset(loaded.recovered_from))
        except OSError as error:
            raise offline_error(directory, "open", error) from error
        return cls(
            files=files,
            directory=directory,
            options=options,
            segments=segments,
            epochs=epochs,
            producers=producers,
            log_start_offset=start,
            log_end_offset=end,
            recovery_point=end,
        )

    def configure(self, options: LogOptions) -> None:
        """Use other options from now on. Existing segments stay as they are, and so does the size of the
        active segment's index."""
        self.options = options
        for segment in self.segments.all:
            segment.options = options

    def close(self) -> None:
        """Make everything durable, including producers, and release the files. Afterwards the log may be
        opened as clean."""
        with self.in_service("close"):
            self.flush()
            self.segments.active.seal()
            self.take_snapshot()
            self.files.sync_directory(self.directory)
        self.offline = CLOSED
        self.abandon()

    def abandon(self) -> None:
        """Release the files as they are."""
        self.offline = self.offline or "abandoned"
        for segment in self.segments.all:
            segment.close()

    # ---- writing

    def append_as_leader(self, data: bytes, leader_epoch: int, *, now_ms: int = 0) -> Appended:
        """Append one produced batch at the log end offset.

        Args:
            data: the batch; its offsets count from 0.
            leader_epoch: the epoch of this leader.
            now_ms: the current time in milliseconds.

        Returns:
            its place in the log.

        Raises:
            CorruptBatchError, OutOfOrderSequenceError, InvalidProducerEpochError: nothing was written.
            LogOfflineError: it is not known whether it was written.
        """
        base_offset = self.log_end_offset
        stamped = with_leader_fields(data, base_offset=base_offset, leader_epoch=leader_epoch)
        header = self._produced(stamped)
        with self.in_service("append"):
            known = self.producers.check(header)
            if known is not None:
                return Appended(
                    base_offset=known.first_offset,
                    last_offset=known.last_offset,
                    leader_epoch=self.epochs.epoch_of(known.first_offset),
                    duplicate=True,
                )
            if self.options.log_append_time:
                stamped, header = with_append_time(stamped, header, now_ms)
            self._append(stamped, [header])
        return Appended(base_offset=base_offset, last_offset=header.last_offset, leader_epoch=leader_epoch)

    def append_marker(
        self,
        marker: EndTransaction,
        producer_id: int,
        producer_epoch: int,
        leader_epoch: int,
        *,
        now_ms: int,
        version: int = 1,
    ) -> Appended:
        """Append the end of a transaction.

        Args:
            marker: commit or abort, and the coordinator's epoch.
            producer_id: of the transaction.
            producer_epoch: of the transaction.
            leader_epoch: of the leader that appends.
            now_ms: the timestamp.
            version: of the transaction (KIP-890).

        Raises:
            InvalidProducerEpochError: nothing was written.
            CoordinatorFencedError: nothing was written.
            LogOfflineError: perhaps something was written.
        """
        base_offset = self.log_end_offset
        data = end_transaction_batch(
            marker,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            timestamp_ms=now_ms,
        )
        with self.in_service("append"):
            self.producers.check_marker(producer_id, producer_epoch, marker.coordinator_epoch, version)
            self._append(data, [read_header(data, check_crc=False)])
        return Appended(base_offset=base_offset, last_offset=base_offset, leader_epoch=leader_epoch)

    def _produced(self, data: bytes) -> BatchHeader:
        header = read_header(data)
        if header.size != len(data) or header.count != header.last_offset_delta + 1:
            seen = (
                "a batch with gaps" if header.size == len(data) else f"{len(data) - header.size} bytes more"
            )
            raise CorruptBatchError(Damage.HEADER, 0, expected="one batch without gaps", seen=seen)
        return header

    def append_as_follower(self, data: bytes) -> list[BatchHeader]:
        """Append the unchanged batches of a leader; returns their headers. Raises UnexpectedOffsetError if
        they do not begin at the log end offset, CorruptBatchError, LogOfflineError."""
        headers = list(read_headers(data))
        with self.in_service("append"):
            if headers and self.log_start_inside_batch(headers[0]):
                self.truncate_fully_and_start_at(
                    headers[0].base_offset, log_start_offset=self.log_start_offset
                )
            expected = self.log_end_offset
            for header in headers:
                if header.base_offset != expected and not (
                    self.options.has_gaps and header.base_offset > expected
                ):
                    raise UnexpectedOffsetError(
                        expected=f"a batch at the log end offset {expected}",
                        seen=f"one at {header.base_offset}",
                        where=f"append to {self.directory}",
                    )
                expected = header.next_offset
            self.trust_the_leader(headers)
            if headers:
                self._append(data, headers)
        return headers

    def log_start_inside_batch(self, header: BatchHeader) -> bool:
        """Protection KAFKA-6975: the leader's log start may be inside a batch, and batches are sent whole. So
        the first batch of an empty log may begin below its start."""
        empty = self.log_end_offset == self.log_start_offset
        return empty and header.base_offset < self.log_end_offset <= header.last_offset

    def _append(self, data: bytes, headers: list[BatchHeader]) -> None:
        last = headers[-1]
        if self.segments.active.must_roll(len(data), last.last_offset, last.max_timestamp_ms):
            self.roll()
        for header in headers:
            if header.leader_epoch > self.epochs.latest_epoch():
                self.epochs.assign(header.leader_epoch, header.base_offset)
        self.segments.active.append(data, headers)
        self.advance_log_end(last.next_offset)
        self.update_producers(data, headers)
        if (
            self.options.flush_messages
            and self.log_end_offset - self.recovery_point >= self.options.flush_messages
        ):
            self.flush()

    def update_producers(self, data: bytes, headers: list[BatchHeader]) -> None:
        """Protection KAFKA-6683: the state of producers changes after a batch is in the log, never before.

        Args:
            data: the batches that were appended.
            headers: their headers, in order.
        """
        for header in headers:
            if header.is_control:
                self.believe_aborted(self.segments.active)
            marker = marker_of(header, data) if header.is_control else None
            note_aborted(self.segments.active, self.producers, self.producers.update(header, marker))

    def advance_log_end(self, offset: int) -> None:
        """Protection KAFKA-7866: the end moves right after the write, before anything else can fail.
        Otherwise the next append would use the same offsets."""
        self.log_end_offset = offset

    def trust_the_leader(self, headers: list[BatchHeader]) -> None:
        """Protection KAFKA-6003: a follower appends what its leader has. The leader checked the sequence
        numbers, against batches that this log may never have had."""

    def take_snapshot(self) -> None:
        """Protection KAFKA-5249: a snapshot holds the producers as of the offset in its name. Its name is
        durable with the next sync of the directory."""
        write_snapshot(self.files, self.directory, self.log_end_offset, self.producers)

    @classmethod
    def remove_snapshots_beyond(cls, files: FileSystem, directory: str, end_offset: int) -> None:
        """Protection KAFKA-5829: remove the snapshots of the truncated part, and no others. A snapshot below
        the end may have producers with deleted batches.

        Args:
            files: the file system.
            directory: the replica's directory.
            end_offset: the new log end offset.
        """
        if remove_snapshots(files, directory, above=end_offset):
            files.sync_directory(directory)

    def flush(self) -> None:
        """Make everything appended so far durable."""
        with self.in_service("flush"):
            self.segments.active.sync(indexes=False)
            self.recovery_point = self.log_end_offset

    def roll(self) -> None:
        """Begin a new segment at the log end offset. The old one is durable before the new one has a name, so
        no crash leaves a hole."""
        old = self.segments.active
        if not old.size:
            return
        with self.in_service("roll"):
            old.seal()
            self.take_snapshot()
            self.segments.add(self.begin_segment(self.log_end_offset))
            old.release()
            self.recovery_point = self.log_end_offset

    def begin_segment(self, offset: int) -> Segment:
        """Protection KAFKA-3968: a new segment has a durable name before anything is appended to it."""
        return create_segment(self.files, self.directory, offset, self.options)

    # ---- cutting

    def truncate_to(self, offset: int) -> None:
        """Truncate the log to `offset`, or to the start of the batch that holds it. Never extends it."""
        with self.in_service("truncate"):
            if offset < self.segments.first.base_offset:
                self.truncate_fully_and_start_at(offset)
            elif offset < self.log_end_offset:
                self._cut(offset)
            self.cut_epochs(offset)

    def cut_epochs(self, offset: int) -> None:
        """Protection KAFKA-10706: epochs that begin at or after the end are removed even if no record is
        truncated (an elected leader that wrote nothing left one)."""
        self.epochs.truncate_from_end(self.log_end_offset)

    def cut_at(self, offset: int) -> int:
        """The end of the log after a truncation to `offset`: batches are truncated as a whole."""
        if offset >= self.log_end_offset:
            return self.log_end_offset
        with self.in_service("look up an offset"):
            inside = next(self.segments.from_offset(offset)).position_of(offset)
        return inside.base_offset if inside and inside.base_offset < offset else offset

    def _cut(self, offset: int) -> None:
        end = self.cut_at(offset)
        while len(self.segments) > 1 and self.segments.active.base_offset >= offset:
            self._remove(self.segments.active)
        remove_snapshots(self.files, self.directory, above=end)
        self.files.sync_directory(self.directory)  # before anything else gets these offsets
        self.believe_aborted(self.segments.active)  # a cut looks at its entries
        self.segments.active.truncate(offset)
        self.log_end_offset = end
        self.recovery_point = min(self.recovery_point, end)
        self.log_start_offset = min(self.log_start_offset, end)
        self.producers = load_producers(
            self.files, self.directory, self.segments.all, end, type(self.producers)
        )

    def truncate_fully_and_start_at(self, offset: int, *, log_start_offset: int | None = None) -> None:
        """Remove all records and continue at `offset`. log_start_offset: given if records may be read only
        from a later offset on."""
        with self.in_service("truncate"):
            remove_all(self.files, self.directory, self.segments.all)
            remove_snapshots(self.files, self.directory, above=-1)
            self.segments = SegmentList([self.begin_segment(offset)])
            self.epochs.rebuild([])
            self.producers = type(self.producers)(end_offset=offset)
            self.log_end_offset = self.recovery_point = offset
            self.log_start_offset = offset if log_start_offset is None else log_start_offset

    def _remove(self, segment: Segment) -> None:
        segment.close()
        self.segments.remove(segment)
        remove_segment_files(self.files, self.directory, segment.base_offset)

    def advance_log_start_offset(self, offset: int) -> None:
        """Records below `offset` may no longer be read (DeleteRecords, retention). The next retention removes
        their segments."""
        assert offset <= self.log_end_offset, (offset, self.log_end_offset)
        with self.in_service("delete records"):
            if offset > self.log_start_offset:
                self.log_start_offset = offset
                self.epochs.truncate_from_start(offset)
                self.keep_producers()

    def keep_producers(self) -> None:
        """Protection KAFKA-7298 (KIP-360): a producer is kept until it expires, even after its records were
        deleted. Otherwise its retry would be written again."""

    def remove_oldest(self, count: int) -> None:
        """Remove the `count` oldest segments, the oldest first; the last one stays."""
        assert 0 <= count < len(self.segments), (count, len(self.segments))
        with self.in_service("delete segments"):
            for _ in range(count):
                self._remove(self.segments.first)
            first = self.segments.first.base_offset
            remove_snapshots(self.files, self.directory, below=first)
            self.files.sync_directory(self.directory)
        self.advance_log_start_offset(first)
