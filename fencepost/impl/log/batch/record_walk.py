"""Verify the structure of a batch's records without creating an object per record.

Owns the rule: `walk`, in plain Python, decides. It accepts exactly what record_batch.read_records reads. Must
not know the writer of a batch. machine_walk.py has the same rule as machine code, for speed
(docs/decisions/record-validation.md; bench/validation.py): it only says "good" or "ask walk", and its result
is that of `walk`. tests/impl/log/batch/test_record_walk.py compares the three.
"""

from typing import Any

from attrs import define, field, frozen

from fencepost.impl.log.batch.varint import decode_varint
from fencepost.traces.making import maker_of

SMALLEST_RECORD = 7
"""The bytes of the smallest record: length, attributes, two deltas, two null lengths and a count. More
records than the bytes can hold mean corruption."""
MACHINE_CODE_AFTER = 1_000_000
"""Records that a process walks in plain Python before machine code is worth it: those cost 0.45 s of CPU, as
much as the import of numba and the load of what is compiled. That takes 130 MB."""
_TIME_BOUND = 1 << 63


@frozen(weakref_slot=False)
class Walked:
    """A summary of the records of a batch."""

    largest_time_delta_ms: int
    """The largest time of all records relative to the batch's base timestamp; -2^63 without records."""
    smallest_time_delta_ms: int
    """The smallest time likewise; 2^63 without records."""
    keyless: int
    """The number of records without a key."""


_walked = maker_of(Walked, keywords=False)


@define(eq=False)
class MachineWalk:
    """The machine code of `walk` in this process: not there until somebody loads it."""

    # Records walked in plain Python so far; moves with each batch.
    walked: int = field(default=0, init=False)
    # machine_walk.walk_of; None until `load` has ended.
    _function: Any = field(default=None, init=False)
    # Whether `due` was true: once is enough, also where `load` fails.
    _due: bool = field(default=False, init=False)

    def due(self) -> bool:
        """Whether to call `load` now, in another thread: true once, after enough records."""
        if self._due or self.walked < MACHINE_CODE_AFTER:
            return False
        self._due = True
        return True

    def load(self) -> None:
        """Compile it, or take what an earlier process has compiled. Nothing changes where that is
        impossible."""
        try:
            from fencepost.impl.log.batch.machine_walk import walk_of
        except (ImportError, RuntimeError, OSError):  # numba finds no place for what it compiles
            return
        self._function = walk_of

    def examine(self, data: bytes, count: int, last_delta: int, start: int = 0) -> Walked:
        """Verify the structure of all records of a batch, by the faster of the two forms.

        Args:
            data: ends with the records, decompressed.
            count: their number by the header.
            last_delta: the header's last offset delta; offset deltas ascend up to it.
            start: the position of the first record in the data.

        Returns:
            a summary of the records.

        Raises:
            ValueError, IndexError: if the records are invalid.
        """
        if self._function is not None and type(data) is bytes and count > 0:
            keyless, largest, smallest = self._function(data, start, count, last_delta)
            if keyless >= 0:
                return _walked(largest, smallest, keyless)
        self.walked += count
        return walk(data[start:] if start else data, count, last_delta)


MACHINE = MachineWalk()
"""Of this process."""
examine = MACHINE.examine


def walk(data: bytes, count: int, last_delta: int) -> Walked:  # noqa: PLR0915  (a call a field would cost twice as much)
    """Verify the structure of all records of a batch, record by record, in constant memory.

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
