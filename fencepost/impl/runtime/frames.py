"""Frames on a TCP connection: four bytes of length, big-endian, then as many bytes.

Owns the bound and the greeting, the first frame of every connection: who speaks. Must not know what the later frames carry.
"""

import asyncio
import struct

import msgspec

from fencepost.impl.runtime.codec import INT64, MalformedError

MAXIMUM_FRAME = 100 * 1024 * 1024
"""Kafka's socket.request.max.bytes. Bytes of another protocol are nearly always read as a larger length, and are refused by it."""
MAXIMUM_GREETING = 256
PROTOCOL = "fencepost-1"
_LENGTH = struct.Struct("!I")


def framed(data: bytes) -> bytes:
    """The bytes of one frame."""
    assert len(data) <= MAXIMUM_FRAME, f"a frame of {len(data)} bytes"
    return _LENGTH.pack(len(data)) + data


async def read_frame(reader: asyncio.StreamReader, limit: int = MAXIMUM_FRAME) -> bytes | None:
    """The next frame; None at the end of the stream. Nothing is kept for a frame that is too long."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise MalformedError(
                f"expected {_LENGTH.size} bytes of length, saw {len(error.partial)}"
            ) from None
        return None
    if length > limit:
        raise MalformedError(f"expected a frame of at most {limit} bytes, saw a length of {length}")
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        raise MalformedError(f"expected a frame of {length} bytes, saw {len(error.partial)}") from None


def greeting(node: int) -> bytes:
    """The first frame of a connection that this node opened."""
    return framed(msgspec.msgpack.encode([PROTOCOL, node]))


async def read_greeting(reader: asyncio.StreamReader) -> int | None:
    """Who opened the connection; None if it was closed before it said anything."""
    data = await read_frame(reader, MAXIMUM_GREETING)
    if data is None:
        return None
    try:
        protocol, node = msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        protocol, node = None, None
    if protocol != PROTOCOL or type(node) is not int or node < 1 or node not in INT64:
        raise MalformedError(f"expected a greeting of {PROTOCOL}, saw {data[:40]!r}")
    return node
