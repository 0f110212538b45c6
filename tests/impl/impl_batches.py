"""Batches that no producer of ours makes."""

from struct import pack_into

from crc32c import crc32c

from fencepost.impl.log.batch.compression import compress
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.batch.varint import encode_varint


def tiny_records(count: int) -> bytes:
    """A produced batch of as many of the smallest records, compressed to next to nothing."""
    parts: list[bytes] = []
    for number in range(count):
        delta = encode_varint(number)
        parts += (encode_varint(5 + len(delta)), b"\0\0", delta, b"\x01\x01\0")
    one = encode_batch([Record(0, 0, None, None)], base_offset=0, leader_epoch=-1, codec="zstd")
    data = bytearray(one[:61] + compress("zstd", b"".join(parts)))
    pack_into(">i", data, 8, len(data) - 12)
    pack_into(">i", data, 23, count - 1)
    pack_into(">i", data, 57, count)
    pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)
