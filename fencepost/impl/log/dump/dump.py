"""Inspect the files of a log directory, written by any broker and in any condition.

Owns the walk through a segment: its batches, how far it is good, and what is wrong after that. Must not know
where files are (it reads from an open file, and only reads), or how a finding is shown. Memory: one batch and
its decompressed form (at most compression.MOST_DECOMPRESSED_BYTES), or CHUNK_BYTES, whichever is more.

A batch with a bad checksum or header is reported and skipped, because its length still says where the next
one begins. Damage that makes the length doubtful ends the walk. A file is *good* up to the first flaw of any
kind.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from attrs import define, evolve, frozen

from fencepost.impl.log.batch.control_records import is_readable
from fencepost.impl.log.batch.header import LENGTH_END, MAGIC, unchecked_header
from fencepost.impl.log.batch.record_batch import (
    HEADER_SIZE,
    BatchHeader,
    CorruptBatchError,
    Damage,
    Record,
    check_records,
    each_record,
    read_header,
)

CHUNK_BYTES = 1024 * 1024
"""Bytes per read, unless a batch is longer."""
_MAGIC_AT = 16


class Source(Protocol):
    """An open file, opened for reading only; for example impl.files.File."""

    def read_at(self, position: int, size: int) -> bytes:
        """Read up to `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def size(self) -> int:
        """The size of the file in bytes."""
        ...


@frozen(kw_only=True)
class Flaw:
    """A flaw of a file. position: the first byte or entry concerned, None if it is the whole file. file: the
    file's name if it is not the one being dumped."""

    position: int | None
    expected: str
    seen: str
    file: str = ""

    @property
    def sentence(self) -> str:
        """The flaw as a sentence with its place."""
        places = (
            f"{self.file}" if self.file else "",
            f"at byte {self.position}" if self.position is not None else "",
        )
        where = " ".join(place for place in places if place)
        return f"{where and where + ': '}expected {self.expected}, saw {self.seen}"


@frozen(kw_only=True)
class BatchSeen:
    """A batch of a segment. computed_crc: the checksum of its bytes if it differs from the header's; else
    None. data: its bytes, if records were requested and can be read."""

    header: BatchHeader
    computed_crc: int | None = None
    data: memoryview | None = None

    @property
    def records(self) -> Iterator[Record] | None:
        """Its records, created one at a time, because a small batch may hold millions. None if they were not
        requested or cannot be read."""
        return None if self.data is None else each_record(self.data, evolve(self.header, position=0))


@define
class Extent:
    """How far a segment is good; updated during the walk."""

    # Bytes up to the first flaw; grows with every batch before it.
    good_bytes: int = 0
    # The offset after the last good batch; None while there is none.
    next_offset: int | None = None
    # All batches seen.
    batches: int = 0
    # All records seen, without those of damaged batches.
    records: int = 0
    # The number of flaws.
    flaws: int = 0
    # Whether damage made the rest unreadable.
    ended_early: bool = False


class Watcher(Protocol):
    """Follows the walk batch by batch: an index that is being verified."""

    def see(self, header: BatchHeader, *, damaged: bool) -> Iterator[Flaw]:
        """Process the next batch. damaged: only its position is reliable."""
        ...

    def end(self, extent: Extent) -> Iterator[Flaw]:
        """Called after the last batch."""
        ...


def walk_log(
    source: Source,
    extent: Extent,
    *,
    base_offset: int | None = None,
    deep: bool = False,
    watchers: Sequence[Watcher] = (),
) -> Iterator[BatchSeen | Flaw]:
    """The batches of a segment with their flaws, in the order of the file. extent: filled during the walk.
    base_offset: from the file's name."""
    window, size, position = _Window(source), source.size(), 0
    order = _Order(base_offset)
    while position < size:
        try:
            seen, data, flaw = _batch_at(window, position, size)
        except CorruptBatchError as error:
            extent.ended_early = True
            extent.flaws += 1
            yield _last_flaw(window, position, size, error)
            return
        flaws = [flaw] if flaw else list(order.flaws(seen.header))
        if not flaw and (bad := _flaw_of_records(data, seen.header)):
            flaws.append(bad)
        elif deep and not flaw:
            seen = evolve(seen, data=data)
        extent.batches += 1
        extent.records += 0 if flaw else seen.header.count
        extent.flaws += len(flaws)
        position += seen.header.size
        if not extent.flaws:
            extent.good_bytes, extent.next_offset = position, seen.header.next_offset
        yield seen
        yield from flaws
        for watcher in watchers:
            yield from watcher.see(seen.header, damaged=flaw is not None)


def _flaw_of_records(data: memoryview, header: BatchHeader) -> Flaw | None:
    """What is wrong with the records of a batch with a correct checksum: they were written so."""
    own = evolve(header, position=0)
    try:
        check_records(data, own)
        unreadable = header.is_control and not all(is_readable(record) for record in each_record(data, own))
    except CorruptBatchError as error:
        return Flaw(position=header.position, expected=error.expected, seen=error.seen)
    if unreadable:
        return Flaw(position=header.position, expected="control records with their type", seen="one without")
    return None


def looks_like_log(source: Source) -> bool:
    """Whether a file of any name begins as a segment does."""
    head = source.read_at(0, _MAGIC_AT + 1)
    length = int.from_bytes(head[8:LENGTH_END], "big", signed=True)
    return len(head) > _MAGIC_AT and head[_MAGIC_AT] == MAGIC and length >= HEADER_SIZE - LENGTH_END


@define
class _Window:
    """The part of a file that is in memory."""

    source: Source
    start: int = 0
    data: bytes = b""

    def take(self, position: int, size: int) -> memoryview:
        """These bytes; fewer at the end of the file."""
        offset = position - self.start
        if offset < 0 or offset + size > len(self.data):
            self.start, self.data = position, self.source.read_at(position, max(size, CHUNK_BYTES))
            offset = 0
        return memoryview(self.data)[offset : offset + size]


@define
class _Order:
    """The lower bounds for the next batch. floor: for its base offset; epoch: for its leader epoch."""

    floor: int | None
    epoch: int = -1

    def flaws(self, header: BatchHeader) -> Iterator[Flaw]:
        """What is out of order. A batch with a wrong offset does not change the bounds: the next one is
        compared with the last good batch."""
        if self.floor is not None and header.base_offset < self.floor:
            yield Flaw(
                position=header.position,
                expected=f"a base offset of at least {self.floor}",
                seen=str(header.base_offset),
            )
        else:
            self.floor = header.next_offset
        if header.leader_epoch < self.epoch:
            yield Flaw(
                position=header.position,
                expected=f"a leader epoch of at least {self.epoch}",
                seen=str(header.leader_epoch),
            )
        else:
            self.epoch = header.leader_epoch


def _batch_at(window: _Window, position: int, size: int) -> tuple[BatchSeen, memoryview, Flaw | None]:
    head = window.take(position, HEADER_SIZE)
    if len(head) > _MAGIC_AT and head[_MAGIC_AT] == MAGIC:
        length = LENGTH_END + int.from_bytes(head[8:LENGTH_END], "big", signed=True)
        if length > size - position:
            raise CorruptBatchError(
                Damage.TORN,
                position,
                expected=f"a batch of {length} bytes",
                seen=f"the last {size - position} bytes of the file",
            )
        head = window.take(position, max(length, HEADER_SIZE))
    elif len(head) > _MAGIC_AT:
        magic = int.from_bytes(head[_MAGIC_AT : _MAGIC_AT + 1], "big", signed=True)
        old = " (a message set of a Kafka before 0.11)" if magic in (0, 1) else ""
        raise CorruptBatchError(Damage.MAGIC, position, expected=f"magic {MAGIC}", seen=f"{magic}{old}")
    flaw = computed_crc = None
    try:
        header = read_header(head)
    except CorruptBatchError as error:
        if error.damage not in (Damage.CRC, Damage.HEADER):
            raise
        header, computed_crc = unchecked_header(head), error.computed_crc
        flaw = Flaw(position=position, expected=error.expected, seen=error.seen)
    return BatchSeen(header=evolve(header, position=position), computed_crc=computed_crc), head, flaw


def _last_flaw(window: _Window, position: int, size: int, error: CorruptBatchError) -> Flaw:
    rest = size - position
    if _is_zero(window, position, size):
        return Flaw(
            position=position,
            expected="a batch or the end of the file",
            seen=f"{rest} bytes of zeros (room that a broker preallocated, or the hole of a failed write)",
        )
    return Flaw(position=position, expected=error.expected, seen=error.seen)


def _is_zero(window: _Window, position: int, size: int) -> bool:
    while position < size:
        piece = bytes(window.take(position, min(CHUNK_BYTES, size - position)))
        if not piece or piece.strip(b"\0"):
            return False
        position += len(piece)
    return True
