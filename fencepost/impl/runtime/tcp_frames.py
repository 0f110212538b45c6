"""Frames on a TCP connection: four bytes of length, big-endian, then as many bytes.

Owns the bound, and the greeting: the first frame of every connection, which identifies the sender. Must not
know the content of later frames.
"""

import asyncio
import struct

import msgspec

from fencepost.impl.core.broker_context import FIRST_CLIENT
from fencepost.impl.runtime.codec import INT64, MalformedError

MAXIMUM_FRAME = 100 * 1024 * 1024
"""Kafka's socket.request.max.bytes. Bytes of another protocol almost always look like a larger length, and
are refused for it."""
MAXIMUM_GREETING = 256
"""Bytes: a cluster's id, a broker's id and a secret take fewer than a hundred."""
PROTOCOL = "fencepost-1"
LENGTH = struct.Struct("!I")


def framed(data: bytes) -> bytes:
    """The bytes of one frame."""
    assert len(data) <= MAXIMUM_FRAME, f"a frame of {len(data)} bytes"
    return LENGTH.pack(len(data)) + data


async def read_length(reader: asyncio.StreamReader, limit: int) -> int | None:
    """The length of the next frame; None at the end of the stream. Raises MalformedError if it is more than
    `limit`, or truncated."""
    try:
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise MalformedError(
                f"expected {LENGTH.size} bytes of length, saw {len(error.partial)}"
            ) from None
        return None
    if length > limit:
        raise MalformedError(f"expected a frame of at most {limit} bytes, saw a length of {length}")
    return int(length)


async def read_frame(reader: asyncio.StreamReader, limit: int = MAXIMUM_FRAME) -> bytes | None:
    """Read the next frame. Nothing is kept of a frame that is too long.

    Args:
        reader: the stream.
        limit: the largest frame in bytes.

    Returns:
        the content; None at the end of the stream.

    Raises:
        MalformedError: if the frame is too long or truncated.
    """
    length = await read_length(reader, limit)
    if length is None:
        return None
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        raise MalformedError(f"expected a frame of {length} bytes, saw {len(error.partial)}") from None


def greeting(node: int) -> bytes:
    """The first frame of a client's connection."""
    return framed(msgspec.msgpack.encode([PROTOCOL, node]))


def client_of_greeting(data: bytes) -> int:
    """The client in a greeting. Raises MalformedError: brokers do not connect to this listener."""
    try:
        protocol, node = msgspec.msgpack.decode(data, type=tuple[str, int])
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        protocol, node = "", 0
    if protocol != PROTOCOL or node < FIRST_CLIENT or node not in INT64:
        raise MalformedError(f"expected a greeting of {PROTOCOL} by a client, saw {data[:40]!r}")
    return node
