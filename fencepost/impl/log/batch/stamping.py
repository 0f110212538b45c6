"""A broker's time in a produced batch (message.timestamp.type=LogAppendTime, KIP-32).

Owns the three fields that change: the attribute, the largest timestamp, the checksum. The records stay as they are; whoever reads them takes the
batch's time for all of them.
"""

from struct import Struct

from attrs import evolve
from crc32c import crc32c

from fencepost.impl.log.batch.header import CRC_START, LOG_APPEND_TIME, BatchHeader

_CRC_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 17, 21, 35
_CRC, _ATTRIBUTES, _TIMESTAMP = Struct(">I"), Struct(">h"), Struct(">q")


def with_append_time(data: bytes, header: BatchHeader, now_ms: int) -> tuple[bytes, BatchHeader]:
    """The batch and its header with the broker's time."""
    attributes = header.attributes | LOG_APPEND_TIME
    stamped = bytearray(data)
    _ATTRIBUTES.pack_into(stamped, _ATTRIBUTES_AT, attributes)
    _TIMESTAMP.pack_into(stamped, _MAX_TIMESTAMP_AT, now_ms)
    crc = crc32c(memoryview(stamped)[CRC_START:])
    _CRC.pack_into(stamped, _CRC_AT, crc)
    return bytes(stamped), evolve(header, attributes=attributes, max_timestamp_ms=now_ms, crc=crc)
