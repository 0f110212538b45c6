"""What broker processes recorded: the events.jsonl of each, together as the events of one trace.

Owns the file, its bound and its way into a trace. Must not know what an event says.

All processes of a cluster are on one machine and stamp by its monotonic clock, which they share: an event
that led to another one, at whichever broker, is before it. Each process adds to the file of the one before
it. A killed one leaves at most a line that is not whole.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec
from attrs import define, evolve

from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event

EVENTS = "events.jsonl"
MAXIMUM_EVENT_BYTES = 256 * 1024 * 1024
"""Of trace events of one broker; a cluster that runs for days must not fill the disk with them."""
LONGEST_EVENT = 1 << 20
"""Bytes of a line at most: a batch of the largest message has some ten thousand values of 19 digits."""
_DECODER = msgspec.json.Decoder(Event)


@define
class EventFile:
    """Trace events as JSON lines."""

    stream: BinaryIO
    # Bytes so far, of earlier processes too.
    written: int = 0

    @classmethod
    def open(cls, directory: Path) -> "EventFile":
        """Go on with the file of a broker's directory, on a line of its own."""
        stream = (directory / EVENTS).open("a+b")
        size = stream.tell()
        if size:
            stream.seek(size - 1)
            if stream.read(1) != b"\n":
                stream.write(b"\n")
                size += 1
        return cls(stream, size)

    def write(self, event: Event) -> None:
        """Add a line, stamped with the machine's monotonic clock, unless the bound is reached."""
        line = msgspec.json.encode(evolve(event, time=time.monotonic_ns())) + b"\n"
        self.written += len(line)
        if self.written <= MAXIMUM_EVENT_BYTES:
            self.stream.write(line)
            self.stream.flush()


def read_broker_events(directories: Iterable[Path], since: int) -> tuple[Event, ...]:
    """The events of these brokers in order of time, which is nanoseconds after `since` (of the monotonic
    clock). None at all if one file was full: judges would take what is missing for what never happened.

    Raises TraceError for a line that is whole and no event.
    """
    events: list[Event] = []
    for directory in directories:
        path = directory / EVENTS
        if not path.exists():
            continue
        data = path.read_bytes()
        if len(data) + LONGEST_EVENT > MAXIMUM_EVENT_BYTES:
            return ()
        for number, line in enumerate(data.split(b"\n"), 1):
            try:
                events += [_DECODER.decode(line)] if line else []
            except msgspec.MsgspecError as error:
                if line.endswith(b"}"):
                    raise TraceError(
                        expected="a trace event", seen=str(error), where=f"{path}, line {number}"
                    ) from None
    events.sort(key=lambda event: event.time)
    return tuple(evolve(event, time=event.time - since) for event in events)
