"""What passed on the wire, as tables to join with: who sent what when, what was acknowledged where, who
fetched it.

Owns the tables. Must not know taps' files or verdicts. Made from a trace of the proxy.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import define, field, frozen

from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.parts import BEFORE
from fencepost.traces.trace import Trace

TAPPED = "tapped"
UNREAD = ("unread_batch", "unread_request")
"""Causes of marks: what passed and could not be read."""
Place = tuple[str, int, int]
"""(topic, partition, offset)"""


@frozen
class Frame:
    """The request that an operation was in, and its answer."""

    connection: int
    correlation: int
    api: str
    # The worst error in the answer; "" for none.
    error: str = ""
    # Who answered in place of the broker: "fault", or "fault after the broker"; "": the broker.
    by: str = ""
    # Whether the client was sent an answer, whole.
    answered: bool = True

    def __str__(self) -> str:
        return f"{self.api} {self.correlation} of connection {self.connection}"


@frozen
class Carried:
    """A record that a request carried."""

    row: Operation
    index: int
    # What its tap called the send.
    tap_id: str | None

    @property
    def record(self) -> Record:
        """Its row; the offset is -1 unless it was acknowledged."""
        return self.row.records[self.index]

    @property
    def acknowledged(self) -> bool:
        """Whether the broker has said that it is written."""
        return self.row.outcome is Outcome.OK and self.record.offset >= 0

    @property
    def place(self) -> Place:
        """Where it is, once acknowledged."""
        return self.record.topic, self.record.partition, self.record.offset


@define(eq=False)
class Wire:
    """The recorded traffic of a run, in the order of the wire."""

    # Records of appends.
    carried: list[Carried] = field(factory=list)
    # The same by the id in their header.
    by_id: dict[str, list[Carried]] = field(factory=lambda: defaultdict(list))
    # The same by acknowledged place.
    acknowledged: dict[Place, Carried] = field(factory=dict)
    # The polls that returned a record there, and its value id.
    fetched: dict[Place, list[tuple[Operation, int]]] = field(factory=lambda: defaultdict(list))
    # Polls in the order of their answers.
    polls: list[Operation] = field(factory=list)
    # Frames by op id; an append has one for each attempt.
    frames: dict[int, list[Frame]] = field(factory=lambda: defaultdict(list))
    # Values that polls returned, by (topic, partition).
    read: dict[tuple[str, int], set[int]] = field(factory=lambda: defaultdict(set))
    # Requests and batches that passed and that the record could not read.
    unread: int = 0
    # Requests whose answer the client was sent.
    answered: int = 0
    # Fetches answered with OFFSET_OUT_OF_RANGE: their consumer begins anew where its policy says.
    out_of_range: int = 0
    fetched_offsets: dict[tuple[str, int], list[int]] = field(factory=dict)

    @classmethod
    def of(cls, trace: Trace) -> "Wire":
        """The tables of a trace."""
        wire = cls()
        ids = dict(_tap_ids(trace.events))
        for row in trace.operations:
            if row.function is Function.APPEND and row.argument != BEFORE:
                wire._append(row, ids.get(row.op_id, []))
            elif row.function is Function.POLL:
                wire.polls.append(row)
                for record in row.records:
                    place = (record.topic, record.partition, record.offset)
                    wire.fetched[place].append((row, record.value))
                    wire.read[place[:2]].add(record.value)
        for event in trace.events:
            if event.name is Name.REQUEST:
                wire._request(event)
            wire.unread += event.name is Name.MARK and event.cause in UNREAD
        wire.fetched_offsets = _sorted(wire.fetched)
        return wire

    def _append(self, row: Operation, ids: list[Any]) -> None:
        for index in range(len(row.records)):
            tap_id = ids[index] if index < len(ids) and isinstance(ids[index], str) else None
            one = Carried(row, index, tap_id)
            self.carried.append(one)
            if tap_id is not None:
                self.by_id[tap_id].append(one)
            if one.acknowledged:
                self.acknowledged[one.place] = one

    def _request(self, event: Event) -> None:
        said = _object(event.detail)
        self.answered += "says" not in said
        self.out_of_range += said.get("error") == "OFFSET_OUT_OF_RANGE"
        numbers = said.get("operations")
        if isinstance(numbers, list):
            frame = Frame(
                connection=int(said.get("connection", -1)),
                correlation=int(said.get("correlation", -1)),
                api=event.cause,
                error=str(said.get("error", "")),
                by=str(said.get("by", "")),
                answered="says" not in said,
            )
            for number in numbers:
                if isinstance(number, int):
                    self.frames[number].append(frame)

    @property
    def is_empty(self) -> bool:
        """Whether no request was answered."""
        return not (self.answered or self.carried or self.polls)

    def is_read(self, one: Carried) -> bool:
        """Whether some answer shows this record in its log."""
        return one.record.value in self.read.get(one.place[:2], ())

    def frame_of(self, row: Operation | None) -> Frame | None:
        """The last frame of an operation."""
        frames = self.frames.get(row.op_id) if row is not None else None
        return frames[-1] if frames else None


def _sorted(places: Iterable[Place]) -> dict[tuple[str, int], list[int]]:
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for topic, partition, offset in sorted(places):
        found[topic, partition].append(offset)
    return dict(found)


def _tap_ids(events: tuple[Event, ...]) -> Iterator[tuple[int, list[Any]]]:
    for event in events:
        if event.name is Name.MARK and event.cause == TAPPED:
            said = _object(event.detail)
            if isinstance(said.get("op_id"), int) and isinstance(said.get("ids"), list):
                yield said["op_id"], said["ids"]


def _object(text: str) -> dict[str, Any]:
    try:
        value = from_json(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
