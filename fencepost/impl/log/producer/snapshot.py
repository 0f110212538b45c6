"""Producer snapshots: the state of all producers at an offset, in Kafka's file format, so that a start need
not read the whole log.

Owns the bytes. Version (int16, 1), CRC-32C of the rest (uint32), count (int32), then per producer: id
(int64), epoch (int16), last sequence (int32), last offset (int64), offset delta (int32), timestamp (int64),
coordinator epoch (int32), first offset of its open transaction (int64). Only the last batch of a producer is
kept. A snapshot is a hint: a damaged one is ignored, and the log is read instead.
"""

from struct import Struct, error

from crc32c import crc32c

from fencepost.impl.log.batch.header import NO_SEQUENCE
from fencepost.impl.log.producer.state import (
    LARGEST_SEQUENCE,
    NO_OFFSET,
    ProducedBatch,
    Producer,
    ProducerState,
)

VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


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
    return _HEAD.pack(VERSION, crc32c(data)) + data


def decode_snapshot(data: bytes, end_offset: int) -> ProducerState | None:
    """The state at `end_offset`; None if the snapshot is damaged or foreign."""
    try:
        version, crc = _HEAD.unpack_from(data)
        body = data[_HEAD.size :]
        if version != VERSION or crc32c(body) != crc:
            return None
        (count,) = _COUNT.unpack_from(body)
        entries = list(_ENTRY.iter_unpack(body[_COUNT.size :]))
    except error:
        return None
    if len(entries) != count:
        return None
    state = ProducerState(end_offset=end_offset)
    for producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, open_since in entries:
        producer = Producer(producer_id, epoch, [], timestamp_ms, open_since, coordinator_epoch)
        if offset >= 0 and sequence != NO_SEQUENCE:
            producer.batches.append(
                ProducedBatch(
                    first_sequence=(sequence - delta) & LARGEST_SEQUENCE,
                    last_sequence=sequence,
                    first_offset=offset - delta,
                    last_offset=offset,
                    timestamp_ms=timestamp_ms,
                )
            )
        state.producers[producer_id] = producer
    return state
