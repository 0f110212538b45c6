"""The index files of a segment, entry by entry, and whether they lead to the right place.

Owns the flaws of an offset, time or transaction index, by itself and against its log. Must not know where
files are. index/offset_index.py and index/time_index.py define the entries. An index is a cache: a broker
that finds a flaw at start rebuilds the index; a flaw that it does not find makes reads miss records.

Brokers before Kafka 4 index the last offset of everything that one request appended, later ones that of the
batch. Both are correct. So an entry is a flaw only if a reader that follows it would miss a record or find no
batch.
"""

from collections.abc import Iterator, Sequence
from struct import Struct

from attrs import define, frozen

from fencepost.impl.log.batch.record_batch import BatchHeader
from fencepost.impl.log.dump.dump import Extent
from fencepost.impl.log.dump.segment_walk import Source
from fencepost.impl.log.flaw import Flaw
from fencepost.impl.log.index.offset_index import OffsetIndex
from fencepost.impl.log.index.time_index import TimeIndex
from fencepost.impl.log.index.transaction_index import TransactionIndex

OFFSET_ENTRY, TIME_ENTRY = OffsetIndex.FORMAT, TimeIndex.FORMAT


@frozen(kw_only=True)
class OffsetEntry:
    """at: byte of the entry in the index. offset: absolute. position: in the log."""

    at: int
    offset: int
    position: int


@frozen(kw_only=True)
class TimeEntry:
    """at: byte of the entry in the index. offset: absolute."""

    at: int
    timestamp_ms: int
    offset: int


@frozen(kw_only=True)
class AbortedTransaction:
    """An entry of a transaction index. Offsets are absolute."""

    # Byte of the entry in the index.
    at: int
    # The version of the entry.
    version: int
    # The producer of the transaction.
    producer_id: int
    # The offset of the transaction's first record.
    first_offset: int
    # The offset of its marker.
    last_offset: int
    # The last stable offset after the marker.
    last_stable_offset: int


def _entries(data: bytes, form: Struct) -> Iterator[tuple[int, tuple[int, ...]] | Flaw]:
    """(byte, entry) of each entry before the zeros at the end, which are preallocated space; then a flaw if
    the size is not a multiple of an entry."""
    used = len(data.rstrip(b"\0"))
    count = -(-used // form.size)
    whole = min(count, len(data) // form.size)
    for number in range(whole):
        yield number * form.size, form.unpack_from(data, number * form.size)
    if len(data) % form.size:
        yield Flaw(
            position=len(data) - len(data) % form.size,
            expected=f"entries of {form.size} bytes",
            seen=f"{len(data) % form.size} bytes at the end",
        )


def offset_entries(source: Source, base_offset: int) -> Iterator[OffsetEntry | Flaw]:
    """The entries of an .index file.

    Args:
        source: the open file.
        base_offset: the base offset of its segment.

    Returns:
        the entries, and a flaw for each that does not follow the one before.
    """
    before = (-1, -1)
    for item in _entries(source.read_at(0, source.size()), OFFSET_ENTRY):
        if isinstance(item, Flaw):
            yield item
            continue
        at, (relative, position) = item
        yield OffsetEntry(at=at, offset=base_offset + relative, position=position)
        if relative <= before[0] or position <= before[1]:
            yield Flaw(
                position=at,
                expected=f"an offset after {base_offset + before[0]} at a position after {before[1]}",
                seen=f"{base_offset + relative} at {position}",
            )
        before = relative, position


def time_entries(source: Source, base_offset: int) -> Iterator[TimeEntry | Flaw]:
    """The entries of a .timeindex file.

    Args:
        source: the open file.
        base_offset: the base offset of its segment.

    Returns:
        the entries, and a flaw for each that does not follow the one before.
    """
    before = (-2, 0)
    for item in _entries(source.read_at(0, source.size()), TIME_ENTRY):
        if isinstance(item, Flaw):
            yield item
            continue
        at, (timestamp_ms, relative) = item
        yield TimeEntry(at=at, timestamp_ms=timestamp_ms, offset=base_offset + relative)
        if timestamp_ms <= before[0] or relative < before[1]:
            yield Flaw(
                position=at,
                expected=f"a time after {before[0]} at an offset of at least {base_offset + before[1]}",
                seen=f"{timestamp_ms} at {base_offset + relative}",
            )
        before = timestamp_ms, relative


def transaction_entries(source: Source) -> Iterator[AbortedTransaction | Flaw]:
    """The entries of a .txnindex file, one for each aborted transaction."""
    for item in _entries(source.read_at(0, source.size()), TransactionIndex.FORMAT):
        if isinstance(item, Flaw):
            yield item
            continue
        at, (version, producer_id, first, last, stable) = item
        yield AbortedTransaction(
            at=at,
            version=version,
            producer_id=producer_id,
            first_offset=first,
            last_offset=last,
            last_stable_offset=stable,
        )
        if version != 0 or not 0 <= first <= last:
            yield Flaw(
                position=at,
                expected="version 0 and a first offset up to the last",
                seen=f"version {version}, offsets {first} to {last}",
            )


@define
class OffsetIndexCheck:
    """Follows the walk of a log (dump.Watcher)."""

    entries: Sequence[OffsetEntry]
    # The index's name.
    file: str
    # The number of entries with a place that the walk has reached.
    passed: int = 0

    def see(self, header: BatchHeader, *, damaged: bool, commits: bool | None = None) -> Iterator[Flaw]:
        """Check that each entry leads to the beginning of a batch, and to no batch after its offset.

        Args:
            header: the next batch.
            damaged: only its position is reliable.
            commits: of no importance here.

        Returns:
            the flaws.
        """
        while self.passed < len(self.entries) and self.entries[self.passed].position <= header.position:
            entry = self.entries[self.passed]
            self.passed += 1
            if entry.position < header.position:
                yield _leads(
                    self.file, entry, f"a batch at {entry.position} of the log", "none that begins there"
                )
            elif entry.offset < header.base_offset and not damaged:
                yield _leads(
                    self.file,
                    entry,
                    f"a batch with an offset of at most {entry.offset} at {entry.position} of the log",
                    f"one from {header.base_offset}",
                )

    def end(self, extent: Extent) -> Iterator[Flaw]:
        """The remaining entries lead beyond the log. If the walk ended early, they cannot be checked."""
        if extent.ended_early:
            return
        for entry in self.entries[self.passed :]:
            yield _leads(self.file, entry, f"a batch at {entry.position} of the log", "the end of the log")


@define
class TimeIndexCheck:
    """Follows the walk of a log (dump.Watcher)."""

    entries: Sequence[TimeEntry]
    # The index's name.
    file: str
    # The number of entries with a place that the walk has reached.
    passed: int = 0
    # The largest timestamp so far.
    latest: int = -1

    def see(self, header: BatchHeader, *, damaged: bool, commits: bool | None = None) -> Iterator[Flaw]:
        """Check that an entry has the largest timestamp up to its offset. A later timestamp before it would
        be missed; one that no record has cannot be found.

        Args:
            header: the next batch.
            damaged: its times and offsets are not reliable.
            commits: of no importance here.

        Returns:
            the flaws.
        """
        if damaged:
            self.passed = len(
                self.entries
            )  # its times and offsets are unknown, and so are those that later entries should have
            return
        before = self.latest
        self.latest = max(self.latest, header.max_timestamp_ms)
        while self.passed < len(self.entries) and self.entries[self.passed].offset <= header.last_offset:
            entry = self.entries[self.passed]
            self.passed += 1
            if entry.offset < header.base_offset:
                yield _leads(self.file, entry, f"a batch that holds offset {entry.offset}", "none")
            elif not before <= entry.timestamp_ms <= self.latest:
                yield _leads(
                    self.file,
                    entry,
                    f"{self.latest} as the largest timestamp up to offset {entry.offset}",
                    str(entry.timestamp_ms),
                )

    def end(self, extent: Extent) -> Iterator[Flaw]:
        """The remaining entries have offsets beyond the log. If the walk ended early, they cannot be
        checked."""
        if extent.ended_early:
            return
        for entry in self.entries[self.passed :]:
            yield _leads(self.file, entry, f"a batch that holds offset {entry.offset}", "the end of the log")


def _leads(file: str, entry: OffsetEntry | TimeEntry, expected: str, seen: str) -> Flaw:
    return Flaw(position=entry.at, expected=expected, seen=seen, file=file)
