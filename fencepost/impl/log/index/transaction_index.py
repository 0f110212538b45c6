"""The transaction index of a segment: the aborted transactions with a marker in it (KIP-98). A reader of
committed records skips them.

Owns entries of 34 bytes: version (int16, 0), producer id, first offset, last offset (that of the marker),
last stable offset after it (int64 each), in the order of the markers. Offsets are absolute. A segment without
aborted transactions has no file.

The other indexes can be rebuilt from their segment alone. This one also needs the transactions that were open
where the segment begins (producer/snapshot_files.py). So an entry is written when its marker is appended, and
lost entries are restored only by recovery.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import ClassVar

from attrs import define, frozen

from fencepost.impl.log.index.index_file import IndexFile

VERSION = 0


@frozen(kw_only=True)
class AbortedTransaction:
    """first_offset: of its first record here. last_offset: of its marker. last_stable_offset: after the
    marker, assuming that everything was committed by then. A reader up to at most this offset has seen every
    relevant transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@define(eq=False, kw_only=True)
class TransactionIndex(IndexFile):
    """It has no bound: its segment ends when another index is full."""

    FORMAT: ClassVar[Struct] = Struct(">hqqqq")

    def _load(self) -> bytearray:
        if not self.files.exists(self.path):
            self.saved, self.synced = 0, True
            return bytearray()
        return super()._load()

    def _follows(self, previous: tuple[int, ...] | None, entry: tuple[int, ...]) -> bool:
        version, _, first, last, stable = entry
        after = previous[3] if previous else self.base_offset - 1
        return version == VERSION and 0 <= first <= last and after < last and 0 <= stable <= last + 1

    def append(self, aborted: AbortedTransaction) -> None:
        """Append an entry; it is in the file when this returns."""
        self.entries.extend(
            self.FORMAT.pack(
                VERSION,
                aborted.producer_id,
                aborted.first_offset,
                aborted.last_offset,
                aborted.last_stable_offset,
            )
        )
        self.write(sync=False)

    def all(self) -> Iterator[AbortedTransaction]:
        """Every entry, in the order of the markers. Raises CorruptIndexError."""
        for _, producer_id, first, last, stable in self.FORMAT.iter_unpack(bytes(self.entries)):
            yield AbortedTransaction(
                producer_id=producer_id, first_offset=first, last_offset=last, last_stable_offset=stable
            )

    def truncate(self, offset: int) -> None:
        """Remove the entries with a marker at `offset` or later: these transactions are open again."""
        self.keep(sum(aborted.last_offset < offset for aborted in self.all()))

    def write(self, *, sync: bool) -> None:
        """As the other indexes. If there are no entries, there need be no file."""
        if self._entries or (self._entries is not None and self.files.exists(self.path)):
            super().write(sync=sync)


def aborted_between(
    indexes: Iterable[TransactionIndex], offset: int, end_offset: int
) -> list[AbortedTransaction]:
    """The transactions with records from `offset` to below `end_offset`, in the order of their markers.

    indexes: those of the segment that holds `offset` and of all later ones, because a marker may be in a
    later segment than its records. Raises CorruptIndexError.
    """
    found = []
    for index in indexes:
        for aborted in index.all():
            if aborted.last_offset >= offset and aborted.first_offset < end_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= end_offset:
                return found
    return found
