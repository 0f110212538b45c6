"""A segment: one file of batches with its indexes.

Owns the log file, where its batches begin and end, and the sparse indexes, which it makes again whenever they cannot be believed. Must not know its
neighbours, epochs or producers. Only the last segment of a log is appended to.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Self

from attrs import define, field

from fencepost.impl.files import File, FileSystem
from fencepost.impl.log.batch_file import Frame, checked_frames, chunks, frames, whole_batches
from fencepost.impl.log.batch_header import BatchHeader, read_headers
from fencepost.impl.log.continuity import Continuity, DiscontinuityError
from fencepost.impl.log.index_file import CorruptIndexError
from fencepost.impl.log.layout import CLEANED, LOG, segment_path
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.offset_index import OffsetIndex
from fencepost.impl.log.record_batch import CorruptBatchError, Damage, Record, read_records
from fencepost.impl.log.segment_indexes import SegmentIndexes
from fencepost.impl.log.time_index import TimeIndex
from fencepost.impl.log.transaction_index import TransactionIndex

TAIL_BATCHES = 16
"""Batches at the end whose places are remembered: a follower that keeps up asks for one of them, without a look at the index."""

LARGEST_RELATIVE_OFFSET = (1 << 31) - 1
"""An index stores offsets relative to the base in 31 bits."""

BatchSink = Callable[[Frame], None]
"""Is shown a batch; its position is that in some buffer."""


@define(eq=False, kw_only=True)
class Segment:
    """size: bytes of whole batches; moves after an append has returned, so that nobody reads beyond it. next_offset: after the last batch; for a segment
    that is not the last, at most where the next one begins. dirty: appended or cut since the last sync. tail: the batches appended last, which is
    where followers read."""

    files: FileSystem
    directory: str
    base_offset: int
    options: LogOptions
    file: File
    indexes: SegmentIndexes
    size: int = 0
    next_offset: int = field(init=False)
    dirty: bool = False
    tail: deque[Frame] = field(factory=lambda: deque(maxlen=TAIL_BATCHES))

    def __attrs_post_init__(self) -> None:
        self.next_offset = self.base_offset

    @classmethod
    def open(
        cls, files: FileSystem, directory: str, base_offset: int, options: LogOptions, *, suffix: str = ""
    ) -> Self:
        """Open or create the files. Call `start_empty`, `load` or `recover` next. The name of a new file is not durable yet."""
        file = files.open(segment_path(directory, base_offset, LOG, suffix))
        return cls(
            files=files,
            directory=directory,
            base_offset=base_offset,
            options=options,
            file=file,
            indexes=SegmentIndexes.at(files, directory, base_offset, options, suffix),
            size=file.size(),
        )

    @property
    def offsets(self) -> OffsetIndex:
        """Its offset index."""
        return self.indexes.offsets

    @property
    def times(self) -> TimeIndex:
        """Its time index."""
        return self.indexes.times

    @property
    def transactions(self) -> TransactionIndex:
        """The aborted transactions whose markers it holds."""
        return self.indexes.transactions

    # ---- becoming readable

    def start_empty(self) -> None:
        """Hold nothing, whatever old index files say. The log file must be empty."""
        assert not self.size, (self.directory, self.base_offset, self.size)
        self._forget()
        self.transactions.reset()

    def _forget(self) -> None:
        self.indexes.forget()
        self.next_offset = self.base_offset

    def load(self) -> None:
        """Trust the file up to its last index entry and look at the headers from there on. Raises CorruptBatchError if the file does not end with a
        whole batch."""
        indexes = self.indexes
        try:
            offset, position = indexes.offsets.last()
            indexes.latest = indexes.times.last()
            self._believe(offset, position)
        except CorruptIndexError:
            self.rebuild_indexes()
            return
        self.next_offset, indexes.unindexed = self.base_offset, 0
        for frame in self._frames(position):
            self.next_offset = frame.last_offset + 1
            indexes.unindexed += frame.size
            if frame.max_timestamp_ms > indexes.latest[0]:
                indexes.latest = (frame.max_timestamp_ms, frame.last_offset)
        first = next(frames(self.file, 0, self.size), None)
        indexes.first_timestamp_ms = first.max_timestamp_ms if first else None

    def release(self) -> None:
        """Nothing will be appended: the indexes need not stay in memory."""
        self.indexes.release()

    def _believe(self, offset: int, position: int) -> Frame | None:
        """The batch at `position`, which an index entry gave for `offset`; an entry may lead too low, never too high."""
        if not position:
            return None
        try:
            frame = next(frames(self.file, position, self.size), None)
        except CorruptBatchError as error:
            raise self.offsets.corrupt("the position of a batch", str(error)) from None
        if frame is None or frame.base_offset > offset:
            raise self.offsets.corrupt(f"a batch at or below offset {offset} at byte {position}", str(frame))
        return frame

    def rebuild_indexes(self) -> None:
        """Make the sparse indexes again from the headers of the batches. Raises CorruptBatchError where there is none, with the indexes right up to there."""
        self._forget()
        for frame in self._frames(0):
            self._note(frame.position, frame)

    def _frames(self, start: int) -> Iterator[Frame]:
        """The batches from byte `start` on, as far as their offsets can stand here: a base offset is not under a checksum. Raises CorruptBatchError."""
        for frame in frames(self.file, start, self.size):
            self.refuse_displaced(frame, frame.position)
            yield frame

    def refuse_displaced(self, batch: Frame | BatchHeader, position: int) -> None:
        """Raises CorruptBatchError for a batch whose offsets no index of this segment could name."""
        if (
            batch.base_offset < self.base_offset
            or batch.last_offset - self.base_offset > LARGEST_RELATIVE_OFFSET
        ):
            raise CorruptBatchError(
                Damage.HEADER,
                position,
                expected=f"offsets from {self.base_offset} on, within 31 bits",
                seen=f"{batch.base_offset} to {batch.last_offset}",
            )

    def recover(self, expected_offset: int | None, see: BatchSink, *, check_crc: bool = True) -> bool:
        """Read every byte, hand each good batch to `see`, make the indexes again (the aborted transactions are left to whoever knows the producers), and
        cut the file before the first bad batch. Returns whether it was cut. expected_offset: what the first batch must begin with, and each later one
        where the one before ended; None where gaps are normal."""
        self._forget()
        self.transactions.reset()
        good, continuity = 0, Continuity(expected_offset, self.base_offset)
        try:
            for position, data in chunks(self.file, 0, self.size):
                for batch in checked_frames(data, check_crc=check_crc):
                    start = position + batch.position
                    continuity.follow(batch, start)
                    if batch.last_offset - self.base_offset > LARGEST_RELATIVE_OFFSET:
                        raise DiscontinuityError(start)
                    see(batch)
                    self._note(start, batch)
                    good = start + batch.size
        except CorruptBatchError:
            pass
        except DiscontinuityError as error:
            noted, good = good, error.position
            if good < noted:
                self.size = good
                self.rebuild_indexes()
        cut, self.dirty = good < self.file.size(), True
        if cut:
            self.file.truncate(good)
        self.size = good
        return cut

    # ---- writing

    def append(self, data: bytes, headers: Iterable[BatchHeader]) -> None:
        """Write whole batches at the end. headers: of `data`, in order."""
        start = self.file.append(data)
        assert start == self.size, (
            f"{self.directory}/{self.base_offset}: appended at {start}, not at {self.size}"
        )
        self.dirty = True
        for header in headers:
            position = start + header.position
            self._note(position, header)
            self.tail.append(
                Frame(
                    position,
                    header.size,
                    header.base_offset,
                    header.last_offset,
                    header.leader_epoch,
                    header.max_timestamp_ms,
                )
            )
        self.size = start + len(data)

    def _note(self, position: int, batch: BatchHeader | Frame) -> None:
        self.indexes.note(position, batch)
        self.next_offset = batch.last_offset + 1

    def must_roll(self, size: int, last_offset: int, now_ms: int) -> bool:
        """Whether batches of `size` bytes up to `last_offset` must go to a new segment: this one is full (bytes, index, offsets), or its first batch is
        `segment_ms` older than the new one."""
        if not self.size:
            return False
        options, first = self.options, self.indexes.first_timestamp_ms
        return (
            self.size + size > options.segment_bytes
            or self.indexes.is_full
            or last_offset - self.base_offset > LARGEST_RELATIVE_OFFSET
            or (first is not None and first >= 0 and now_ms - first > options.segment_ms)
        )

    def seal(self) -> None:
        """No batch will follow: the time index ends with the largest timestamp, and everything is durable but the names."""
        self.times.append(*self.indexes.latest)
        self.sync(indexes=True)

    def sync(self, *, indexes: bool) -> None:
        """Make batches (and the indexes) durable."""
        if self.dirty:
            self.file.sync()
            self.dirty = False
        if indexes:
            self.indexes.write(sync=True)

    def truncate(self, offset: int) -> None:
        """Cut before the batch that holds `offset` (or the first one after it), durably."""
        start = self.position_of(offset)
        if start is None:
            return
        self.size = start.position
        self.tail.clear()
        self.indexes.truncate(start.base_offset)
        self.file.truncate(self.size)
        self.dirty = True
        self.sync(indexes=False)
        self.load()

    def rewrite(self) -> None:
        """Copy the batches into a new file that takes the place of the old one, durably; a crash leaves one or the other."""
        temporary = segment_path(self.directory, self.base_offset, LOG, CLEANED)
        if self.files.exists(temporary):
            self.files.remove(temporary)
        copy = self.files.open(temporary)
        for _, data in chunks(self.file, 0, self.size):
            copy.append(data)
        copy.sync()
        self.files.rename(temporary, segment_path(self.directory, self.base_offset, LOG))
        self.files.sync_directory(self.directory)
        self.file.close()
        self.file, self.dirty = copy, False
        self.tail.clear()

    def close(self) -> None:
        """Release the file."""
        self.file.close()

    # ---- reading

    def position_of(self, offset: int) -> Frame | None:
        """The batch that holds `offset`, or the first one after it; None if the segment ends before."""
        if self.tail and offset >= self.tail[0].base_offset:
            return next((frame for frame in self.tail if frame.last_offset >= offset), None)
        for attempt in range(2):
            try:
                known, position = self.offsets.lookup(offset)
                self._believe(known, position)
                return next(
                    (
                        frame
                        for frame in frames(self.file, position, self.size)
                        if frame.last_offset >= offset
                    ),
                    None,
                )
            except (CorruptIndexError, CorruptBatchError):
                if attempt:
                    raise
                self.rebuild_indexes()
        raise AssertionError("unreachable")

    def read(self, offset: int, *, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from the one that holds `offset`, as many as end at or below `end_offset` and fit `max_bytes`, at least one."""
        start = self.position_of(offset)
        if start is None or start.last_offset >= end_offset:
            return b""
        length = min(max(max_bytes, start.size), self.size - start.position)
        data = self.file.read_at(start.position, length)
        whole = whole_batches(data, below=end_offset)
        return data if whole == len(data) else data[:whole]

    def find_timestamp(self, timestamp_ms: int, from_offset: int) -> Record | None:
        """The first record at or after `from_offset` that is as late as `timestamp_ms`; None if there is none here."""
        try:
            begin = max(self.times.lookup(timestamp_ms), from_offset)
        except CorruptIndexError:
            self.rebuild_indexes()
            begin = from_offset
        start = self.position_of(begin)
        if start is None:
            return None
        for frame in frames(self.file, start.position, self.size):
            if frame.max_timestamp_ms >= timestamp_ms:
                for record in self.records_of(frame):
                    if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                        return record
        return None

    def records_of(self, frame: Frame) -> tuple[Record, ...]:
        """The records of one batch. Raises CorruptBatchError."""
        data = self.file.read_at(frame.position, frame.size)
        return read_records(data, next(read_headers(data)))

    def batches(self, *, check_crc: bool = False) -> Iterator[tuple[BatchHeader, bytes]]:
        """Every batch with the buffer that holds it. Raises CorruptBatchError."""
        for _, data in chunks(self.file, 0, self.size):
            for header in read_headers(data, check_crc=check_crc):
                yield header, data

    @property
    def largest_timestamp_ms(self) -> int:
        """The latest timestamp in it; -1 if no record has one."""
        return self.indexes.latest[0]
