"""Looking into the files of a log directory, whoever wrote them and whatever happened to them since.

Owns the walk through a segment: which batches it holds, how far it is good, and what is wrong after that.
Must not know where files lie (it reads from an open one, and only reads), nor how a finding is shown. Memory:
one batch and what it is decompressed to (at most compression.MOST_DECOMPRESSED_BYTES), or CHUNK_BYTES,
whichever is more.

A batch whose checksum or header fails is told and stepped over, because its length still says where the next
one begins; everything that makes the length doubtful ends the walk. A file is *good* up to the first flaw of
any kind.
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
"""Read at once, unless a batch is longer."""
_MAGIC_AT = 16


class Source(Protocol):
    """An open file, to be read only; impl.files.File is one."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def size(self) -> int:
        """Bytes in the file."""
        ...


@frozen(kw_only=True)
class Flaw:
    """Something that is wrong with a file. position: of the first byte or entry concerned, None if the whole
    file is. file: its name, where it is not the one that is being dumped."""

    position: int | None
    expected: str
    seen: str
    file: str = ""

    @property
    def sentence(self) -> str:
        """In words, with the place."""
        places = (
            f"{self.file}" if self.file else "",
            f"at byte {self.position}" if self.position is not None else "",
        )
        where = " ".join(place for place in places if place)
        return f"{where and where + ': '}expected {self.expected}, saw {self.seen}"


@frozen(kw_only=True)
class BatchSeen:
    """A batch of a segment. computed_crc: what its bytes give, where that is not what its header says; else
    None. data: its bytes, if its records were asked for and can be read."""

    header: BatchHeader
    computed_crc: int | None = None
    data: memoryview | None = None

    @property
    def records(self) -> Iterator[Record] | None:
        """Its records, each made when its turn comes: a small batch may hold millions. None if they were not
        asked for or cannot be read."""
        return None if self.data is None else each_record(self.data, evolve(self.header, position=0))


@define
class Extent:
    """How far a segment is good, while it is walked. good_bytes, next_offset: move up with every batch until
    the first flaw; next_offset is None while there is no batch. batches, records: all that were seen (no
    records of batches that are damaged). ended_early: something made the rest unreadable."""

    good_bytes: int = 0
    next_offset: int | None = None
    batches: int = 0
    records: int = 0
    flaws: int = 0
    ended_early: bool = False


class Watcher(Protocol):
    """What follows the walk, batch by batch: an index that is being verified."""

    def see(self, header: BatchHeader, *, damaged: bool) -> Iterator[Flaw]:
        """The next batch. damaged: only its place can be believed."""
        ...

    def end(self, extent: Extent) -> Iterator[Flaw]:
        """There are no more."""
        ...


def walk_log(
    source: Source,
    extent: Extent,
    *,
    base_offset: int | None = None,
    deep: bool = False,
    watchers: Sequence[Watcher] = (),
) -> Iterator[BatchSeen | Flaw]:
    """The batches of a segment with their flaws, in the order of the file. extent: filled on the way.
    base_offset: what the file's name says."""
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
    """What is wrong with the records of a batch under a checksum that holds: somebody wrote them so."""
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
        """These bytes, fewer at the end of the file."""
        offset = position - self.start
        if offset < 0 or offset + size > len(self.data):
            self.start, self.data = position, self.source.read_at(position, max(size, CHUNK_BYTES))
            offset = 0
        return memoryview(self.data)[offset : offset + size]


@define
class _Order:
    """What a batch must come after. floor: its base offset may not be below; epoch: nor its leader epoch."""

    floor: int | None
    epoch: int = -1

    def flaws(self, header: BatchHeader) -> Iterator[Flaw]:
        """What is out of order. A batch with a wrong offset does not set a new one: the next is measured by
        the last good one."""
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
