"""Kafka's record batch, format version 2, and its records. A batch is the unit of producing, storing,
fetching, compressing and truncating.

Owns the bytes of the records, and how a batch is built. Must not know files, logs, or the writer of a batch.
A record, with all numbers as varints: length of the rest, attributes (one byte, unused), time delta, offset
delta, key, value, headers. A length comes before bytes, -1 for null. header.py has the batch header; other
modules import all of it from here.
"""

import struct
from collections.abc import Iterator, Sequence

from attrs import frozen
from crc32c import crc32c

from fencepost.impl.log.batch.compression import CODECS, DecompressionError, compress, decompress
from fencepost.impl.log.batch.header import (
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    Bytes,
    CorruptBatchError,
    Damage,
    TimestampType,
    read_header,
    read_headers,
)
from fencepost.impl.log.batch.record_walk import fields, nullable_bytes, spans, walk
from fencepost.impl.log.batch.varint import encode_varint
from fencepost.traces.making import maker_of

__all__ = [
    "CODECS",
    "HEADER_SIZE",
    "LENGTH_END",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "BatchHeader",
    "CorruptBatchError",
    "Damage",
    "Header",
    "Record",
    "TimestampType",
    "check_records",
    "each_body",
    "each_record",
    "encode_batch",
    "read_header",
    "read_headers",
    "read_records",
    "split_body",
    "with_leader_fields",
]

_PREFIX = struct.Struct(">qiib")
_CRC = struct.Struct(">I")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_EPOCH_START, _EPOCH_END = 12, 16
_NO_RECORDS = (IndexError, ValueError, DecompressionError)
"""What the walk over bytes that are no records raises."""


@frozen
class Header:
    """A header of a record."""

    # UTF-8; invalid bytes become lone surrogates and are written back unchanged.
    key: str
    value: bytes | None


@frozen(weakref_slot=False)
class Record:
    """One record."""

    offset: int
    # -1 if it has none; in a batch of type log append it is that of the batch. A value of None is a tombstone
    # in a compacted topic.
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


_record_of = maker_of(Record, keywords=False)


# ---- writing


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int,
    leader_epoch: int,
    codec: str = "none",
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    last_offset_delta: int | None = None,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
    empty_timestamp_ms: int = NO_TIMESTAMP,
) -> bytes:
    """The bytes of one batch.

    Args:
        records: with ascending offsets, all at or after base_offset. A batch may have no records if it is
            only kept for its producer's state.
        base_offset: the first offset.
        leader_epoch: the leader epoch; -1 in a produced batch.
        codec: one of compression.CODECS; a batch without records has none, as Kafka's.
        producer_id, producer_epoch, base_sequence: of an idempotent producer; -1 otherwise.
        transactional: whether the batch is part of a transaction.
        control: whether the records are control records.
        last_offset_delta: needed if records at the end are missing.
        log_append_time_ms: the broker's time, for the whole batch; None: the records have their own.
        delete_horizon_ms: when tombstones may be removed; None if that is not decided.
        empty_timestamp_ms: the old time of a batch without records.

    Returns:
        the bytes.
    """
    attributes = (
        (CODECS.index(codec) if records else 0)
        | (LOG_APPEND_TIME if log_append_time_ms is not None else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (DELETE_HORIZON if delete_horizon_ms is not None else 0)
    )
    if records:
        base_ms, max_ms = records[0].timestamp_ms, max(record.timestamp_ms for record in records)
        last_delta = records[-1].offset - base_offset
        assert last_offset_delta is None or last_offset_delta >= last_delta, (last_offset_delta, last_delta)
    else:
        assert last_offset_delta is not None, "an empty batch says what offsets it spans"
        base_ms = max_ms = empty_timestamp_ms
        last_delta = last_offset_delta
    if delete_horizon_ms is not None:
        base_ms = delete_horizon_ms
    body = compress(codec, _encode_records(records, base_offset, base_ms)) if records else b""
    covered = _AFTER_CRC.pack(
        attributes,
        last_delta if last_offset_delta is None else last_offset_delta,
        base_ms,
        max_ms if log_append_time_ms is None else log_append_time_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    crc = crc32c(body, crc32c(covered))
    size = HEADER_SIZE + len(body)
    return b"".join(
        (_PREFIX.pack(base_offset, size - LENGTH_END, leader_epoch, MAGIC), _CRC.pack(crc), covered, body)
    )


def _encode_records(records: Sequence[Record], base_offset: int, base_timestamp_ms: int) -> bytes:
    varint, before = encode_varint, -1
    parts: list[bytes] = []
    for record in records:
        delta, key, value = record.offset - base_offset, record.key, record.value
        assert delta > before, f"offset {record.offset} does not ascend in a batch from {base_offset}"
        before = delta
        body = b"".join(
            (
                b"\x00",
                varint(record.timestamp_ms - base_timestamp_ms),
                varint(delta),
                b"\x01" if key is None else varint(len(key)) + key,
                b"\x01" if value is None else varint(len(value)) + value,
                _encode_headers(record.headers) if record.headers else b"\x00",
            )
        )
        parts += (varint(len(body)), body)
    return b"".join(parts)


def _encode_headers(headers: tuple[Header, ...]) -> bytes:
    parts = [encode_varint(len(headers))]
    for header in headers:
        key = header.key.encode("utf-8", "surrogateescape")
        parts += (encode_varint(len(key)), key)
        parts += (b"\x01",) if header.value is None else (encode_varint(len(header.value)), header.value)
    return b"".join(parts)


def with_leader_fields(data: Bytes, *, base_offset: int, leader_epoch: int) -> bytes:
    """A produced batch with the leader's fields set. The checksum covers neither of them.

    Args:
        data: one batch.
        base_offset: the offset of its first record in the log.
        leader_epoch: the epoch of the leader that appends it.

    Returns:
        the bytes to append.
    """
    return b"".join(
        (
            base_offset.to_bytes(8, "big", signed=True),
            data[8:_EPOCH_START],
            leader_epoch.to_bytes(4, "big", signed=True),
            data[_EPOCH_END:],
        )
    )


# ---- reading


def read_records(data: Bytes, header: BatchHeader) -> tuple[Record, ...]:
    """The records of a batch.

    Args:
        data: the buffer.
        header: the header of the batch in it.

    Returns:
        the records.

    Raises:
        CorruptBatchError: if the records are invalid.
    """
    return tuple(each_record(data, header))


def each_record(data: Bytes, header: BatchHeader) -> Iterator[Record]:
    """As `read_records`, one record at a time. A small batch of many records is then never in memory as a
    whole.

    Args:
        data: the buffer.
        header: the header of the batch in it.

    Returns:
        the records.

    Raises:
        CorruptBatchError: possibly after yielding the records before the bad one.
    """
    base_offset, base_ms = header.base_offset, header.base_timestamp_ms
    stamped = header.max_timestamp_ms if header.attributes & LOG_APPEND_TIME else None
    try:
        payload = _payload(data, header)
        for time_delta, delta, key, value, headers in fields(payload, header.count, header.last_offset_delta):
            yield _record_of(
                base_offset + delta,
                base_ms + time_delta if stamped is None else stamped,
                key,
                value,
                _headers_of(headers) if headers else (),
            )
    except _NO_RECORDS as error:
        raise _bad_records(header, error) from None


def _headers_of(headers: Sequence[tuple[bytes, bytes | None]]) -> tuple[Header, ...]:
    return tuple([Header(key.decode("utf-8", "surrogateescape"), value) for key, value in headers])


def check_records(data: Bytes, header: BatchHeader) -> None:
    """Verify all records, as `read_records` does, without creating objects.

    Args:
        data: the buffer.
        header: the header of the batch in it.

    Raises:
        CorruptBatchError: at the first bad record.
    """
    try:
        walk(_payload(data, header), header.count, header.last_offset_delta)
    except _NO_RECORDS as error:
        raise _bad_records(header, error) from None


def each_body(data: Bytes, header: BatchHeader) -> Iterator[tuple[int, bytes]]:
    """The bytes of each record from its key's length on: what its producer wrote, without offset and time.
    They, and its offset, may be anything.

    Args:
        data: the buffer.
        header: the header of the batch in it.

    Returns:
        (offset delta, bytes) of each record.

    Raises:
        CorruptBatchError: possibly after yielding the records before the bad one.
    """
    try:
        payload = _payload(data, header)
        for _, delta, start, end in spans(payload, header.count):
            yield delta, payload[start:end]
    except _NO_RECORDS as error:
        raise _bad_records(header, error) from None


def split_body(body: bytes, header: BatchHeader) -> tuple[bytes | None, bytes]:
    """A record's key, and the bytes of its value and headers.

    Args:
        body: of `each_body`.
        header: the header of its batch.

    Returns:
        (key, the rest).

    Raises:
        CorruptBatchError: if the key is none.
    """
    try:
        key, position = nullable_bytes(body, 0)
    except _NO_RECORDS as error:
        raise _bad_records(header, error) from None
    return key, body[position:]


def _payload(data: Bytes, header: BatchHeader) -> bytes:
    payload = bytes(data[header.position + HEADER_SIZE : header.end_position])
    return decompress(header.codec, payload) if header.codec != "none" and payload else payload


def _bad_records(header: BatchHeader, error: Exception) -> CorruptBatchError:
    return CorruptBatchError(
        Damage.RECORDS,
        header.position,
        expected=f"{header.count} records, codec {header.codec}",
        seen=str(error) if not isinstance(error, IndexError) else "records that end too early",
    )
