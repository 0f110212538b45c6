"""Bytes of a connection cut into raw frames, each with its four bytes of length, without a copy where one
arrives alone.

Owns the cutting and its bound. Must not know what a frame holds. What has arrived of a frame is kept in
pieces and joined once; nothing is kept for what was only announced.
"""

import struct

from attrs import define, field

from fencepost.wire.frames import LENGTH_SIZE, ProtocolError

_LENGTH = struct.Struct(">i")


@define(eq=False)
class Chunks:
    """One direction of a connection."""

    # Bytes of one frame, without its length.
    maximum: int
    # What has arrived of the next frame.
    _parts: list[bytes] = field(factory=list)
    # Bytes of those.
    size: int = 0
    # Bytes from the start of the next frame with which something can be cut.
    _needed: int = LENGTH_SIZE

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that these bytes complete. Raises ProtocolError for a length that no frame has."""
        if self._parts:
            self._parts.append(data)
            self.size += len(data)
            if self.size < self._needed:
                return []
            data = b"".join(self._parts)
            self.clear()
        frames, start, end = [], 0, len(data)
        needed = LENGTH_SIZE
        while end - start >= LENGTH_SIZE:
            length: int = _LENGTH.unpack_from(data, start)[0]
            if not 0 <= length <= self.maximum:
                raise ProtocolError(
                    expected=f"a length from 0 to {self.maximum}",
                    seen=str(length),
                    where="a frame's first 4 bytes",
                )
            after = start + LENGTH_SIZE + length
            if after > end:
                needed = LENGTH_SIZE + length
                break
            frames.append(data if start == 0 and after == end else data[start:after])
            start = after
        if start < end:
            self._parts.append(data[start:] if start else data)
            self.size, self._needed = end - start, needed
        return frames

    def clear(self) -> None:
        """Forget what has arrived."""
        self._parts = []
        self.size, self._needed = 0, LENGTH_SIZE
