"""Incoming frames, in memory that grows with the bytes that arrived and not with the announced length.

Owns the bounds on incomplete frames: of one connection, and of all connections together. Must not know the
content of a frame.

A connection may announce a frame and send it slowly. The bytes that arrived are in memory until the rest
comes. When all connections together exceed their bound, the one with the most bytes is closed. So small
requests always get through, and no connection waits for the memory of another. (Kafka's
queued.max.request.bytes stops reading instead, and then all wait for the slowest.)
"""

import asyncio
from collections.abc import Callable

from attrs import define, field

from fencepost.impl.runtime.codec import MalformedError
from fencepost.impl.runtime.tcp_frames import read_length

MEBIBYTE = 1024 * 1024
MAXIMUM_CLIENT_FRAME = 2 * MEBIBYTE
"""The largest frame of a client. The largest request is a Produce with one batch of max.message.bytes, 1 MiB.
Kafka's socket.request.max.bytes is 100 MiB, for batches of many partitions in one request, which these
messages do not have."""
MOST_UNFINISHED_BYTES = 64 * MEBIBYTE
"""Bytes of all clients' incomplete frames: 32 of the largest."""
_PIECE = 64 * 1024
"""Bytes per read: the amount that asyncio buffers for a connection before it stops reading (twice that at
most)."""


@define(eq=False)
class Unfinished:
    """The incomplete frame of a connection."""

    # Closes the connection.
    close: Callable[[], None]
    # The bytes of the current frame; empty between frames.
    data: bytearray = field(factory=bytearray)


@define(eq=False)
class Intake:
    """The incomplete frames of a group of connections."""

    # The largest frame in bytes.
    maximum_frame: int
    # The most bytes of all incomplete frames together.
    most_unfinished: int
    unfinished: dict[Unfinished, None] = field(factory=dict)
    # Bytes of all `unfinished`; at most most_unfinished plus one piece.
    total: int = 0

    async def frame(self, reader: asyncio.StreamReader, close: Callable[[], None]) -> bytearray | None:
        """Read the next frame of a connection.

        close: closes the connection, if it is the one to be dropped. Returns None at the end of the stream.
        Raises MalformedError for a frame that is too long, truncated, or dropped.
        """
        length = await read_length(reader, self.maximum_frame)
        if length is None:
            return None
        mine = Unfinished(close)
        self.unfinished[mine] = None
        try:
            return await self._rest(reader, mine, length)
        finally:
            if mine in self.unfinished:
                self._forget(mine)

    async def _rest(self, reader: asyncio.StreamReader, mine: Unfinished, length: int) -> bytearray:
        while (missing := length - len(mine.data)) > 0:
            piece = await reader.read(min(missing, _PIECE))
            if mine not in self.unfinished:
                raise MalformedError(
                    f"expected at most {self.most_unfinished} bytes of unfinished frames, saw more; this "
                    f"one was the largest"
                )
            if not piece:
                raise MalformedError(f"expected a frame of {length} bytes, saw {len(mine.data)}")
            mine.data += piece
            self.total += len(piece)
            if self.total > self.most_unfinished:
                self._close_largest()
        return mine.data

    def _close_largest(self) -> None:
        largest = max(self.unfinished, key=lambda one: len(one.data))
        self._forget(largest)
        largest.data = bytearray()
        largest.close()

    def _forget(self, one: Unfinished) -> None:
        del self.unfinished[one]
        self.total -= len(one.data)
