"""What the join reads of an application's events, and of the taps of 0.1.

Owns what a line of events means here, and strict reading: a join needs every line. Must not know clients.
Files that taps of 0.1 wrote are read until 0.3; one object a line:

    {"type":"sent","time":1,"actor":"p1","id":"p1-0","topic":"orders","partition":0,"content":7}
    {"type":"acknowledged","time":2,"actor":"p1","id":"p1-0","topic":"orders","partition":0,"offset":41}
    {"type":"failed","time":2,"actor":"p1","id":"p1-1","error":"TimeoutException"}
    {"type":"delivered","time":3,"actor":"c1","topic":"orders","partition":0,"offset":41,"content":7}
    {"type":"moved","time":3,"actor":"c1"}
    {"type":"closed","time":4,"actor":"p1"}

An acknowledgement without an offset (or with -1) is a delivery report of success that names none: acks=0, or
a client library that takes a record for written.
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from fencepost.application.event_lines import after_half, decode
from fencepost.checkers.application.application_events import Kind
from fencepost.traces.errors import TraceError

LONGEST_LINE = 1 << 16
MOST_LINES = 4_000_000
"""Most lines of all taps together: in memory they take about 1 GB."""


class Type(StrEnum):
    """What a line says."""

    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    # Handed to the application.
    DELIVERED = "delivered"
    # The consumer's place changed: an assignment, a revocation, a seek.
    MOVED = "moved"
    # All results of its sends are in the lines above.
    CLOSED = "closed"


OF_KINDS = {
    Kind.SENT: Type.SENT,
    Kind.ACKNOWLEDGED: Type.ACKNOWLEDGED,
    Kind.FAILED: Type.FAILED,
    Kind.RECEIVED: Type.DELIVERED,
    Kind.ASSIGNED: Type.MOVED,
    Kind.REVOKED: Type.MOVED,
    Kind.LOST: Type.MOVED,
    Kind.STOPPED: Type.CLOSED,
}
"""What the join makes of the kinds of events; the others say nothing about the wire."""


class Line(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One line."""

    type: Type
    # Nanoseconds of any clock; not read.
    time: int = 0
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
    """The lines of a tap's file, in order; half a line, which a killed application leaves at its end, is
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
    if b'"event"' in text:
        return _event(text, where)
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


def _event(text: bytes, where: str) -> Line | None:
    """What the join reads of a line of events; None for one that says nothing about the wire."""
    found = decode(text)
    if isinstance(found, str):
        found = after_half(text) or found
    if isinstance(found, str):
        if not text.endswith(b"\n"):
            return None
        expected, _, seen = found.partition(", saw ")
        raise TraceError(expected=expected.removeprefix("expected "), seen=seen, where=where)
    line, kind = found
    if kind not in OF_KINDS:
        return None
    return Line(
        type=OF_KINDS[kind],
        actor=line.process,
        id=None if line.id is None else str(line.id),
        topic=line.topic,
        partition=line.partition,
        offset=None if line.offset is None or line.offset < 0 else line.offset,
        content=line.content,
        error=line.error,
        place=where,
    )
