"""Variable-length integers of Kafka's records: zigzag, then seven bits per byte, lowest first.

Owns both directions. Must not know the meaning of the numbers. Kafka calls a 32-bit one varint and a 64-bit
one varlong; the bytes differ only in their maximum number
(https://kafka.apache.org/documentation/#recordbatch,
https://protobuf.dev/programming-guides/encoding/#varints).
"""

MOST_BYTES = 10
"""A 64-bit number fits ten groups of seven bits. An eleventh byte is corruption."""


def _encode(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


_LOWEST = -1
_COMMON = tuple(_encode(value) for value in range(_LOWEST, 2_048))
"""Precomputed bytes. Lengths, offset deltas and most time deltas are small and not negative; -1 means
null."""


def encode_varint(value: int) -> bytes:
    """The bytes of a number of at most 64 bits."""
    if _LOWEST <= value < 2_047:
        return _COMMON[value - _LOWEST]
    assert -(1 << 63) <= value < 1 << 63, f"{value} has more than 64 bits"
    return _encode(value)


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """(number, position after it). Raises IndexError if the data ends inside it, ValueError if it is too
    long."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    zigzag, shift, start = byte & 0x7F, 7, position
    while byte >= 0x80:
        position += 1
        if position - start == MOST_BYTES:
            raise ValueError(f"a number of more than {MOST_BYTES} bytes at byte {start}")
        byte = data[position]
        zigzag |= (byte & 0x7F) << shift
        shift += 7
    if zigzag >> 64:
        raise ValueError(f"a number of more than 64 bits at byte {start}")
    return (zigzag >> 1) ^ -(zigzag & 1), position + 1


def encode_unsigned(value: int) -> bytes:
    """The bytes of a number without zigzag, as compact lengths and tags have them."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_unsigned(data: bytes, position: int) -> tuple[int, int]:
    """(number, position after it). Raises IndexError, ValueError as `decode_varint`."""
    value, shift, start = 0, 0, position
    while True:
        if position - start == MOST_BYTES:
            raise ValueError(f"a number of more than {MOST_BYTES} bytes at byte {start}")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
