"""record_walk.walk as machine code: importing this loads a compiler.

Owns one function. It says "good", with the summary of `walk`, or that `walk` must decide. Must not say what
is wrong with a record. Sound, not complete: numbers of more than nine bytes are left to `walk`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from numba import int64, njit, types

LAST_BYTE = 0x80
"""The last byte of a number is below this."""
LONGEST_NUMBER = 63
"""Bits of a number, in nine bytes: as a signed integer none is negative, and no sum of a position and a
length overflows."""
ASK_WALK = -1
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@njit(cache=True)
def _number(data, position, end):
    """(the number in zigzag form, the position after it); position -1 if it is too long or not there."""
    if position >= end:
        return 0, -1
    number = int64(data[position])
    position += 1
    if number < LAST_BYTE:
        return number, position
    number, shift = number - LAST_BYTE, 7
    while position < end and shift < LONGEST_NUMBER:
        byte = int64(data[position])
        position += 1
        if byte < LAST_BYTE:
            return number | byte << shift, position
        number |= (byte - LAST_BYTE) << shift
        shift += 7
    return 0, -1


@njit(cache=True)
def _after_bytes(data, position, end):
    """(the position after a length and as many bytes, whether the length is null); position -1 if that is
    beyond the end, or the length below null."""
    zigzag, position = _number(data, position, end)
    if position < 0 or zigzag & 1:
        return (position if zigzag == 1 else -1), True
    length = zigzag >> 1
    return (position + length if length <= end - position else -1), False


@njit(cache=True)
def _after_headers(data, position, end):
    """The position after the headers; -1 if something is odd."""
    zigzag, position = _number(data, position, end)
    if position < 0 or zigzag & 1 or zigzag >> 1 > end - position:
        return -1
    for _ in range(zigzag >> 1):
        position, null = _after_bytes(data, position, end)
        if position < 0 or null:
            return -1
        position, null = _after_bytes(data, position, end)
        if position < 0:
            return -1
    return position


_BYTES = types.Bytes(types.uint8, 1, "C", readonly=True)


@njit([types.UniTuple(int64, 3)(_BYTES, int64, int64, int64)], cache=True)
def walk_of(data, position, count, last_delta):
    """Check records as `walk` does.

    Args:
        data: ends with the records.
        position: of the first record.
        count: the number of records, above 0.
        last_delta: the last offset delta that is allowed.

    Returns:
        records without a key, largest and smallest time delta; ASK_WALK instead of the first if `walk` must
        decide.
    """
    before, keyless, largest, smallest = -1, 0, _LEAST, _MOST
    for _ in range(count):
        zigzag, position = _number(data, position, len(data))
        if position < 0 or zigzag & 1 or zigzag >> 1 > len(data) - position:
            return ASK_WALK, 0, 0
        end = position + (zigzag >> 1)
        zigzag, position = _number(data, position + 1, end)  # after the unused attributes byte
        if position < 0:
            return ASK_WALK, 0, 0
        time_delta = (zigzag >> 1) ^ -(zigzag & 1)
        largest, smallest = max(largest, time_delta), min(smallest, time_delta)
        zigzag, position = _number(data, position, end)
        offset_delta = zigzag >> 1
        if position < 0 or zigzag & 1 or not before < offset_delta <= last_delta:
            return ASK_WALK, 0, 0
        before = offset_delta
        position, null = _after_bytes(data, position, end)
        keyless += null
        if position >= 0:
            position, null = _after_bytes(data, position, end)
        if position >= 0:
            position = _after_headers(data, position, end)
        if position != end:
            return ASK_WALK, 0, 0
    return (keyless if position == len(data) else ASK_WALK), largest, smallest
