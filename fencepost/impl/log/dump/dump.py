"""Inspect the files of a log directory, written by any broker and in any condition.

Owns how far a segment is good, and what is wrong after that. Must not know where files are, how a segment is
read (segment_walk.py), or how a finding is shown. Memory: one batch and its decompressed form (at most
compression.MOST_DECOMPRESSED_BYTES), or CHUNK_BYTES, whichever is more.

A file is *good* up to the first flaw of any kind. Damage that makes a length doubtful, or messages of an old
format, end the walk.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from attrs import define, evolve, frozen

from fencepost.impl.log.batch.control_records import end_transaction_of, is_readable
from fencepost.impl.log.batch.header import MAGIC, MAGIC_AT, foreign_magic, size_at
from fencepost.impl.log.batch.record_batch import (
    HEADER_SIZE,
    BatchHeader,
    CorruptBatchError,
    Record,
    check_records,
    each_record,
)
from fencepost.impl.log.dump.segment_walk import Bad, Old, Parsed, SegmentBatch, Source, walk_segment
from fencepost.impl.log.flaw import Flaw


@frozen(kw_only=True)
class BatchSeen:
    """A batch of a segment."""

    header: BatchHeader
    # The checksum of its bytes if it differs from the header's; else None.
    computed_crc: int | None = None
    # Its bytes, if records were requested and can be read.
    data: bytes | None = None

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

    def see(self, header: BatchHeader, *, damaged: bool, commits: bool | None = None) -> Iterator[Flaw]:
        """Process the next batch. damaged: only its position is reliable; commits: whether the transaction's
        marker in it commits, None if it has none."""
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
    order, position = _Order(base_offset), 0
    for item in walk_segment(source, "", Parsed()):
        if isinstance(item, Old) or item.header is None:
            extent.ended_early = True
            extent.flaws += 1
            yield _last_flaw(item, position)
            return
        header, damaged = evolve(item.header, position=item.position), isinstance(item, Bad)
        if isinstance(item, Bad):
            flaws = [Flaw(position=item.position, expected=item.expected, seen=item.seen)]
            seen = BatchSeen(header=header, computed_crc=item.computed_crc)
        else:
            wrong = _flaws_of_records(item)
            flaws = [*order.flaws(header), *wrong]
            seen = BatchSeen(header=header, data=item.data if deep and not wrong else None)
        position = header.end_position
        extent.batches += 1
        extent.records += 0 if damaged else header.count
        extent.flaws += len(flaws)
        if not extent.flaws:
            extent.good_bytes, extent.next_offset = position, header.next_offset
        yield seen
        yield from flaws
        commits = None if isinstance(item, Bad) else commits_of(item)
        for watcher in watchers:
            yield from watcher.see(header, damaged=damaged, commits=commits)


def commits_of(batch: SegmentBatch) -> bool | None:
    """Whether the marker in a batch commits its transaction; None if it has none that is readable."""
    if not batch.header.is_control:
        return None
    try:
        markers = [end_transaction_of(record) for record in batch.records()]
    except CorruptBatchError:
        return None
    return next((marker.commit for marker in markers if marker is not None), None)


def _flaws_of_records(batch: SegmentBatch) -> list[Flaw]:
    """What is wrong with the records of a batch with a correct checksum: they were written so."""
    try:
        check_records(batch.data, batch.header)
        unreadable = batch.header.is_control and not all(is_readable(record) for record in batch.records())
    except CorruptBatchError as error:
        return [Flaw(position=batch.position, expected=error.expected, seen=error.seen)]
    if unreadable:
        says = "control records with their type"
        return [Flaw(position=batch.position, expected=says, seen="one without")]
    return []


def looks_like_log(source: Source) -> bool:
    """Whether a file of any name begins as a segment does."""
    head = source.read_at(0, MAGIC_AT + 1)
    return len(head) > MAGIC_AT and head[MAGIC_AT] == MAGIC and size_at(head, 0) >= HEADER_SIZE


@define
class _Order:
    """The lower bounds for the next batch."""

    # For its base offset.
    floor: int | None
    # For its leader epoch.
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


def _last_flaw(item: Bad | Old, position: int) -> Flaw:
    """What ends the walk at this byte."""
    if isinstance(item, Old):
        foreign = foreign_magic(position, item.magic)
        return Flaw(position=position, expected=foreign.expected, seen=foreign.seen)
    room = " (room that a broker preallocated, or the hole of a failed write)" if item.zeros else ""
    return Flaw(position=position, expected=item.expected, seen=item.seen + room)
