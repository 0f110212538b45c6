"""A segment: one file of batches with its indexes.

Owns the log file, where its batches begin and end, and the sparse indexes, which it rebuilds when they are
wrong. Must not know its neighbours, epochs or producers. Only the last segment of a log is appended to.
"""

from collections.abc import Callable, Iterable
from typing import Self

from attrs import define

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.batch.batch_file import Frame, checked_frames, chunks, frames
from fencepost.impl.log.batch.continuity import Continuity, DiscontinuityError
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.batch.record_batch import CorruptBatchError
from fencepost.impl.log.index.index_file import CorruptIndexError
from fencepost.impl.log.index.segment_indexes import LARGEST_RELATIVE_OFFSET, SegmentIndexes
from fencepost.impl.log.layout import CLEANED, LOG, segment_path
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segment.readable_segment import ReadableSegment

BatchSink = Callable[[Frame], None]
"""Receives a batch; its position is that in some buffer."""


@define(eq=False, kw_only=True)
class Segment(ReadableSegment):
    """A segment that can be opened, loaded, appended to and truncated."""

    @classmethod
    def open(
        cls, files: FileSystem, directory: str, base_offset: int, options: LogOptions, *, suffix: str = ""
    ) -> Self:
        """Open or create the files. Call `start_empty`, `load` or `recover` next. The name of a new file is
        not durable yet.

        Args:
            files: the file system.
            directory: the replica's directory.
            base_offset: the base offset of the segment.
            options: the options of the log.
            suffix: "" or the suffix of all files of the segment.

        Returns:
            the segment.
        """
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

    # ---- becoming readable

    def start_empty(self) -> None:
        """Be empty, whatever the old index files contain. The log file must be empty."""
        assert not self.size, (self.directory, self.base_offset, self.size)
        self._forget()
        self.transactions.reset()

    def load(self) -> None:
        """Trust the file up to its last index entry and look at the headers from there on. Raises
        CorruptBatchError if the file does not end with a whole batch."""
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

    def recover(self, expected_offset: int | None, see: BatchSink, *, check_crc: bool = True) -> bool:
        """Read every byte, pass each good batch to `see`, rebuild the indexes, and truncate the file before
        the first bad batch. Returns whether it was truncated.

        The aborted transactions are restored elsewhere, with the state of producers. expected_offset: the
        base offset of the first batch; each later batch begins where the one before ended. None if gaps are
        normal.
        """
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

    def must_roll(self, size: int, last_offset: int, now_ms: int) -> bool:
        """Whether batches of `size` bytes up to `last_offset` must go to a new segment: this one is full
        (bytes, index, offsets), or its first batch is `segment_ms` older than the new one."""
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
        """No batch will follow: the time index gets the largest timestamp as its last entry, and everything
        except the names is durable."""
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
        """Truncate before the batch that holds `offset` (or the first one after it), durably."""
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
        """Copy the batches into a new file that durably replaces the old one; a crash leaves one or the
        other."""
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
