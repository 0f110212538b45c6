"""The offset index of a segment: from an offset to a position in the log file at or before its batch.

Owns entries of 8 bytes: offset relative to the base (int32), position (int32). An entry has the last offset
of the batch that begins at the position, so a search for a larger or equal offset can begin there. The
beginning of the file needs no entry.

    .index   (+41, 4210)  (+83, 8390)                     one entry about every index.interval.bytes
                |             |
    .log     [0..20][21..30]..[31..41]..[55..83]........
             0                4210      8390
"""

from struct import Struct
from typing import ClassVar

from attrs import define

from fencepost.impl.log.index.index_file import IndexFile


@define(eq=False, kw_only=True)
class OffsetIndex(IndexFile):
    """The methods use absolute offsets."""

    FORMAT: ClassVar[Struct] = Struct(">ii")

    def _follows(self, previous: tuple[int, ...] | None, entry: tuple[int, ...]) -> bool:
        last_offset, last_position = previous or (-1, 0)
        return entry[0] > last_offset and entry[1] > last_position

    def append(self, offset: int, position: int) -> None:
        """The batch that ends with `offset` begins at `position`."""
        self.entries.extend(self.FORMAT.pack(offset - self.base_offset, position))

    def lookup(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the last entry at or below `offset`; the beginning of the segment if there is
        none."""
        relative = offset - self.base_offset
        count = self.count_while(lambda entry: entry[0] <= relative)
        if not count:
            return self.base_offset, 0
        found, position = self.entry(count - 1)
        return self.base_offset + found, position

    def last(self) -> tuple[int, int]:
        """(offset, position) of the last entry; the beginning of the segment if there is none."""
        if not len(self):
            return self.base_offset, 0
        offset, position = self.entry(len(self) - 1)
        return self.base_offset + offset, position

    def truncate(self, offset: int) -> None:
        """Remove entries with an offset of `offset` or more."""
        relative = offset - self.base_offset
        self.keep(self.count_while(lambda entry: entry[0] < relative))
