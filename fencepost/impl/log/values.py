"""Value ids as records: what a workload writes is a number, and the record's value is that number in decimal digits.

Owns the mapping between value ids and record batches. Must not know who asks. The id of a tombstone, or of a value that means something else, travels in a
header. Records that some other producer wrote have no value id: NO_VALUE.
"""

from collections.abc import Iterator
from functools import lru_cache

from fencepost.impl.log.batch.header import (
    CRC_START,
    BatchHeader,
    header_before,
    read_headers,
    unchecked_header,
)
from fencepost.impl.log.batch.record_batch import Header, Record, each_record, encode_batch
from fencepost.impl.log.segmented_log import SegmentedLog

NO_VALUE = -1
KNOWN_BATCHES = 4096
"""Batches whose value ids are remembered: more than are on their way through a cluster at once."""
KNOWN_BATCH_BYTES = 16 * 1024
"""A larger batch is decoded each time: KNOWN_BATCHES of the largest would be 4 GB. Kafka's producers fill batches of 16 KiB (batch.size)."""
MAX_DIGITS = 19
"""Of a 64-bit number: a longer value is no value id."""
VALUE_ID = "value-id"
"""The header that tells a record's value id, whatever its value is."""


def batch_of(
    values: tuple[int, ...], *, timestamp_ms: int = 0, key: str = "", tombstone: bool = False
) -> bytes:
    """A produced batch: offsets count from 0, its leader will stamp offset and epoch. key: of all its records, "" for none."""
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
    """The value ids of a batch's records, in order. Raises CorruptBatchError."""
    if header.size > KNOWN_BATCH_BYTES:
        return tuple(value_of(record) for record in each_record(data, header))
    return _values_under_checksum(data[header.position + CRC_START : header.end_position])


@lru_cache(maxsize=KNOWN_BATCHES)
def _values_under_checksum(body: bytes) -> tuple[int, ...]:
    """Of a batch without what its leader stamped: every replica and every reader meets the same bytes, and they are decoded once."""
    data = header_before(body) + body
    return tuple(value_of(record) for record in each_record(data, unchecked_header(data)))


def value_of(record: Record) -> int:
    """The value id of one record."""
    value = record.value
    if record.headers:
        value = next((header.value for header in record.headers if header.key == VALUE_ID), value)
    return int(value) if value is not None and len(value) <= MAX_DIGITS and value.isdigit() else NO_VALUE


def batches_of(data: bytes, *, check_crc: bool = True) -> Iterator[tuple[BatchHeader, tuple[int, ...]]]:
    """The batches of a buffer with their value ids. check_crc: not needed where a log has looked at every byte already. Raises CorruptBatchError."""
    for header in read_headers(data, check_crc=check_crc):
        yield header, values_of(data, header)


def runs_in_batch(data: bytes, header: BatchHeader) -> list[tuple[int, tuple[int, ...]]]:
    """(base offset, value ids) of each run of records without a gap: a single one, unless the batch was compacted. Raises CorruptBatchError."""
    if header.count == header.last_offset_delta + 1:
        return [(header.base_offset, values_of(data, header))]
    runs: list[tuple[int, tuple[int, ...]]] = []
    for record in each_record(data, header):
        if runs and runs[-1][0] + len(runs[-1][1]) == record.offset:
            runs[-1] = (runs[-1][0], (*runs[-1][1], value_of(record)))
        else:
            runs.append((record.offset, (value_of(record),)))
    return runs


def runs_of(log: SegmentedLog) -> list[tuple[int, int, tuple[int, ...]]]:
    """(leader epoch, base offset, value ids) of each run of records of one epoch without a gap; one empty run for an empty log."""
    runs: list[tuple[int, int, tuple[int, ...]]] = []
    for header, data in log.batches():
        for base_offset, values in runs_in_batch(data, header):
            if runs and runs[-1][0] == header.leader_epoch and runs[-1][1] + len(runs[-1][2]) == base_offset:
                epoch, base, before = runs[-1]
                runs[-1] = (epoch, base, before + values)
            else:
                runs.append((header.leader_epoch, base_offset, values))
    return runs or [(-1, log.log_end_offset, ())]
