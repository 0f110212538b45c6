"""One line of what an application did: the format, version 1 (docs/reference/events.md).

Owns the kinds of events, the fields, and the decoding of one line. Must not know files or rules.

A line is one JSON object. Unknown fields are ignored, so that an application can add its own.

    {"event":"sent","process":"p1","n":0,"id":"0","topic":"orders","key":"9f86d0...","value":"3b0c44..."}
    {"event":"acknowledged","process":"p1","n":1,"id":"0","topic":"orders","partition":0,"offset":41}
    {"event":"processed","process":"c1","n":7,"group":"g","topic":"orders","partition":0,"offset":41}
"""

import hashlib
import re

import msgspec

from fencepost.checkers.application.application_events import BY_NAME, NO_HASH, Kind

VERSION = 1
"""Of the format."""
LONGEST_LINE = 1 << 16
"""Bytes. A line is written by one write call, and names no payload; 64 KiB is what a pipe takes at once."""
LARGEST = (1 << 62) - 1
"""Of an offset, and of a hash. Kafka's offsets are below 2^63; the judge adds one to them."""
LARGEST_PARTITION = (1 << 31) - 1


NEEDED: dict[Kind, tuple[str, ...]] = {
    Kind.STARTED: (),
    Kind.SENT: ("id", "topic"),
    Kind.ACKNOWLEDGED: ("topic", "partition"),
    Kind.FAILED: ("id",),
    Kind.ASSIGNED: ("topic", "partition"),
    Kind.RECEIVED: ("topic", "partition", "offset"),
    Kind.PROCESSED: ("topic", "partition", "offset"),
    Kind.COMMITTED: ("topic", "partition", "offset"),
    Kind.REVOKED: ("topic", "partition"),
    Kind.LOST: ("topic", "partition"),
    Kind.STOPPED: (),
    Kind.SINK: (),
}
"""The fields that a line of each kind must have, in addition to `event` and `process`."""


class Line(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """One line, as it is written."""

    event: str
    # One producer or consumer, in one life; a sink has the name of the store.
    process: str
    # Counts the lines of a process from 0, so that a missing or doubled one shows. None: not counted.
    n: int | None = None
    # Of the format; in a line `started`.
    version: int | None = None
    # The consumer group; holds for the later lines of the process, too.
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    # Of the record. Of a commit, the next one to be read, as Kafka has it; of an assignment, the position.
    offset: int | None = None
    # A send, within its process.
    id: str | int | None = None
    # The key and the value, or what stands for them: the first 16 hexadecimal digits of their SHA-256.
    key: str | None = None
    value: str | None = None
    # Of the contents in a proxy's record, where the process has its key; only `proxy blame` reads it.
    content: int | None = None
    # Of a send that failed.
    error: str | None = None
    # Of `processed`: false where no row of a sink follows from the record.
    sink: bool | None = None


_decode = msgspec.json.Decoder(Line).decode
_BEGIN = b'{"event"'
"""Of a line as every emitter writes it."""
_HASH = re.compile(r"[0-9a-f]{16,64}")


def decode(text: bytes) -> tuple[Line, Kind] | str:
    """A line and its kind, or why it is none.

    Args:
        text: the line, without its end.

    Returns:
        the line, or one clause that says what was expected and seen.
    """
    try:
        line = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"expected a JSON object with `event` and `process`, saw {_said(str(error))}"
    kind = BY_NAME.get(line.event)
    if kind is None:
        return f"expected an event out of {', '.join(BY_NAME)}, saw {_said(line.event)}"
    for name in NEEDED[kind]:
        if getattr(line, name) is None:
            return f"expected `{name}` in a line `{line.event}`, saw none"
    if line.version is not None and line.version != VERSION:
        return f"expected version {VERSION} of the format, saw {line.version}"
    if line.partition is not None and not 0 <= line.partition <= LARGEST_PARTITION:
        return f"expected a partition from 0 to {LARGEST_PARTITION}, saw {line.partition}"
    if line.offset is not None and not -1 <= line.offset <= LARGEST:
        return f"expected an offset from 0 to {LARGEST}, saw {line.offset}"
    if kind in (Kind.RECEIVED, Kind.PROCESSED, Kind.COMMITTED) and line.offset == -1:
        return f"expected an offset from 0 in a line `{line.event}`, saw -1"
    return line, kind


def after_half(text: bytes) -> tuple[Line, Kind] | None:
    """The line that follows half a line, which a killed process left without an end; None if there is none.

    Args:
        text: what was read as one line, and is none.
    """
    begin = text.rfind(_BEGIN)
    found = decode(text[begin:]) if begin > 0 and text.startswith(_BEGIN[:begin]) else ""
    return None if isinstance(found, str) else found


def hash_of(text: str | None) -> int:
    """A key or value as a number of 62 bits; NO_HASH for None. What is no hash is hashed here."""
    if text is None:
        return NO_HASH
    if _HASH.fullmatch(text):
        return int(text[:16], 16) & LARGEST
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) & LARGEST


def _said(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
