"""The two loops over the records of a large batch as machine code: value ids, and their text in a row.

Owns when they are used. values.py and lines.py have the same in plain Python, which small batches use, and
which decides whenever these find something odd; a test holds one against the other. `load` imports numba,
nothing else does.

BLAKE2b is the library's own function for plain Python. A call for each record costs more than its hash, and
the block of the key is hashed before each. Here its state is hashed once for the whole run.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

BLOCK = 128
"""Bytes of a block of BLAKE2b."""
DIGEST_BYTES = 8
SMALLEST_RECORD = 7
LONGEST_NUMBER = 19
"""Digits of 2^63 - 1."""
WORTH_IT, TEXT_WORTH_IT = 8, 32
"""Records from which arrays cost less than they save, for ids and for text. Measured, a record of 100 bytes:
ids 1,370 ns in Python, 770 of 4 and 220 of 1,000; text 180 ns, 200 of 32 and 100 of 1,000."""
Array = np.ndarray[Any, Any]
Ids = Sequence[int] | Array
"""Value ids: a list, or an array of a large batch."""


@define(eq=False)
class Kernels:
    """Plain until `load`."""

    _machine: Any = field(default=None, init=False)
    _states: dict[bytes, Array] = field(factory=dict, init=False)
    """By key, what hashing its block leaves."""

    def load(self) -> None:
        """Compile them, or take what an earlier process has compiled; nothing changes where that is
        impossible. They are used from the moment that all are there, also if another thread loads them."""
        try:
            from fencepost.proxy.record import machine
        except (ImportError, RuntimeError, OSError):  # numba finds no place for what it compiles
            return
        first = Kernels()
        first._machine = machine
        first.ids(b"\x0e\x00\x00\x00\x00\x00\x00\x00", 0, 1, b"k", (True, 0, 0))
        first.text(np.zeros(1, np.int64))
        self._machine = machine

    @property
    def ready(self) -> bool:
        """Whether they are machine code."""
        return self._machine is not None

    def ids(
        self, data: bytes, position: int, count: int, key: bytes, mixing: tuple[bool, int, int]
    ) -> tuple[Array, Array] | None:
        """The ids and the offset deltas of `count` records from a position on; None if anything is odd.

        key: of the hash; mixing: whether the producer has no id, what is mixed of its id and epoch, and its
        first sequence.
        """
        if count * SMALLEST_RECORD > len(data) - position:
            return None
        ids, deltas = np.empty(count, np.int64), np.empty(count, np.int64)
        plain, mixed, first = mixing
        done = self._machine.ids_of(
            np.frombuffer(data, np.uint8), position, self._state(key), plain,
            np.uint64(mixed & 0xFFFFFFFF), np.uint64(first & 0x7FFFFFFF), ids, deltas,
        )  # fmt: skip
        return (ids, deltas) if done == count else None

    def text(self, ids: Array) -> bytes:
        """The numbers as text, with commas between them; none is below zero."""
        out = np.empty(len(ids) * (LONGEST_NUMBER + 1), np.uint8)
        return out[: self._machine.text_of(ids, out)].tobytes()

    def _state(self, key: bytes) -> Array:
        known = self._states.get(key)
        if known is None:
            head = np.array(self._machine.IV, np.uint64)
            head[0] ^= np.uint64(0x01010000 ^ len(key) << 8 ^ DIGEST_BYTES)
            block = np.frombuffer(key.ljust(BLOCK, b"\x00"), np.uint8)
            known = self._states[key] = self._machine.state_of(head, block)
        return known


KERNELS = Kernels()
"""Of this process."""
