"""Value ids as records: a workload writes numbers, and the record's value is the number in decimal digits.

Owns the mapping between value ids and record batches. Must not know the callers. The id of a tombstone, or of
a value with another meaning, is in a header. A record of another producer has a number made of its key and
value, from FOREIGN on; equal records have the same number. Records that brokers write for themselves (control
records, committed offsets) have none: NO_VALUE.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b

from attrs import frozen

from fencepost.impl.log.batch.header import CRC_START, BatchHeader, header_before, unchecked_header
from fencepost.impl.log.batch.record_batch import Header, Record, each_record, encode_batch

NO_VALUE = -1
FOREIGN = 1 << 62
"""Value ids from here on are derived from a record's content; those of workloads are far below."""
OF_BROKERS = b"\x00"
"""The first byte of keys of records that brokers write for themselves: a 16-bit version below 256, big
endian."""
KNOWN_BATCHES = 4096
"""Batches with cached value ids: more than are in transit through a cluster at once."""
LARGEST_REMEMBERED = 16 * 1024
"""The largest such batch in bytes: together they stay below 64 MiB. A workload's batches are far smaller;
those of other producers need not be."""
KNOWN_LARGE_BATCHES = 32
"""Larger batches that are cached too, up to LARGEST_KNOWN bytes and MOST_KNOWN records. A leader, its
followers and their readers decode the same batch within moments, and decoding its records costs twenty times
as much as comparing its bytes."""
LARGEST_KNOWN = 1024 * 1024
"""The largest such batch in bytes: together with their keys they stay below 64 MiB. A client's largest
request has this size by default (max.request.size)."""
MOST_KNOWN = 16 * 1024
"""The most records of such a batch, since a compressed one may have many more: together their numbers stay
below 32 MiB."""
KNOWN_HUGE_BATCHES = 2
"""Batches beyond these bounds that are cached too: the one that is appended now, and the one before. The
largest one that a broker accepts takes about 50 MB here."""
STARTS = 81
"""Bytes of a foreign value that are remembered: what a report shows of it, and one more, which says that
there is more."""
MAX_DIGITS = 19
"""Digits of a 64-bit number. A longer value is not a value id."""
VALUE_ID = "value-id"
"""The header with a record's value id, whatever its value is."""


def batch_of(
    values: tuple[int, ...], *, timestamp_ms: int = 0, key: str = "", tombstone: bool = False
) -> bytes:
    """A produced batch: offsets count from 0, and its leader will set offset and epoch.

    Args:
        values: the value ids of the records.
        timestamp_ms: the time of the records.
        key: the key of all records; "" for none.
        tombstone: whether the records have no value.

    Returns:
        the bytes.
    """
    assert values, "a batch has at least one record"
    name = key.encode() if key else None
    records = [
        Record(offset, timestamp_ms, name, None, (Header(VALUE_ID, b"%d" % value),))
        if tombstone
        else Record(offset, timestamp_ms, name, b"%d" % value)
        for offset, value in enumerate(values)
    ]
    return encode_batch(records, base_offset=0, leader_epoch=-1)


def values_of(data: bytes, header: BatchHeader) -> tuple[int, ...]:
    """The value ids of a batch's records.

    Args:
        data: the buffer.
        header: the header of the batch in it.

    Returns:
        the ids in order.

    Raises:
        CorruptBatchError: if the records are invalid.
    """
    return contents_of(data, header).values


@frozen
class Contents:
    """The cached content of a batch's records."""

    # Value ids, in order.
    values: tuple[int, ...]
    # The key of each record; empty if no record has one.
    keys: tuple[bytes | None, ...]
    # Indices of records without a value.
    tombstones: frozenset[int]
    # How the values of foreign producers' records begin, by index: with at most STARTS bytes.
    starts: Mapping[int, bytes]

    def key(self, place: int) -> bytes | None:
        """The key of one record."""
        return self.keys[place] if self.keys else None


def contents_of(data: bytes, header: BatchHeader) -> Contents:
    """Value ids, keys and tombstones of a batch.

    Args:
        data: the buffer.
        header: the header of the batch in it.

    Returns:
        the content; cached by the bytes.

    Raises:
        CorruptBatchError: if the records are invalid.
    """
    if header.size > LARGEST_KNOWN or header.count > MOST_KNOWN:
        remembered = _known_huge
    else:
        remembered = _known_under_checksum if header.size <= LARGEST_REMEMBERED else _known_large
    return remembered(data[header.position + CRC_START : header.end_position])


def _decoded(body: bytes) -> Contents:
    """The content of a batch without the leader's fields. Every replica and every reader has the same bytes,
    so they are decoded once."""
    data = header_before(body) + body
    return _contents(each_record(data, unchecked_header(data)))


def _contents(records: Iterator[Record]) -> Contents:
    values: list[int] = []
    keys: list[bytes | None] = []
    tombstones = []
    starts: dict[int, bytes] = {}
    for record in records:
        value = value_of(record)
        if record.value is None:
            tombstones.append(len(values))
        elif value >= FOREIGN:
            starts[len(values)] = record.value[:STARTS]
        values.append(value)
        keys.append(record.key)
    keyed = any(key is not None for key in keys)
    return Contents(tuple(values), tuple(keys) if keyed else (), frozenset(tombstones), starts)


_known_under_checksum = lru_cache(maxsize=KNOWN_BATCHES)(_decoded)
_known_large = lru_cache(maxsize=KNOWN_LARGE_BATCHES)(_decoded)
_known_huge = lru_cache(maxsize=KNOWN_HUGE_BATCHES)(_decoded)


def value_of(record: Record) -> int:
    """The value id of one record."""
    value = record.value
    if record.headers:
        value = next((header.value for header in record.headers if header.key == VALUE_ID), value)
    if value is not None and len(value) <= MAX_DIGITS and value.isdigit():
        return int(value)
    return foreign_id(record.key, value)


def foreign_id(key: bytes | None, value: bytes | None) -> int:
    """The value id of a record that no workload wrote, from its `key` and `value`."""
    if key is not None and key.startswith(OF_BROKERS):
        return NO_VALUE
    lengths = b"%d %d " % (-1 if key is None else len(key), -1 if value is None else len(value))
    digest = blake2b(lengths + (key or b"") + (value or b""), digest_size=8).digest()
    return FOREIGN | int.from_bytes(digest, "big") >> 2


def runs_in_batch(data: bytes, header: BatchHeader) -> list[tuple[int, tuple[int, ...]]]:
    """The runs of records without a gap. There is one, unless the batch was compacted.

    Args:
        data: the buffer.
        header: the header of the batch in it.

    Returns:
        (base offset, value ids) of each run.

    Raises:
        CorruptBatchError: if the records are invalid.
    """
    if header.count == header.last_offset_delta + 1:
        return [(header.base_offset, values_of(data, header))]
    runs: list[tuple[int, tuple[int, ...]]] = []
    for record in each_record(data, header):
        if runs and runs[-1][0] + len(runs[-1][1]) == record.offset:
            runs[-1] = (runs[-1][0], (*runs[-1][1], value_of(record)))
        else:
            runs.append((record.offset, (value_of(record),)))
    return runs
