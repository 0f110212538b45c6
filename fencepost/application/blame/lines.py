"""What an application did and what its client reported, as JSON lines: the format of every tap.

Owns the format and its strict reading. Must not know clients. One object a line; `time` in nanoseconds of any
clock, `actor` names a producer or consumer, `id` a send. Unknown fields are refused, so that a misspelt one
is not ignored silently.

    {"type":"sent","time":1,"actor":"p1","id":"p1-0","topic":"orders","partition":0,"content":7}
    {"type":"acknowledged","time":2,"actor":"p1","id":"p1-0","topic":"orders","partition":0,"offset":41}
    {"type":"failed","time":2,"actor":"p1","id":"p1-1","error":"TimeoutException"}
    {"type":"delivered","time":3,"actor":"c1","topic":"orders","partition":0,"offset":41,"content":7}
    {"type":"moved","time":3,"actor":"c1"}       the consumer's place changes: assignment, revocation, seek
    {"type":"closed","time":4,"actor":"p1"}      all its results are in the lines above

sent: before the client's send is called. partition: if the application chose it. content: of a record, if the
tap knows the key of the record's folder (docs/how-to/proxy.md). acknowledged, failed: the callback. An
acknowledgement without an offset (or with -1) is a delivery report of success that names none: acks=0, or a
client library that takes a record for written. delivered: delivered to the application.
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from fencepost.traces.errors import TraceError

LONGEST_LINE = 1 << 16
MOST_LINES = 4_000_000
"""Most lines of all taps together: in memory they take about 1 GB."""


class Type(StrEnum):
    """What a line says."""

    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    DELIVERED = "delivered"
    MOVED = "moved"
    CLOSED = "closed"


class Line(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One line."""

    type: Type
    # Nanoseconds of any clock.
    time: int
    # A producer or consumer.
    actor: str
    # The send; None for lines that are not about one.
    id: str | None = None
    topic: str | None = None
    # In a send only if the application chose it.
    partition: int | None = None
    offset: int | None = None
    # Identifies the contents of the record; None if the tap cannot compute it.
    content: int | None = None
    error: str | None = None
    # File and line number, for a person.
    place: str = ""


_decode = msgspec.json.Decoder(Line).decode
_NEEDED: dict[Type, tuple[str, ...]] = {
    Type.SENT: ("id", "topic"),
    Type.ACKNOWLEDGED: ("id", "topic", "partition"),
    Type.FAILED: ("id",),
    Type.DELIVERED: ("topic", "partition", "offset"),
    Type.MOVED: (),
    Type.CLOSED: (),
}


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a tap's file, in order; half a line at the end, which a killed application leaves, is
    passed over. Raises TraceError with file and line."""
    try:
        with path.open("rb") as file:
            for number in range(1, MOST_LINES + 2):
                text = file.readline(LONGEST_LINE + 1)
                if not text:
                    return
                if number > MOST_LINES or len(text) > LONGEST_LINE:
                    raise TraceError(
                        expected=f"at most {MOST_LINES:,} lines of at most {LONGEST_LINE:,} bytes",
                        seen="more",
                        where=f"{path}:{number}",
                    )
                if text.strip() and (line := _line(text, f"{path}:{number}")) is not None:
                    yield line
    except OSError as error:
        raise TraceError(
            expected="a readable file of a tap", seen=error.strerror or str(error), where=str(path)
        ) from None


def _line(text: bytes, where: str) -> Line | None:
    try:
        line = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not text.endswith(b"\n"):
            return None
        raise TraceError(expected="a line of a tap", seen=str(error), where=where) from None
    missing = [name for name in _NEEDED[line.type] if getattr(line, name) is None]
    if missing:
        raise TraceError(expected=f"{missing[0]} of a line {line.type}", seen="none", where=where)
    offset = line.offset if line.offset is not None and line.offset >= 0 else None
    if line.type is Type.DELIVERED and offset is None:
        raise TraceError(expected="an offset of a line delivered", seen=str(line.offset), where=where)
    return msgspec.structs.replace(line, place=where, offset=offset)
