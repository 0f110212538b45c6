"""The one walk over the bytes of a batch's records.

Owns what a record is: `spans` says where each one is, whatever is inside of it; `fields`, which goes by
`spans`, takes it apart and refuses what is wrong anywhere. `walk` verifies by `fields`, record_batch.py reads
by it; the proxy hashes by `spans`. Must not know the writer of a batch, or its header. compiled_walk.py has
the rule of `walk` as machine code, for speed (docs/decisions/record-validation.md; `python -m bench log`): it
only says "good" or "ask walk", and its result is that of `walk`. tests/impl/log/batch/test_record_walk.py
compares them.
"""

from collections.abc import Iterator
from typing import Any

from attrs import define, field, frozen

from fencepost.impl.log.batch.varint import decode_varint
from fencepost.traces.making import maker_of

SMALLEST_RECORD = 7
"""The bytes of the smallest record: length, attributes, two deltas, two null lengths and a count. More
records than the bytes can hold mean corruption."""
MACHINE_CODE_AFTER = 1_000_000
"""Records that a process walks in plain Python before machine code is worth it: those cost 0.45 s of CPU when
this was chosen, as much as the import of numba and the load of what is compiled. That takes 130 MB."""
_TIME_BOUND = 1 << 63


@frozen(weakref_slot=False)
class Walked:
    """A summary of the records of a batch."""

    # The largest time of all records relative to the batch's base timestamp; -2^63 without records.
    largest_time_delta_ms: int
    # The smallest time likewise; 2^63 without records.
    smallest_time_delta_ms: int
    # The number of records without a key.
    keyless: int


_walked = maker_of(Walked, keywords=False)

Fields = tuple[int, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]
"""Of a record: time delta, offset delta, key, value, headers as (key, value)."""


@define(eq=False)
class CompiledWalk:
    """The machine code of `walk` in this process: not there until somebody loads it."""

    # Records walked in plain Python so far; moves with each batch.
    walked: int = field(default=0, init=False)
    # compiled_walk.walk_of; None until `load` has ended.
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
            from fencepost.impl.log.batch.compiled_walk import walk_of
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


COMPILED_WALK = CompiledWalk()
"""Of this process."""
examine = COMPILED_WALK.examine


def walk(data: bytes, count: int, last_delta: int) -> Walked:
    """Verify all records of a batch, record by record, in constant memory.

    Args:
        data: the records, decompressed.
        count: their number by the header.
        last_delta: the header's last offset delta.

    Returns:
        a summary of the records.

    Raises:
        ValueError, IndexError: if the records are invalid.
    """
    largest, smallest, keyless = -_TIME_BOUND, _TIME_BOUND, 0
    for time_delta, _, key, _, _ in fields(data, count, last_delta):
        if time_delta > largest:
            largest = time_delta
        if time_delta < smallest:
            smallest = time_delta
        keyless += key is None
    return Walked(largest, smallest, keyless)


def fields(data: bytes, count: int, last_delta: int) -> Iterator[Fields]:
    """Each record taken apart; nothing in it is wrong, and nothing comes after the last one.

    Args:
        data: the records, decompressed.
        count: their number by the header.
        last_delta: the header's last offset delta; offset deltas ascend up to it.

    Returns:
        the fields of the records, in order.

    Raises:
        ValueError, IndexError: at the first bad record.
    """
    nullable, before, end = nullable_bytes, -1, 0
    headers: tuple[tuple[bytes, bytes | None], ...]
    for time_delta, delta, position, end in spans(data, count):
        key, position = nullable(data, position)
        value, position = nullable(data, position)
        if data[position]:
            headers, position = _headers(data, position)
        else:
            headers, position = (), position + 1
        if position != end:
            raise ValueError(f"a record: its fields end at byte {position}, not at {end}")
        if not before < delta <= last_delta:
            raise ValueError(f"offset delta {delta} after {before} in a batch up to {last_delta}")
        before = delta
        yield time_delta, delta, key, value, headers
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes after the last record")


def spans(data: bytes, count: int) -> Iterator[tuple[int, int, int, int]]:
    """Where each record is. Its key, value and headers may be anything, and its offset too.

    Args:
        data: the records, decompressed.
        count: their number by the header.

    Returns:
        (time delta, offset delta, the first byte of the key's length, the first byte after the record).

    Raises:
        ValueError, IndexError: at the first place without a record.
    """
    if not 0 <= count <= len(data) // SMALLEST_RECORD:
        raise ValueError(f"{len(data)} bytes")
    varint, position, available = decode_varint, 0, len(data)
    for _ in range(count):
        # One-byte numbers, the usual case, without a call; decode_varint defines the format.
        if (byte := data[position]) < 0x80:
            length, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            length, position = varint(data, position)
        end = position + length
        if length < 0:
            raise ValueError(f"a record of {length} bytes")
        if end > available:
            raise IndexError
        if (byte := data[position + 1]) < 0x80:  # the byte before is the unused attributes
            time_delta, position = (byte >> 1) ^ -(byte & 1), position + 2
        else:
            time_delta, position = varint(data, position + 1)
        if (byte := data[position]) < 0x80:
            delta, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            delta, position = varint(data, position)
        if position > end:
            raise ValueError(f"a record: its fields end at byte {position}, not at {end}")
        yield time_delta, delta, position, end
        position = end


def nullable_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    """The bytes after their length (a key, a value, a part of a header), and the position after them. Raises
    IndexError if they are not all there, ValueError if the length is none."""
    byte = data[position]
    if byte < 0x80:  # one byte, the usual case: decode_varint without the call
        length, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        length, position = decode_varint(data, position)
    if length < 0:
        _null(length)
        return None, position
    end = position + length
    if end > len(data):
        raise IndexError
    return data[position:end], end


def _null(length: int) -> None:
    if length != -1:
        raise ValueError(f"a length of {length}")


def _headers(data: bytes, position: int) -> tuple[tuple[tuple[bytes, bytes | None], ...], int]:
    count, position = decode_varint(data, position)
    if not 0 <= count <= len(data) - position:
        raise ValueError(f"{count} headers in {len(data) - position} bytes")
    found = []
    for _ in range(count):
        key, position = nullable_bytes(data, position)
        if key is None:
            raise ValueError("a header without a key")
        value, position = nullable_bytes(data, position)
        found.append((key, value))
    return tuple(found), position
