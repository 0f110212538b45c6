"""Producer snapshots: the state of all producers at an offset, in Kafka's file format, so that a start need
not read the whole log.

Owns the bytes. Version (int16, 1), CRC-32C of the rest (uint32), count (int32), then per producer: id
(int64), epoch (int16), last sequence (int32), last offset (int64), offset delta (int32), timestamp (int64),
coordinator epoch (int32), first offset of its open transaction (int64). Only the last batch of a producer is
kept. A snapshot is a hint: a damaged one is ignored, and the log is read instead.
"""

from collections.abc import Iterator
from struct import Struct

from attrs import frozen
from crc32c import crc32c

from fencepost.impl.log.batch.header import NO_SEQUENCE
from fencepost.impl.log.flaw import Flaw
from fencepost.impl.log.producer.producer_state import (
    LARGEST_SEQUENCE,
    NO_OFFSET,
    ProducedBatch,
    Producer,
    ProducerState,
)

VERSION = 1
_HEAD = Struct(">hIi")
_COUNT = Struct(">i")
_CRC_FROM = _HEAD.size - _COUNT.size
_ENTRY = Struct(">qhiqiqiq")


@frozen(kw_only=True)
class ProducerEntry:
    """An entry of a producer snapshot."""

    # The producer id.
    producer_id: int
    # The producer epoch.
    producer_epoch: int
    # The sequence number of its last record.
    last_sequence: int
    # The offset of its last record.
    last_offset: int
    # Last offset minus first offset of its last batch.
    offset_delta: int
    # The time of its last batch.
    timestamp_ms: int
    # The coordinator epoch of its last marker.
    coordinator_epoch: int
    # The first offset of its open transaction; -1 if there is none.
    current_first_offset: int


def encode_snapshot(state: ProducerState) -> bytes:
    """The bytes of a snapshot; the file name has the offset."""
    body = [_COUNT.pack(len(state.producers))]
    for producer_id, producer in sorted(state.producers.items()):
        last = producer.batches[-1] if producer.batches else None
        body.append(
            _ENTRY.pack(
                producer_id,
                producer.epoch,
                producer.last_sequence,
                last.last_offset if last else NO_OFFSET,
                last.last_offset - last.first_offset if last else 0,
                producer.timestamp_ms,
                producer.coordinator_epoch,
                producer.open_since,
            )
        )
    data = b"".join(body)
    return _HEAD.pack(VERSION, crc32c(data), len(state.producers)) + data[_COUNT.size :]


def decode_snapshot(data: bytes, end_offset: int) -> ProducerState | None:
    """The state at `end_offset`; None if the snapshot is damaged or foreign."""
    state = ProducerState(end_offset=end_offset)
    for one in snapshot_entries(data):
        if isinstance(one, Flaw):
            return None
        producer = Producer(
            one.producer_id,
            one.producer_epoch,
            [],
            one.timestamp_ms,
            one.current_first_offset,
            one.coordinator_epoch,
        )
        if one.last_offset >= 0 and one.last_sequence != NO_SEQUENCE:
            producer.batches.append(
                ProducedBatch(
                    first_sequence=(one.last_sequence - one.offset_delta) & LARGEST_SEQUENCE,
                    last_sequence=one.last_sequence,
                    first_offset=one.last_offset - one.offset_delta,
                    last_offset=one.last_offset,
                    timestamp_ms=one.timestamp_ms,
                )
            )
        state.producers[one.producer_id] = producer
    return state


def snapshot_entries(data: bytes) -> Iterator[ProducerEntry | Flaw]:
    """The producers of a snapshot, and what is wrong with it; after some flaws they are no producers.

    Args:
        data: the bytes of the file.

    Returns:
        entries and flaws, in the order of the file.
    """
    if len(data) < _HEAD.size:
        yield Flaw(position=0, expected=f"a head of {_HEAD.size} bytes", seen=f"{len(data)} bytes")
        return
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        yield Flaw(position=0, expected="a producer snapshot of version 1", seen=f"version {version}")
        return
    computed = crc32c(data[_CRC_FROM:])
    if computed != crc:
        yield Flaw(position=2, expected=f"CRC-32C {crc:08x}", seen=f"{computed:08x}")
    expected = _HEAD.size + count * _ENTRY.size
    if len(data) != expected or count < 0:
        yield Flaw(
            position=_CRC_FROM, expected=f"{count} producers in {expected} bytes", seen=f"{len(data)} bytes"
        )
    for number in range((len(data) - _HEAD.size) // _ENTRY.size):
        fields = _ENTRY.unpack_from(data, _HEAD.size + number * _ENTRY.size)
        producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, first = fields
        yield ProducerEntry(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=sequence,
            last_offset=offset,
            offset_delta=delta,
            timestamp_ms=timestamp_ms,
            coordinator_epoch=coordinator_epoch,
            current_first_offset=first,
        )
