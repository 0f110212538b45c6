"""Verify the structure of a batch's records without creating an object per record.

Owns two forms of one rule. `walk`, in plain Python, decides. `screen`, over whole columns with numpy, only
says "good" or "ask walk". Must not know the writer of a batch. Both accept exactly what
record_batch.read_records reads. The second form is for speed (docs/decisions/record-validation.md;
bench/validation.py). tests/impl/log/test_record_walk.py compares walk with read_records, and screen with
walk.
"""

from functools import lru_cache
from typing import Any

from attrs import frozen

from fencepost.impl.log.batch.varint import decode_varint

SMALLEST_RECORD = 7
"""The bytes of the smallest record: length, attributes, two deltas, two null lengths and a count. More
records than the bytes can hold mean corruption."""
SCREENED_RECORDS = 96
"""From this many records on, columns are faster than a loop (bench/validation.py). Below, numpy's fixed cost
is higher than the loop's."""
SCREENED_BYTES = 4 * 1024 * 1024
"""The columns temporarily take about four times the records' bytes. Larger batches are walked, which needs no
memory."""
_MOST_SCREENED = 1 << 13
"""Smaller offset deltas have at most two bytes."""
_LONGEST_SCREENED = 5
"""The most bytes of a number that the screen reads: 34 bits of milliseconds are 198 days."""
_KNOWN_COUNTS = 32
"""The number of record counts with cached offset deltas: a producer's batches mostly have the same size."""


_TIME_BOUND = 1 << 63


@frozen
class Walked:
    """A summary of the records of a batch."""

    largest_time_delta_ms: int
    """The largest time of all records relative to the batch's base timestamp; -2^63 without records."""
    smallest_time_delta_ms: int
    """The smallest time likewise; 2^63 without records."""
    keyless: int
    """The number of records without a key."""


def examine(data: bytes, count: int, last_delta: int) -> Walked:
    """Verify the structure of all records of a batch, by the faster of the two forms.

    data: the records, decompressed. count: their number by the header. last_delta: the header's last offset
    delta; offset deltas ascend up to it. Raises ValueError or IndexError if the records are invalid.
    """
    if SCREENED_RECORDS <= count == last_delta + 1 and len(data) <= SCREENED_BYTES:
        found = screen(data, count)
        if found is not None:
            return found
    return walk(data, count, last_delta)


def walk(data: bytes, count: int, last_delta: int) -> Walked:  # noqa: PLR0915  (a call a field would cost twice as much)
    """As `examine`, record by record, in constant memory.

    Numbers stay in zigzag form: an even one is twice a number from 0 up, an odd one is negative. Numbers of
    one or two bytes, the usual case, are read without a call.

    Args:
        data: the records, decompressed.
        count: their number by the header.
        last_delta: the header's last offset delta.

    Returns:
        a summary of the records.

    Raises:
        ValueError, IndexError: if the records are invalid.
    """
    if not 0 <= count <= len(data) // SMALLEST_RECORD:
        raise ValueError(f"{len(data)} bytes")
    zigzag, position, before, keyless, highest_delta = _zigzag, 0, -1, 0, 2 * last_delta
    largest, smallest = -_TIME_BOUND, _TIME_BOUND
    for _ in range(count):
        if (byte := data[position]) < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            byte, position = byte & 0x7F | high << 7, position + 2
        else:
            byte, position = zigzag(data, position)
        if byte & 1:
            raise ValueError(f"a record of {-(byte + 1) // 2} bytes")
        end = position + (byte >> 1)
        position += 1  # the unused attributes byte
        if (byte := data[position]) < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            byte, position = byte & 0x7F | high << 7, position + 2
        else:
            byte, position = zigzag(data, position)
        time_delta = (byte >> 1) ^ -(byte & 1)
        if time_delta > largest:
            largest = time_delta
        if time_delta < smallest:
            smallest = time_delta
        if (byte := data[position]) < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            byte, position = byte & 0x7F | high << 7, position + 2
        else:
            byte, position = zigzag(data, position)
        if not before < byte <= highest_delta or byte & 1:
            raise ValueError(f"an offset delta that is not between {before // 2} and {last_delta + 1}")
        before = byte
        if (byte := data[position]) < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            byte, position = byte & 0x7F | high << 7, position + 2
        else:
            byte, position = zigzag(data, position)
        if byte & 1:
            keyless += _null(byte)
        else:
            position += byte >> 1
        if (byte := data[position]) < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            byte, position = byte & 0x7F | high << 7, position + 2
        else:
            byte, position = zigzag(data, position)
        if byte & 1:
            _null(byte)
        else:
            position += byte >> 1
        position = _after_headers(data, position) if data[position] else position + 1
        if position != end:
            raise ValueError(f"a record: its fields end at byte {position}, not at {end}")
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes after the last record")
    return Walked(largest, smallest, keyless)


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    """A number of any length in zigzag form, and the position after it."""
    number, position = decode_varint(data, position)
    return (number << 1) ^ (number >> 63), position


def _null(zigzag: int) -> int:
    """1 for null."""
    if zigzag != 1:
        raise ValueError(f"a length of {-(zigzag + 1) // 2}")
    return 1


def _after_bytes(data: bytes, position: int) -> int:
    length, position = _zigzag(data, position)
    return position + (0 if length & 1 and _null(length) else length >> 1)


def _after_headers(data: bytes, position: int) -> int:
    """The position after the headers. One-byte lengths that are not null, the usual case, are read without a
    call."""
    count, position = decode_varint(data, position)
    if not 0 <= count <= len(data) - position:
        raise ValueError(f"{count} headers in {len(data) - position} bytes")
    for _ in range(count):
        byte = data[position]
        if byte & 0x81 == 0:
            position += 1 + (byte >> 1)
        elif byte == 1:
            raise ValueError("a header without a key")
        else:
            position = _after_bytes(data, position)
        byte = data[position]
        position = position + 1 + (byte >> 1) if byte & 0x81 == 0 else _after_bytes(data, position)
    return position


# ---- whole columns


def screen(data: bytes, count: int) -> Walked | None:
    """The result of `walk` for a batch with the offset deltas 0 to count - 1; None if only `walk` can decide.

    Sound, not complete. The screen guesses the beginning of each record: a byte of no headers, then a length
    with as many bytes as the first record's (one or two), then an attributes byte of 0. The guess counts only
    if all lengths agree: each record ends where the next one begins, the last one at the end of the data.
    Records with headers, with set attributes, or with lengths of different widths are left to `walk`. Columns
    are compared as bytes; for some hundred records that costs a quarter of numpy's own reductions.
    """
    import numpy as np  # imported late: a broker without large batches saves the memory

    expected = _expected_deltas(count)
    if expected is None:
        return None
    try:
        octets, width = np.frombuffer(data, np.uint8), 1 + (data[0] >> 7)
        starts, ends = _places(np, octets, count, width)
        position = starts + (width + 1)
        time_deltas, position = _numbers(np, octets, position)
        first, second, widths = expected
        if octets[position].tobytes() != first or octets[position[-len(second) :] + 1].tobytes() != second:
            return None
        position += widths
        key, position = _numbers(np, octets, position)
        keyless = _nulls(key, count)
        position += key >> 1
        value, position = _numbers(np, octets, position)
        nulls = _nulls(value, count)
        position += value >> 1
        headers = octets[position].tobytes()
    except (IndexError, _NotScreenedError):
        return None
    position += 1
    if headers.count(0) != count or position.tobytes() != ends.tobytes() or keyless < 0 or nulls < 0:
        return None
    time_deltas = (time_deltas >> 1) ^ -(time_deltas & 1)
    return Walked(int(time_deltas.max()), int(time_deltas.min()), keyless)


class _NotScreenedError(Exception):
    """A case that the screen leaves to `walk`."""


def _places(np: Any, octets: Any, count: int, width: int) -> tuple[Any, Any]:
    """The beginnings and ends of the records, if the guess agrees with every length. Raises IndexError or
    _NotScreenedError if it does not."""
    zero, step = octets == 0, width + 1
    found = np.flatnonzero(zero[:-step] & zero[step:])
    starts = np.zeros(len(found) + 1, np.intp)
    np.add(found, 1, out=starts[1:])
    low = octets[starts]
    ends = starts + ((low >> 1) & 0x3F)
    ends += width
    good = low & 0x81
    if width > 1:
        high = octets[starts + 1]
        ends += high.astype(np.intp) << 6
        good = (good ^ 0x80) | (high & 0x80)
    if len(starts) > count:  # zeros inside values look like records, but almost none leads to another one
        known = np.zeros(len(octets) + 1, np.bool_)
        known[starts] = known[-1] = True
        kept = (good == 0) & known[np.minimum(ends, len(octets))]
        starts, ends, good = starts[kept], ends[kept], good[kept]
    agree = len(starts) == count and not good.any() and ends[-1] == len(octets) and starts[0] == 0
    if not agree or ends[:-1].tobytes() != starts[1:].tobytes():
        raise _NotScreenedError
    return starts, ends


def _numbers(np: Any, octets: Any, position: Any) -> tuple[Any, Any]:
    """The zigzag number at each position, and the position after it. Raises IndexError, or _NotScreenedError
    for a number that is too long."""
    byte = octets[position]
    if byte.tobytes().isascii():
        return byte.astype(np.intp), position + 1
    number, more = (byte & 0x7F).astype(np.intp), byte >> 7
    for shift in range(7, 7 * _LONGEST_SCREENED, 7):
        position = position + more
        byte = octets[position]
        number |= ((byte & 0x7F) * more).astype(np.intp) << shift
        if byte.tobytes().isascii():
            return number, position + 1
        more &= byte >> 7
    raise _NotScreenedError


def _nulls(lengths: Any, count: int) -> int:
    """The number of null lengths; -1 if a length is below null."""
    odd = lengths & 1
    nulls = int(odd.sum())
    return nulls if not nulls or int((lengths * odd).sum()) == nulls else -1


@lru_cache(maxsize=_KNOWN_COUNTS)
def _expected_deltas(count: int) -> tuple[bytes, bytes, Any] | None:
    """The offset deltas 0 to count - 1: the first bytes, the second bytes of those that have one, and the
    number of bytes of each."""
    import numpy as np

    if not SCREENED_RECORDS <= count <= _MOST_SCREENED:
        return None
    zigzag = np.arange(count, dtype=np.intp) << 1
    first = np.where(zigzag < 0x80, zigzag, zigzag & 0x7F | 0x80).astype(np.uint8)
    return first.tobytes(), (zigzag[0x40:] >> 7).astype(np.uint8).tobytes(), 1 + (zigzag >= 0x80)
