"""The words and the JSON of `fencepost log dump`: batches, records, times, payloads.

Owns how each is written, and the escaping of foreign text in a log. Must not know files, or the order of
the output.
"""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import msgspec

from fencepost.impl.log.batch.control_records import control_type, end_transaction_of
from fencepost.impl.log.batch.record_batch import BatchHeader, Record
from fencepost.impl.log.dump.dump import BatchSeen, Extent
from fencepost.report.event_words import printable

LONGEST_PAYLOAD = 200
"""Characters of a key or a value in the output for a person; JSON has all of it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_in_words(timestamp_ms: int) -> str:
    """A Kafka time in UTC as people write it; the number itself if no calendar has it."""
    if timestamp_ms == -1:
        return "none"
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds")[:-6] + "Z"
    except OverflowError:
        return str(timestamp_ms)


def value_in_words(name: str, value: Any) -> str:
    """A field of a small file. name: decides how the value is written."""
    return time_in_words(value) if name.endswith("timestamp_ms") else printable(str(value))


def batch_in_words(seen: BatchSeen) -> str:
    """A batch on one line."""
    header = seen.header
    producer = (
        f" producer {header.producer_id} epoch {header.producer_epoch}"
        f" sequence {header.base_sequence}..{header.last_sequence}"
        if header.producer_id >= 0
        else ""
    )
    marks = (" transactional" if header.is_transactional else "") + (" control" if header.is_control else "")
    horizon = header.delete_horizon_ms
    deletes = "" if horizon is None else f" delete horizon {time_in_words(horizon)}"
    crc = "good" if seen.computed_crc is None else "BAD"
    return (
        f"  at {header.position} offset {header.base_offset}..{header.last_offset} records {header.count}"
        f" size {header.size} epoch {header.leader_epoch} {header.timestamp_type} time "
        f"{time_in_words(header.max_timestamp_ms)}"
        f" codec {header.codec}{producer}{marks}{deletes} crc {header.crc:08x} {crc}"
    )


def record_in_words(record: Record, header: BatchHeader) -> str:
    """A record on one line. header: of its batch."""
    headers = "".join(f" {printable(item.key)}={_payload(item.value)}" for item in record.headers)
    text = (
        f"    offset {record.offset} time {time_in_words(record.timestamp_ms)}"
        f" key {_payload(record.key)} value {_payload(record.value)}{headers and ' headers' + headers}"
    )
    if not header.is_control:
        return text
    kind, marker = control_type(record), end_transaction_of(record)
    words = "unknown" if kind is None else kind.name.lower().replace("_", " ")
    return f"{text} control {words}" + (f" coordinator epoch {marker.coordinator_epoch}" if marker else "")


def _payload(data: bytes | None) -> str:
    return (
        "null"
        if data is None
        else f"'{printable(data.decode('utf-8', 'backslashreplace'), LONGEST_PAYLOAD)}'"
    )


def how_far(extent: Extent, size: int) -> str:
    """What a segment contains, and where its intact part ends. extent: of the intact part; size: of the file
    in bytes."""
    upto = "" if extent.next_offset is None else f", up to offset {extent.next_offset}"
    counted = f"{extent.batches} batches, {extent.records} records"
    if extent.good_bytes == size:
        return f"  {counted}; good to its end{upto}"
    return f"  {counted}; good for the first {extent.good_bytes} of {max(size, 0)} bytes{upto}"


def encoded(value: Any) -> str:
    """A value as JSON."""
    return msgspec.json.encode(value).decode()


def batch_as_dict(seen: BatchSeen) -> dict[str, Any]:
    """A batch for a program, without its records."""
    header = seen.header
    return attrs.asdict(header) | {
        "last_offset": header.last_offset,
        "last_sequence": header.last_sequence,
        "codec": header.codec,
        "timestamp_type": str(header.timestamp_type),
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "crc_is_valid": seen.computed_crc is None,
    }


def record_as_dict(record: Record) -> dict[str, Any]:
    """A record for a program."""
    return {
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _lossless(record.key),
        "value": _lossless(record.value),
        "headers": [
            [_lossless(item.key.encode("utf-8", "surrogateescape")), _lossless(item.value)]
            for item in record.headers
        ],
    }


def _lossless(data: bytes | None) -> Any:
    """Text where it is text, else {"base64": ...}."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
