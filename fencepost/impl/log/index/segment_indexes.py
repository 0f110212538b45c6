"""The indexes of a segment together: offset, time and transaction index.

Owns when a new entry is due and the largest timestamp. Must not know the log file.
"""

from typing import Self

from attrs import define, field

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.batch.batch_file import Frame
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.index.offset_index import OffsetIndex
from fencepost.impl.log.index.time_index import NO_TIMESTAMP, TimeIndex
from fencepost.impl.log.index.transaction_index import TransactionIndex
from fencepost.impl.log.layout import INDEX, TIME_INDEX, TRANSACTION_INDEX, segment_path
from fencepost.impl.log.log_options import LogOptions

LARGEST_RELATIVE_OFFSET = (1 << 31) - 1
"""An index stores offsets relative to the base in 31 bits."""


@define(eq=False, kw_only=True)
class SegmentIndexes:
    """The indexes of one segment."""

    # The base offset of the segment.
    base_offset: int
    # Bytes between two entries.
    interval_bytes: int
    # The offset index.
    offsets: OffsetIndex
    # The time index.
    times: TimeIndex
    # The transaction index.
    transactions: TransactionIndex
    # (largest timestamp, last offset of its batch).
    latest: tuple[int, int] = field(init=False)
    # The timestamp of the first batch; None while there is none.
    first_timestamp_ms: int | None = None
    # Bytes since the last entry.
    unindexed: int = 0

    def __attrs_post_init__(self) -> None:
        self.latest = (NO_TIMESTAMP, self.base_offset)

    @classmethod
    def at(
        cls, files: FileSystem, directory: str, base_offset: int, options: LogOptions, suffix: str
    ) -> Self:
        """The indexes of a segment. Nothing is read or created yet.

        Args:
            files: the file system.
            directory: the replica's directory.
            base_offset: the base offset of the segment.
            options: the options of the log.
            suffix: "" or the suffix of all files of the segment.

        Returns:
            the indexes.
        """

        def path(kind: str) -> str:
            return segment_path(directory, base_offset, kind, suffix)

        largest = options.segment_index_bytes
        return cls(
            base_offset=base_offset,
            interval_bytes=options.index_interval_bytes,
            offsets=OffsetIndex(files=files, path=path(INDEX), base_offset=base_offset, max_bytes=largest),
            times=TimeIndex(files=files, path=path(TIME_INDEX), base_offset=base_offset, max_bytes=largest),
            transactions=TransactionIndex(
                files=files, path=path(TRANSACTION_INDEX), base_offset=base_offset, max_bytes=largest
            ),
        )

    def forget(self) -> None:
        """Become empty, without reading the files. The aborted transactions stay, because the log alone does
        not contain them."""
        self.offsets.reset()
        self.times.reset()
        self.latest = (NO_TIMESTAMP, self.base_offset)
        self.first_timestamp_ms, self.unindexed = None, 0

    def note(self, position: int, batch: BatchHeader | Frame) -> None:
        """Note a batch at `position`, after all earlier ones. Both indexes get entries at the same
        batches."""
        last_offset, max_timestamp = batch.last_offset, batch.max_timestamp_ms
        if max_timestamp > self.latest[0]:
            self.latest = (max_timestamp, last_offset)
        if self.first_timestamp_ms is None:
            self.first_timestamp_ms = max_timestamp
        if self.unindexed > self.interval_bytes and not self.offsets.is_full:
            self.offsets.append(last_offset, position)
            self.times.append(*self.latest)
            self.unindexed = 0
        self.unindexed += batch.size

    @property
    def is_full(self) -> bool:
        """Whether the segment must end because an index is full."""
        return self.offsets.is_full or self.times.is_full

    def truncate(self, offset: int) -> None:
        """Remove entries with an offset of `offset` or more, from the files, too: other batches will be at
        these offsets."""
        self.offsets.truncate(offset)
        self.times.truncate(offset)
        self.transactions.truncate(offset)
        self.write(sync=False)

    def write(self, *, sync: bool) -> None:
        """Make the files equal to the memory."""
        self.offsets.write(sync=sync)
        self.times.write(sync=sync)
        self.transactions.write(sync=sync)

    def release(self) -> None:
        """Nothing will be appended: release the memory."""
        self.offsets.release()
        self.times.release()
        self.transactions.release()
