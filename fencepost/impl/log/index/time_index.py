"""The time index of a segment: from a timestamp to an offset from which on records may have it or a later one
(KIP-33).

Owns entries of 12 bytes: timestamp (int64, ms), offset relative to the base (int32). An entry has the largest
timestamp up to here, in a batch that ends with this offset. Records after the offset may be later; records
before its batch are earlier. Timestamps strictly increase.
"""

from struct import Struct
from typing import ClassVar

from attrs import define

from fencepost.impl.log.index.index_file import IndexFile

NO_TIMESTAMP = -1


@define(eq=False, kw_only=True)
class TimeIndex(IndexFile):
    """The methods use absolute offsets."""

    FORMAT: ClassVar[Struct] = Struct(">qi")

    def _follows(self, previous: tuple[int, ...] | None, entry: tuple[int, ...]) -> bool:
        last_timestamp, last_offset = previous or (NO_TIMESTAMP, 0)
        return entry[0] > last_timestamp and entry[1] >= last_offset

    def append(self, timestamp_ms: int, offset: int) -> None:
        """The largest timestamp so far is `timestamp_ms`, in the batch that ends with `offset`. No effect
        unless it grew."""
        if timestamp_ms > self.last()[0]:
            self.entries.extend(self.FORMAT.pack(timestamp_ms, offset - self.base_offset))

    def lookup(self, timestamp_ms: int) -> int:
        """The largest known offset to begin a search at: every record below its batch is earlier than
        `timestamp_ms`."""
        count = self.count_while(lambda entry: entry[0] <= timestamp_ms)
        return self.base_offset + (self.entry(count - 1)[1] if count else 0)

    @property
    def is_full(self) -> bool:
        """Whether one more entry would leave no space for the one that ends the index."""
        return len(self.entries) + 2 * self.FORMAT.size > self.max_bytes

    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (NO_TIMESTAMP, base offset) if there is none."""
        if not len(self):
            return NO_TIMESTAMP, self.base_offset
        timestamp_ms, offset = self.entry(len(self) - 1)
        return timestamp_ms, self.base_offset + offset

    def truncate(self, offset: int) -> None:
        """Remove entries with an offset of `offset` or more."""
        relative = offset - self.base_offset
        self.keep(self.count_while(lambda entry: entry[1] < relative))
