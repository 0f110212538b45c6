"""The picture of a finding: a lane per broker and per client over virtual time, faults shaded, what convicts in red. SVG text.

Owns: the window of time, the lanes and the geometry. Must not know: how a finding was found, HTML pages. All words reach the drawing through a template
that escapes them.
"""

from collections.abc import Iterable, Iterator

from attrs import Factory, define, frozen

from fencepost.checkers.verdict import Finding
from fencepost.report.entries import Partition
from fencepost.report.lanes import Lanes, lanes_of
from fencepost.report.templating import render
from fencepost.report.words import (
    NANOSECONDS,
    answer_in_words,
    duration,
    event_in_words,
    fault_key,
    fault_nodes,
    request_in_words,
    seconds,
)
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

WIDTH, LEFT, RIGHT, TOP = 1100, 90, 20, 34
LANE, BAR = 24, 16
"""Pixels: the whole width, the names to the left, the margins, a lane, a bar in it."""
MOST_CLIENTS = 12
"""Clients that get a lane: those whose operations convict, then the busiest."""
NARROWEST = 3
"""Pixels of the shortest bar."""
LETTER = 5
"""Pixels of a letter of a fault's name, about: names must not run into each other."""
MOST_TICKS = 10
NO_PARTITION: Partition = (None, -1)
LEGEND = (
    ("leads", "leader"),
    ("believes that it leads", "believes"),
    ("in the ISR", "follower"),
    ("outside the ISR", "outside"),
    ("down", "down"),
    ("paused", "paused"),
    ("ok", "ok"),
    ("failed", "fail"),
    ("unknown", "unknown"),
    ("convicts", "convicts"),
    ("fault", "fault"),
)
"""Words and classes, in order."""
ROLES = {
    "L": ("leads", "leader"),
    "l": ("believes that it leads", "believes"),
    "f": ("follows, in the ISR", "follower"),
    "o": ("follows, not in the ISR", "outside"),
    "x": ("is down", "down"),
    "z": ("is paused", "paused"),
}
"""Of each letter of a lane: words, and the class that colours it."""


@frozen(kw_only=True)
class Shape:
    """A rectangle. kind: its class in the style sheet; title: shown when pointed at; label: beside it."""

    x: float
    y: float
    width: float
    kind: str
    title: str
    label: str = ""


@frozen
class Mark:
    """A convicting event on its broker's lane."""

    x: float
    y: float
    title: str


@frozen(kw_only=True)
class Picture:
    """Everything that the template draws. lanes: (y, name); ticks: (x, words); faults: each on its broker's lane."""

    title: str
    height: int
    lanes: tuple[tuple[int, str], ...]
    ticks: tuple[tuple[float, str], ...]
    faults: tuple[Shape, ...]
    roles: tuple[Shape, ...]
    operations: tuple[Shape, ...]
    marks: tuple[Mark, ...]


@define
class _Window:
    """The stretch of virtual time that is drawn."""

    start: int
    end: int

    def x(self, time: int) -> float:
        """Where a moment stands, kept within the picture."""
        inside = min(max(time, self.start), self.end) - self.start
        return round(LEFT + (WIDTH - LEFT - RIGHT) * inside / (self.end - self.start), 1)

    def shows(self, start: int, end: int) -> bool:
        """Whether anything of a stretch is inside."""
        return start <= self.end and end >= self.start

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Round moments."""
        step = 1_000
        for factor in (2, 5, 10) * 12:
            if (self.end - self.start) // step <= MOST_TICKS:
                break
            step = step * factor if factor == 2 else step // (2 if factor == 5 else 5) * factor
        for time in range(-(-self.start // step) * step, self.end + 1, step):
            yield self.x(time), f"{time / NANOSECONDS:g} s"


def _window(trace: Trace, operations: list[Operation], events: list[Event]) -> _Window:
    """What convicts with a third of its length on both sides, and the last fault that began before it, which is
    mostly its cause; the whole trace if nothing convicts."""
    times = [event.time for event in trace.events]
    for operation in trace.operations:
        times += [operation.invoke_time, operation.completion_time or operation.invoke_time]
    first, last = min(times, default=0), max(times, default=0)
    told = [event.time for event in events]
    for operation in operations:
        told += [operation.invoke_time, operation.completion_time or operation.invoke_time]
    if told:
        margin = max((max(told) - min(told)) // 3, (last - first) // 20)
        causes = [e.time for e in trace.events if e.name is Name.FAULT_BEGAN and e.time <= min(told)]
        first = max(first, min(min(told), max(causes, default=last)) - margin)
        last = min(last, max(told) + margin)
    return _Window(first, max(last, first + 1))


@define
class _Drawing:
    """The shapes, gathered lane by lane."""

    window: _Window
    brokers: dict[int, int] = Factory(dict)
    clients: dict[int, int] = Factory(dict)
    shapes: list[Shape] = Factory(list)

    def roles(self, trace: Trace, lanes: Lanes, partition: Partition) -> tuple[Shape, ...]:
        """What each broker is to the partition, from change to change."""
        since: dict[int, tuple[str, int]] = {}
        found: list[Shape] = []

        def close(broker: int, until: int) -> None:
            letter, start = since[broker]
            if letter in ROLES and until > start and self.window.shows(start, until):
                words, kind = ROLES[letter]
                found.append(
                    Shape(
                        x=self.window.x(start),
                        y=self.brokers[broker],
                        width=max(round(self.window.x(until) - self.window.x(start), 1), 0.5),
                        kind=kind,
                        title=f"broker {broker} {words}, {seconds(start)} to {seconds(until)}",
                    )
                )

        for event in trace.events:
            lanes.apply(event)
            for broker in self.brokers:
                letter = lanes.letter(partition, broker)
                if since.get(broker, ("", 0))[0] != letter:
                    if broker in since:
                        close(broker, event.time)
                    since[broker] = (letter, event.time)
        for broker in since:
            close(broker, self.window.end)
        return tuple(found)

    def faults(self, trace: Trace) -> tuple[Shape, ...]:
        """From beginning to end, on the lanes of the brokers that it hits; above all lanes where it hits none."""
        began: dict[object, Event] = {}
        found: list[tuple[Event, int]] = []
        for event in trace.events:
            number = fault_key(event)
            if event.name is Name.FAULT_BEGAN:
                began[number] = event
            elif event.name is Name.FAULT_ENDED and number in began:
                found.append((began.pop(number), event.time))
        found += [(event, self.window.end) for event in began.values()]
        shapes = []
        free: dict[int, float] = {}  # where the last name on a lane ends
        for event, end in sorted(found, key=lambda pair: pair[0].time):
            if not self.window.shows(event.time, end):
                continue
            name = str(event.cause).replace("_", " ")
            x = self.window.x(event.time)
            for node in fault_nodes(event) or (-1,):
                y = self.brokers.get(node, TOP)
                named = x >= free.get(y, 0.0)
                free[y] = x + LETTER * len(name) if named else free[y]
                shapes.append(
                    Shape(
                        x=x,
                        y=y,
                        width=max(round(self.window.x(end) - x, 1), NARROWEST),
                        kind="fault",
                        title=f"{event_in_words(event)}, {seconds(event.time)} to {seconds(end)}",
                        label=name if named else "",
                    )
                )
        return tuple(shapes)

    def operations(self, operations: Iterable[Operation], convicting: frozenset[int]) -> tuple[Shape, ...]:
        """A bar from invocation to completion; to the edge while nothing was heard. What convicts lies on top."""
        found = []
        for operation in operations:
            end = self.window.end if operation.completion_time is None else operation.completion_time
            if operation.process in self.clients and self.window.shows(operation.invoke_time, end):
                guilty = operation.op_id in convicting
                start, stop = self.window.x(operation.invoke_time), self.window.x(end)
                words = f"op {operation.op_id}: {request_in_words(operation)} -> {answer_in_words(operation)}"
                found.append(
                    Shape(
                        x=start,
                        y=self.clients[operation.process],
                        width=max(round(stop - start, 1), NARROWEST),
                        kind=f"{operation.outcome.value}{' convicts' if guilty else ''}",
                        title=f"{words}, {seconds(operation.invoke_time)}, {duration(end - operation.invoke_time)}",
                        label=f"op {operation.op_id}" if guilty else "",
                    )
                )
        return tuple(sorted(found, key=lambda shape: bool(shape.label)))


def _clients(trace: Trace, partition: Partition, convicting: frozenset[int], window: _Window) -> list[int]:
    """The processes that get a lane, in order: those with anything to draw."""
    weight: dict[int, int] = {}
    for operation in trace.operations:
        end = window.end if operation.completion_time is None else operation.completion_time
        if not window.shows(operation.invoke_time, end):
            continue
        guilty = operation.op_id in convicting
        if guilty or partition == NO_PARTITION or (operation.topic, operation.partition) == partition:
            weight[operation.process] = weight.get(operation.process, 0) + (
                len(trace.operations) if guilty else 1
            )
    busiest = sorted(weight, key=lambda process: (-weight[process], process))[:MOST_CLIENTS]
    return sorted(busiest)


def picture_of(trace: Trace, finding: Finding) -> Picture:
    """The geometry of a finding's picture."""
    partition = (finding.topic, finding.partition) if finding.topic is not None else NO_PARTITION
    convicting = frozenset(finding.operations)
    guilty = [operation for operation in trace.operations if operation.op_id in convicting]
    events = [trace.events[at] for at in finding.events if 0 <= at < len(trace.events)]
    lanes = lanes_of(trace, frozenset({partition} if finding.topic is not None else ()))
    drawing = _Drawing(_window(trace, guilty, events))
    names: list[tuple[int, str]] = []
    for broker in lanes.brokers:
        drawing.brokers[broker] = TOP + LANE * len(names)
        names.append((drawing.brokers[broker], f"broker {broker}"))
    for client in _clients(trace, partition, convicting, drawing.window):
        drawing.clients[client] = TOP + LANE * len(names) + (6 if lanes.brokers else 0)
        names.append((drawing.clients[client], f"client {client}"))
    marks = [
        Mark(
            drawing.window.x(event.time),
            drawing.brokers[event.node],
            f"{seconds(event.time)}: {event_in_words(event)}",
        )
        for event in events
        if event.node in drawing.brokers
    ]
    return Picture(
        title=f"{finding.anomaly} in trace {trace.trace_id}",
        height=TOP + LANE * len(names) + 36,
        lanes=tuple(names),
        ticks=tuple(drawing.window.ticks()),
        faults=drawing.faults(trace),
        roles=drawing.roles(trace, lanes, partition),
        operations=drawing.operations(trace.operations, convicting),
        marks=tuple(marks),
    )


def span_of(trace: Trace, finding: Finding) -> tuple[int, int]:
    """The stretch of virtual time that a finding's picture shows, for drawings that share its axis."""
    convicting = frozenset(finding.operations)
    guilty = [operation for operation in trace.operations if operation.op_id in convicting]
    events = [trace.events[at] for at in finding.events if 0 <= at < len(trace.events)]
    window = _window(trace, guilty, events)
    return window.start, window.end


def draw(trace: Trace, finding: Finding) -> str:
    """The finding as one SVG element, with its style sheet inside, so that it may stand alone or in a page."""
    legend, x = [], LEFT
    for words, kind in LEGEND:
        legend.append((x, words, kind))
        x += 26 + 5 * len(words)
    return render(
        "picture.svg",
        picture=picture_of(trace, finding),
        legend=legend,
        bar=BAR,
        width=WIDTH,
        left=LEFT,
        top=TOP,
    )
