"""The broker's time in a produced batch (message.timestamp.type=LogAppendTime, KIP-32), and the correct
maximum of its records' times.

Owns the three fields that change: the attribute, the largest timestamp, the checksum. The records stay
unchanged; if the attribute is set, readers use the batch's time for all of them.
"""

from struct import Struct

from attrs import evolve
from crc32c import crc32c

from fencepost.impl.log.batch.header import CRC_START, LOG_APPEND_TIME, BatchHeader

_CRC_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 17, 21, 35
_CRC, _ATTRIBUTES, _TIMESTAMP = Struct(">I"), Struct(">h"), Struct(">q")


def with_append_time(data: bytes, header: BatchHeader, now_ms: int) -> tuple[bytes, BatchHeader]:
    """Set the broker's time in a batch.

    Args:
        data: one batch.
        header: its header.
        now_ms: the broker's time in milliseconds.

    Returns:
        the new batch and its header.
    """
    attributes = header.attributes | LOG_APPEND_TIME
    stamped = bytearray(data)
    _ATTRIBUTES.pack_into(stamped, _ATTRIBUTES_AT, attributes)
    crc = _stamp(stamped, now_ms)
    return bytes(stamped), evolve(header, attributes=attributes, max_timestamp_ms=now_ms, crc=crc)


def with_max_timestamp(data: bytes, max_timestamp_ms: int) -> bytes:
    """The batch with the correct largest timestamp, in case its producer wrote another one. Indexes and
    retention depend on it.

    Args:
        data: one batch.
        max_timestamp_ms: the largest time of its records.

    Returns:
        the batch with this field and the checksum replaced.
    """
    stamped = bytearray(data)
    _stamp(stamped, max_timestamp_ms)
    return bytes(stamped)


def _stamp(batch: bytearray, max_timestamp_ms: int) -> int:
    """Write the time and the new checksum; returns the checksum."""
    _TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, max_timestamp_ms)
    crc = crc32c(memoryview(batch)[CRC_START:])
    _CRC.pack_into(batch, _CRC_AT, crc)
    return crc
