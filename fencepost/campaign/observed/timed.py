"""The batch that a ListOffsets by time must answer with, by reading the leader's whole log.

Owns the search in its plainest form: batch after batch, without an index. It reads the simulated files past
the disk, so that no fault of the disk strikes it and no call is counted. Must not know requests.
"""

from collections.abc import Iterator
from typing import Any

from attrs import frozen

PREFIX_BYTES, HEADER_BYTES = 12, 61
"""Of a batch: what its length does not count, and everything before its records."""
BASE_OFFSET, LENGTH, LEADER_EPOCH = slice(0, 8), slice(8, 12), slice(12, 16)
"""Bytes of a batch."""
LAST_OFFSET_DELTA, MAX_TIMESTAMP = slice(23, 27), slice(35, 43)


@frozen
class Timed:
    """A batch: its first and last offset, its leader epoch, and its largest timestamp in milliseconds."""

    base: int
    last: int
    leader_epoch: int
    timestamp_ms: int


def batches_in(data: bytes | bytearray) -> Iterator[tuple[int, Timed]]:
    """The batches of a segment with their positions, up to the first damaged one.

    Args:
        data: of the file.
    """
    at = 0
    while at + HEADER_BYTES <= len(data):
        batch = data[at : at + HEADER_BYTES]
        size = PREFIX_BYTES + int.from_bytes(batch[LENGTH], signed=True)
        if not HEADER_BYTES <= size <= len(data) - at:
            return
        base = int.from_bytes(batch[BASE_OFFSET])
        last = base + int.from_bytes(batch[LAST_OFFSET_DELTA])
        epoch = int.from_bytes(batch[LEADER_EPOCH], signed=True)
        yield at, Timed(base, last, epoch, int.from_bytes(batch[MAX_TIMESTAMP], signed=True))
        at += size


def first_at(log: Any, timestamp_ms: int) -> Timed | None:
    """The first batch with a record of that time or a later one; None if there is none.

    Args:
        log: of a partition.
        timestamp_ms: the time.
    """
    every = (one for segment in log.segments.all for _, one in batches_in(segment.file._file.content))
    live = (one for one in every if one.last >= log.log_start_offset)
    return next((one for one in live if one.timestamp_ms >= timestamp_ms), None)
