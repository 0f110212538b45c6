"""Frames of Kafka's protocol: four bytes of length, big-endian and signed, then as many bytes.

Owns the receive buffer and its bound. Must not know what a frame holds. The buffer grows with what has
arrived, never with what a length announces.
"""

import struct

from attrs import define, field

from fencepost.traces.errors import FencepostError

_LENGTH = struct.Struct(">i")
LENGTH_SIZE = _LENGTH.size


class ProtocolError(FencepostError, ValueError):
    """Bytes that are not Kafka's protocol, or a request that this side does not speak: its connection is
    closed."""


def framed(body: bytes) -> bytes:
    """The bytes of one frame."""
    return _LENGTH.pack(len(body)) + body


@define(eq=False)
class FrameBuffer:
    """What arrived on a connection and is not taken yet."""

    # Bytes of one frame, without its length.
    maximum: int
    _data: bytearray = field(factory=bytearray)
    # Where the next frame begins. Taken bytes go when data arrives, all at once: one at a time they would
    # cost a copy for each frame.
    _start: int = 0

    def __len__(self) -> int:
        return len(self._data) - self._start

    def feed(self, data: bytes) -> None:
        """Bytes arrived."""
        if self._start:
            del self._data[: self._start]
            self._start = 0
        self._data += data

    @property
    def complete(self) -> bool:
        """Whether `take` has something to return or to raise."""
        length = self._announced()
        return length is not None and (not 0 <= length <= self.maximum or len(self) >= LENGTH_SIZE + length)

    def take(self) -> bytes | None:
        """The next frame; None if it is not complete. Raises ProtocolError for a length that no frame has."""
        length = self._announced()
        if length is None:
            return None
        if not 0 <= length <= self.maximum:
            raise ProtocolError(
                expected=f"a length from 0 to {self.maximum}",
                seen=str(length),
                where="a frame's first 4 bytes",
            )
        end = self._start + LENGTH_SIZE + length
        if len(self._data) < end:
            return None
        frame = bytes(memoryview(self._data)[self._start + LENGTH_SIZE : end])
        self._start = end
        if end == len(self._data):
            self._data.clear()
            self._start = 0
        return frame

    def clear(self) -> None:
        """Forget everything."""
        self._data.clear()
        self._start = 0

    def _announced(self) -> int | None:
        if len(self) < LENGTH_SIZE:
            return None
        length: int = _LENGTH.unpack_from(self._data, self._start)[0]
        return length
