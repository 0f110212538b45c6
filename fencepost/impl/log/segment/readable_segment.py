"""The read side of a segment: the file of batches, and its indexes, which are rebuilt when they are wrong.

Owns where a batch begins, and what a reader gets. Must not know how a segment grows (segment.py), or its
neighbours.
"""

from collections import deque
from collections.abc import Iterator

from attrs import define, field

from fencepost.impl.core.file_system import File, FileSystem
from fencepost.impl.log.batch.batch_file import Frame, chunks, frames, is_batch_to, whole_batches
from fencepost.impl.log.batch.header import HEADER_SIZE, BatchHeader, read_headers
from fencepost.impl.log.batch.record_batch import CorruptBatchError, Damage, Record, read_records
from fencepost.impl.log.index.index_file import CorruptIndexError
from fencepost.impl.log.index.offset_index import OffsetIndex
from fencepost.impl.log.index.segment_indexes import LARGEST_RELATIVE_OFFSET, SegmentIndexes
from fencepost.impl.log.index.time_index import TimeIndex
from fencepost.impl.log.index.transaction_index import TransactionIndex
from fencepost.impl.log.log_options import LogOptions

TAIL_BATCHES = 16
"""Batches at the end with cached positions: a follower that keeps up asks for one of them and needs no index
lookup."""


@define(eq=False, kw_only=True)
class ReadableSegment:
    """A segment, for reading."""

    # The file system.
    files: FileSystem
    # The replica's directory.
    directory: str
    # The base offset; it names the files.
    base_offset: int
    # The options of the log.
    options: LogOptions
    # The log file.
    file: File
    # The indexes.
    indexes: SegmentIndexes
    # Bytes of whole batches. It moves after an append has returned, so that no reader reads beyond it.
    size: int = 0
    # The offset after the last batch; for a segment that is not the last, at most the base of the next one.
    next_offset: int = field(init=False)
    # Appended to or truncated since the last sync.
    dirty: bool = False
    # The last appended batches, which is where followers read.
    tail: deque[Frame] = field(factory=lambda: deque(maxlen=TAIL_BATCHES))

    def __attrs_post_init__(self) -> None:
        self.next_offset = self.base_offset

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
        """The aborted transactions with a marker in it."""
        return self.indexes.transactions

    # ---- indexes

    def _forget(self) -> None:
        self.indexes.forget()
        self.next_offset = self.base_offset

    def _believe(self, offset: int, position: int) -> Frame | None:
        """The batch at `position`, which an index entry gave for `offset`. An entry may be too low, never too
        high."""
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
        """Rebuild the sparse indexes from the headers of the batches. Raises CorruptBatchError at a position
        without a batch; the indexes are right up to there."""
        self._forget()
        for frame in self._frames(0):
            self._note(frame.position, frame)

    def _frames(self, start: int) -> Iterator[Frame]:
        """The batches from byte `start` on with possible offsets (the checksum does not cover a base offset).
        Raises CorruptBatchError."""
        for frame in frames(self.file, start, self.size):
            self.refuse_displaced(frame, frame.position)
            yield frame

    def refuse_displaced(self, batch: Frame | BatchHeader, position: int) -> None:
        """Raises CorruptBatchError for a batch with offsets that no index of this segment can represent."""
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

    def _note(self, position: int, batch: BatchHeader | Frame) -> None:
        self.indexes.note(position, batch)
        self.next_offset = batch.last_offset + 1

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
        """Whole batches from the one that holds `offset`. They end at or below `end_offset` and fit
        `max_bytes`; at least one is returned."""
        start = self.position_of(offset)
        if start is None or start.last_offset >= end_offset:
            return b""
        length = min(max(max_bytes, start.size), self.size - start.position)
        data = self.file.read_at(start.position, length)
        if end_offset >= self.next_offset and start.position + len(data) == self.size:
            return data
        whole = whole_batches(data, below=end_offset, start=self._surely_whole(data, start, end_offset))
        return data if whole == len(data) else data[:whole]

    def _surely_whole(self, data: bytes, start: Frame, end_offset: int) -> int:
        """The part of `data`, read from `start` on, that need not be walked: up to the last index entry
        inside of it."""
        limit, relative = start.position + len(data) - HEADER_SIZE, end_offset - self.base_offset
        try:
            count = self.offsets.count_while(lambda entry: entry[0] < relative and entry[1] <= limit)
            offset, position = self.offsets.entry(count - 1) if count else (0, 0)
        except CorruptIndexError:
            return 0
        known = position - start.position
        return known if known > 0 and is_batch_to(data, known, self.base_offset + offset) else 0

    def find_timestamp(self, timestamp_ms: int, from_offset: int) -> Record | None:
        """The first record at or after `from_offset` with a timestamp of at least `timestamp_ms`; None if
        there is none here."""
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
