"""The indexes of a segment, kept together: offset, time and transaction index.

Owns when an entry is due and what the largest timestamp is. Must not know the log file.
"""

from typing import Self

from attrs import define, field

from fencepost.impl.core.files import FileSystem
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
    """latest: (largest timestamp, last offset of its batch). first_timestamp_ms: of the first batch; None
    while there is none. unindexed: bytes since the last index entry."""

    base_offset: int
    interval_bytes: int
    offsets: OffsetIndex
    times: TimeIndex
    transactions: TransactionIndex
    latest: tuple[int, int] = field(init=False)
    first_timestamp_ms: int | None = None
    unindexed: int = 0

    def __attrs_post_init__(self) -> None:
        self.latest = (NO_TIMESTAMP, self.base_offset)

    @classmethod
    def at(
        cls, files: FileSystem, directory: str, base_offset: int, options: LogOptions, suffix: str
    ) -> Self:
        """Those of the segment of this base; nothing is read or created yet."""

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
        """Become empty, whatever the files hold; all but the aborted transactions, which the log alone does
        not tell."""
        self.offsets.reset()
        self.times.reset()
        self.latest = (NO_TIMESTAMP, self.base_offset)
        self.first_timestamp_ms, self.unindexed = None, 0

    def note(self, position: int, batch: BatchHeader | Frame) -> None:
        """A batch stands at `position`, after all those before. The entry of the time index is that of the
        offset index."""
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
        """Whether the segment must end because one of them does."""
        return self.offsets.is_full or self.times.is_full

    def truncate(self, offset: int) -> None:
        """Forget what names `offset` or more."""
        self.offsets.truncate(offset)
        self.times.truncate(offset)
        self.transactions.truncate(offset)

    def write(self, *, sync: bool) -> None:
        """Bring the files to what memory holds."""
        self.offsets.write(sync=sync)
        self.times.write(sync=sync)
        self.transactions.write(sync=sync)

    def release(self) -> None:
        """Nothing will be appended: they need not stay in memory."""
        self.offsets.release()
        self.times.release()
        self.transactions.release()
