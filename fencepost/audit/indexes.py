"""Whether the indexes of a segment lead to where they say.

Owns which indexes a segment has and that they are unpacked entry by entry (ten megabytes are a million
entries). Must not know what an entry means (impl/log/dump/indexes.py).
"""

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import TypeVar, overload

from attrs import define, evolve, field

from fencepost.audit.audit_findings import Findings
from fencepost.audit.directories import SegmentFile
from fencepost.audit.source import Place, opened, size_of
from fencepost.impl.log import layout
from fencepost.impl.log.batch.record_batch import BatchHeader
from fencepost.impl.log.dump.dump import Extent
from fencepost.impl.log.dump.indexes import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    AbortedTransaction,
    OffsetEntry,
    OffsetIndexCheck,
    TimeEntry,
    TimeIndexCheck,
    offset_entries,
    time_entries,
    transaction_entries,
)
from fencepost.impl.log.dump.transactions_of_log import TransactionIndexCheck, TransactionsOfLog
from fencepost.impl.log.flaw import Flaw

ANOMALY = "index_damaged"
MOST_BYTES = 256 * 1024 * 1024
"""Bound on what is read of an index. segment.index.bytes is 10 MB by default."""

LAST_POSITION = 1 << 63
LAST_OFFSET = 1 << 63
"""An offset above all others: no entry is left."""

IndexEntry = TypeVar("IndexEntry", OffsetEntry, TimeEntry)


@define
class PackedEntries(Sequence[IndexEntry]):
    """The entries of an index, unpacked on demand."""

    data: bytes
    form: Struct
    # Builds an entry from its position in the file and its two numbers.
    make: Callable[[int, int, int], IndexEntry]
    # The entry unpacked last, with its number.
    last: tuple[int, IndexEntry] | None = None

    def __len__(self) -> int:
        return len(self.data) // self.form.size

    @overload
    def __getitem__(self, index: int) -> IndexEntry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[IndexEntry]: ...
    def __getitem__(self, index: int | slice) -> IndexEntry | Sequence[IndexEntry]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        if self.last is not None and self.last[0] == index:
            return self.last[1]
        at = range(len(self))[index] * self.form.size
        entry = self.make(at, *self.form.unpack_from(self.data, at))
        self.last = index, entry
        return entry


def _offset_check(data: bytes, base_offset: int, name: str) -> OffsetIndexCheck:
    def make(at: int, relative: int, position: int) -> OffsetEntry:
        return OffsetEntry(at=at, offset=base_offset + relative, position=position)

    return OffsetIndexCheck(PackedEntries(_used(data, OFFSET_ENTRY), OFFSET_ENTRY, make), name)


def _time_check(data: bytes, base_offset: int, name: str) -> TimeIndexCheck:
    def make(at: int, timestamp_ms: int, relative: int) -> TimeEntry:
        return TimeEntry(at=at, timestamp_ms=timestamp_ms, offset=base_offset + relative)

    return TimeIndexCheck(PackedEntries(_used(data, TIME_ENTRY), TIME_ENTRY, make), name)


def _used(data: bytes, form: Struct) -> bytes:
    """Without the room that a broker preallocated."""
    return data[: -(-len(data.rstrip(b"\0")) // form.size) * form.size]


@define
class SegmentIndexes:
    """Follows the batches of a segment."""

    segment: SegmentFile
    findings: Findings
    # The broker died, or ran when the files were copied. Its indexes may then be ahead of the log, and an
    # entry beyond the end means nothing.
    tail: bool
    # The transactions of the replica.
    log: TransactionsOfLog
    offsets: OffsetIndexCheck | None = None
    times: TimeIndexCheck | None = None
    # Position and offset of the next entry of the two indexes; nothing before them can be wrong.
    next_position: int = 0
    next_offset: int = 0
    transactions: TransactionIndexCheck = field(init=False)

    def __attrs_post_init__(self) -> None:
        path = self.segment.sibling(layout.TRANSACTION_INDEX)
        self.transactions = TransactionIndexCheck(log=self.log, entries=None, file=str(path))

    def load(self) -> None:
        """Read the indexes, and report what is wrong in them alone."""
        for kind in layout.INDEXES:
            path = self.segment.sibling(kind)
            needed = kind != layout.TRANSACTION_INDEX and self.segment.size > 0 and not self.tail
            try:
                if self._is_there(path, needed=needed):
                    self._load(path, kind)
                elif kind == layout.TRANSACTION_INDEX and not path.exists():
                    self._compare(())
            except OSError as error:
                self.findings.left_out(path, error.strerror or str(error))

    def _is_there(self, path: Place, *, needed: bool) -> bool:
        if not path.exists():
            if needed:
                self.findings.add(
                    ANOMALY, expected=f"an index {path}", seen="none", offset=self.segment.base_offset
                )
            return False
        if size_of(path) > MOST_BYTES:
            self.findings.left_out(path, f"an index of more than {MOST_BYTES} bytes")
            return False
        return True

    def _load(self, path: Place, kind: str) -> None:
        base = self.segment.base_offset
        with opened(path) as source:
            if kind == layout.TRANSACTION_INDEX:
                entries = list(transaction_entries(source))
                if self._tell(iter(entries), path):
                    self._compare([one for one in entries if isinstance(one, AbortedTransaction)])
                return
            offsets = kind == layout.INDEX
            if not self._tell((offset_entries if offsets else time_entries)(source, base), path):
                return  # entries out of order cannot be followed; a broker rebuilds such an index
            data = source.read_at(0, source.size())
        if offsets:
            self.offsets = _offset_check(data, base, str(path))
        else:
            self.times = _time_check(data, base, str(path))

    def _compare(self, entries: Sequence[AbortedTransaction]) -> None:
        """Let these be compared. A broker that died, or goes on, writes some later."""
        self.transactions.entries = None if self.tail else entries

    def _tell(self, items: Iterator[object], path: Place) -> bool:
        sound = True
        for item in items:
            if isinstance(item, Flaw):
                sound = False
                self.findings.flaw(ANOMALY, item, path)
        return sound

    def see(
        self, header: BatchHeader, position: int, *, damaged: bool = False, commits: bool | None = None
    ) -> None:
        """Follow the next batch. header: of the batch; position: its byte in the segment; damaged: its
        records cannot be read; commits: what its marker says, if it has one. Most batches have no entry, and
        only their time is checked."""
        for _ in self.transactions.see(header, damaged=damaged, commits=commits):
            pass
        if self.offsets is not None and position >= self.next_position:
            check, number = self.offsets, self.offsets.passed
            leads_here = number < len(check.entries) and check.entries[number].position == position
            if leads_here and check.entries[number].offset >= header.base_offset:
                check.passed += 1
            else:
                self._follow(check, evolve(header, position=position), damaged=damaged)
            left = check.passed < len(check.entries)
            self.next_position = check.entries[check.passed].position if left else LAST_POSITION
        if self.times is not None:
            if header.last_offset >= self.next_offset or damaged:
                self._follow(self.times, header, damaged=damaged)
                left = self.times.passed < len(self.times.entries)
                self.next_offset = self.times.entries[self.times.passed].offset if left else LAST_OFFSET
            elif header.max_timestamp_ms > self.times.latest:
                self.times.latest = header.max_timestamp_ms

    def _follow(
        self, check: OffsetIndexCheck | TimeIndexCheck, header: BatchHeader, *, damaged: bool
    ) -> None:
        for flaw in check.see(header, damaged=damaged):
            self.findings.flaw(ANOMALY, flaw, check.file)

    def unfollow(self) -> None:
        """Something in the segment cannot be read, so an entry that leads there cannot be
        checked."""
        self.offsets = self.times = None
        self.log.lost = True

    def end(self) -> None:
        """There are no more batches."""
        for check in (self.offsets, self.times, self.transactions):
            if check is not None:
                for flaw in check.end(Extent(ended_early=self.tail)):
                    self.findings.flaw(ANOMALY, flaw, check.file)
