"""The figure of a finding: a lane per broker and per client over time, faults on the brokers that they hit,
what convicts in red, and below it the measurements of the same stretch of time.

Owns: the stretch of time, the lanes, what each bar says. Must not know: how a finding was found, HTML pages.
"""

from collections.abc import Iterable, Iterator, Sequence

from attrs import Factory, define, evolve, frozen

from fencepost.checkers.durations import NANOSECONDS, duration
from fencepost.checkers.kafka import measure_trace
from fencepost.checkers.verdict import Finding
from fencepost.report.chart import Panel, lag, unseen
from fencepost.report.entries import Partition
from fencepost.report.event_words import (
    answer_in_words,
    event_in_words,
    fault_key,
    fault_nodes,
    request_in_words,
    seconds,
)
from fencepost.report.figure import Figure, Values, axis, layout, text_of
from fencepost.report.lanes import Lanes, lanes_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

FAULT, MOST_ROWS = 0.42, 6
"""The height of a fault, in lanes, and the rows for faults in a lane. More faults at the same time overlap in
the last row."""
LANE, PANEL, BETWEEN, MARGINS = 26, 130, 46, 110
"""Pixels: the height of a lane, of a measurement, of the room above it, and of margins with the legend."""
MOST_CLIENTS = 12
"""Clients that get a lane: those whose operations convict, then the busiest."""
SHORTEST = 400
"""The shortest bar is this part of the stretch of time, so that it can be seen and pointed at."""
LETTER = 0.009
"""Width of a letter of a label, as a part of the figure's."""
NO_PARTITION: Partition = (None, -1)
LOOKS = {
    "leader": ("leads", "#2f7ed8", ""),
    "believes": ("believes that it leads", "#d9822b", "/"),
    "follower": ("in the ISR", "#86b3de", ""),
    "outside": ("outside the ISR", "#b9b9b9", "."),
    "down": ("down", "#6b6b6b", "x"),
    "paused": ("paused", "#8a6fb0", "|"),
    "fault": ("fault", "#e0a100", ""),
    "unknown": ("unknown", "#d1ab2e", "+"),
    "fail": ("failed", "#9a9a9a", "-"),
    "ok": ("ok", "#5fa85d", ""),
    "convicts": ("convicts", "#d62728", ""),
}
"""Name in the legend, colour and pattern of each kind of bar. No two kinds differ by colour alone.
Later ones are drawn over earlier ones."""
ROLES = {
    "L": ("leads", "leader"),
    "l": ("believes that it leads", "believes"),
    "f": ("follows, in the ISR", "follower"),
    "o": ("follows, not in the ISR", "outside"),
    "x": ("is down", "down"),
    "z": ("is paused", "paused"),
}
"""The meaning of each letter of a lane: words, and the kind of its bar."""


@frozen(kw_only=True)
class Bar:
    """One bar of a lane. A fault is a narrow one at the lower edge of its lane."""

    # number of its lane, from the top
    lane: int
    # nanoseconds
    start: int
    end: int
    # a key of LOOKS
    kind: str
    # shown when it is pointed at
    title: str
    # written at it, if there is room
    label: str = ""
    # Row of a fault in its lane: 0, or the first without overlap.
    row: int = 0


@frozen
class Mark:
    """A convicting event on its broker's lane."""

    # In nanoseconds.
    time: int
    lane: int
    title: str


@frozen(kw_only=True)
class Picture:
    """Everything that is drawn for a finding."""

    title: str
    # Nanoseconds; the axis of time.
    start: int
    end: int
    # Names from the top.
    lanes: tuple[str, ...]
    # Roles of brokers over time.
    roles: tuple[Bar, ...]
    faults: tuple[Bar, ...]
    operations: tuple[Bar, ...]
    marks: tuple[Mark, ...]

    @property
    def where(self) -> tuple[float, ...]:
        """The middle of each lane, in heights of a lane from the first one's: lanes leave room for the rows
        of faults above them. The last number is where one more lane would be."""
        found = [0.0]
        for lane in range(len(self.lanes)):
            rows = max((bar.row for bar in self.faults if bar.lane == lane), default=0)
            found.append(found[-1] + 1 + FAULT * rows)
        return tuple(found)


@define
class _Window:
    """The stretch of time that is drawn, in nanoseconds."""

    start: int
    end: int

    def inside(self, time: int) -> int:
        """A moment, kept within the stretch."""
        return min(max(time, self.start), self.end)

    def shows(self, start: int, end: int) -> bool:
        """Whether anything of a stretch is inside."""
        return start <= self.end and end >= self.start


def _window(trace: Trace, operations: list[Operation], events: list[Event]) -> _Window:
    """What convicts with a third of its length on both sides, and the last fault that began before it, which
    is mostly its cause; the whole trace if nothing convicts."""
    times = [event.time for event in trace.events]
    for operation in trace.operations:
        times += [operation.invoke_time, operation.completion_time or operation.invoke_time]
    first, last = min(times, default=0), max(times, default=0)
    moments = [event.time for event in events]
    for operation in operations:
        moments += [operation.invoke_time, operation.completion_time or operation.invoke_time]
    if moments:
        margin = max((max(moments) - min(moments)) // 3, (last - first) // 20)
        causes = [e.time for e in trace.events if e.name is Name.FAULT_BEGAN and e.time <= min(moments)]
        first = max(first, min(min(moments), max(causes, default=last)) - margin)
        last = min(last, max(moments) + margin)
    return _Window(first, max(last, first + 1))


@define
class _Drawing:
    """The bars, gathered lane by lane."""

    window: _Window
    # Number of the lane of each.
    brokers: dict[int, int] = Factory(dict)
    clients: dict[int, int] = Factory(dict)
    # The lane of faults that hit no broker; drawn only if there are any.
    elsewhere: int = 0

    def roles(self, trace: Trace, lanes: Lanes, partition: Partition) -> tuple[Bar, ...]:
        """What each broker is to the partition, from change to change."""
        since: dict[int, tuple[str, int]] = {}
        found: list[Bar] = []

        def close(broker: int, until: int) -> None:
            letter, start = since[broker]
            if letter in ROLES and until > start and self.window.shows(start, until):
                words, kind = ROLES[letter]
                says = f"broker {broker} {words}, {seconds(start)} to {seconds(until)}"
                found.append(self._bar(self.brokers[broker], start, until, kind, says))

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

    def faults(self, trace: Trace) -> tuple[Bar, ...]:
        """Draw each fault from beginning to end, on the lanes of its brokers or on a separate lane."""
        bars: list[Bar] = []
        for event, end in sorted(_faults(trace, self.window.end), key=lambda pair: pair[0].time):
            if not self.window.shows(event.time, end):
                continue
            says = f"{event_in_words(event)}, {seconds(event.time)} to {seconds(end)}"
            name = str(event.cause).replace("_", " ")
            hit = [self.brokers[node] for node in fault_nodes(event) if node in self.brokers]
            for lane in hit or (self.elsewhere,):
                bar = self._bar(lane, event.time, end, "fault", says, name)
                bars.append(evolve(bar, row=_free_row(bar, bars)))
        return tuple(bars)

    def operations(self, operations: Iterable[Operation], convicting: frozenset[int]) -> tuple[Bar, ...]:
        """A bar from invocation to completion; to the edge without a completion. Those of the proof are drawn
        last, on top."""
        found = []
        for operation in operations:
            end = self.window.end if operation.completion_time is None else operation.completion_time
            if operation.process in self.clients and self.window.shows(operation.invoke_time, end):
                guilty = operation.op_id in convicting
                words = f"op {operation.op_id}: {request_in_words(operation)} -> {answer_in_words(operation)}"
                says = f"{words}, {seconds(operation.invoke_time)}, {duration(end - operation.invoke_time)}"
                kind = "convicts" if guilty else operation.outcome.value
                label = f"op {operation.op_id}" if guilty else ""
                lane = self.clients[operation.process]
                found.append(self._bar(lane, operation.invoke_time, end, kind, says, label))
        return tuple(sorted(found, key=lambda bar: bar.kind == "convicts"))

    def _bar(self, lane: int, start: int, end: int, kind: str, title: str, label: str = "") -> Bar:
        start, end = self.window.inside(start), self.window.inside(end)
        return Bar(lane=lane, start=start, end=end, kind=kind, title=title, label=label)


def _free_row(bar: Bar, before: Sequence[Bar]) -> int:
    """The first row of its lane in which a fault overlaps none of those before it; the last one if there is
    none."""
    for row in range(MOST_ROWS - 1):
        same = (other for other in before if (other.lane, other.row) == (bar.lane, row))
        if all(bar.start >= other.end for other in same):
            return row
    return MOST_ROWS - 1


def _faults(trace: Trace, last: int) -> Iterator[tuple[Event, int]]:
    """Each fault by its beginning, and its end: `last` for one that never ended."""
    began: dict[object, Event] = {}
    for event in trace.events:
        number = fault_key(event)
        if event.name is Name.FAULT_BEGAN:
            began[number] = event
        elif event.name is Name.FAULT_ENDED and number in began:
            yield began.pop(number), event.time
    for event in began.values():
        yield event, last


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
    """What is drawn of a finding: lanes, and what is on them."""
    partition = (finding.topic, finding.partition) if finding.topic is not None else NO_PARTITION
    convicting = frozenset(finding.operations)
    guilty = [operation for operation in trace.operations if operation.op_id in convicting]
    events = [trace.events[at] for at in finding.events if 0 <= at < len(trace.events)]
    lanes = lanes_of(trace, frozenset({partition} if finding.topic is not None else ()))
    window = _window(trace, guilty, events)
    drawing = _Drawing(window)
    names: list[str] = []
    for broker in lanes.brokers:
        drawing.brokers[broker] = len(names)
        names.append(f"broker {broker}")
    for client in _clients(trace, partition, convicting, window):
        drawing.clients[client] = len(names)
        names.append(f"client {client}")
    drawing.elsewhere = len(names)
    faults = drawing.faults(trace)
    if any(bar.lane == drawing.elsewhere for bar in faults):
        names.append("faults")
    marks = [
        Mark(event.time, drawing.brokers[event.node], f"{seconds(event.time)}: {event_in_words(event)}")
        for event in events
        if event.node in drawing.brokers
    ]
    return Picture(
        title=f"{finding.anomaly} in trace {trace.trace_id}",
        start=window.start,
        end=window.end,
        lanes=tuple(names),
        faults=faults,
        roles=drawing.roles(trace, lanes, partition),
        operations=drawing.operations(trace.operations, convicting),
        marks=tuple(marks),
    )


def _bars(picture: Picture) -> Iterator[Values]:
    """A trace of Plotly's for each kind of bar."""
    shortest = (picture.end - picture.start) / SHORTEST
    every = (*picture.roles, *picture.faults, *picture.operations)
    where = picture.where
    for kind, (name, colour, pattern) in LOOKS.items():
        bars = [bar for bar in every if bar.kind == kind]
        if not bars:
            continue
        narrow = kind == "fault"
        yield {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": [where[bar.lane] + (0.3 + FAULT * bar.row if narrow else 0) for bar in bars],
            "base": [bar.start / NANOSECONDS for bar in bars],
            "x": [max(bar.end - bar.start, shortest) / NANOSECONDS for bar in bars],
            "width": FAULT * 0.95 if narrow else 0.66,
            "hovertext": [text_of(bar.title) for bar in bars],
            "hoverinfo": "text",
            "text": _labels(bars, picture, inside=narrow),
            "textposition": "inside" if narrow else "outside",
            "textfont": {"size": 10},
            "insidetextanchor": "start",
            "textangle": 0,
            "constraintext": "none",
            "cliponaxis": False,
            "marker": {
                "color": colour,
                "pattern": {"shape": pattern, "size": 6, "solidity": 0.2, "fillmode": "overlay"},
            },
            "opacity": 0.55 if kind == "unknown" else 1,
        }


def _labels(bars: list[Bar], picture: Picture, *, inside: bool) -> list[str]:
    """The labels of one kind of bar, "" for each that has no room: inside of its bar, or up to the right edge
    and the bar of the same kind that comes before it on its lane."""
    free: dict[tuple[int, int], float] = {}
    labels = []
    for bar in bars:
        length = (picture.end - picture.start) * LETTER * len(bar.label)
        place = bar.lane, bar.row
        fits = bar.label and bar.start >= free.get(place, 0)
        fits = fits and length <= (bar.end - bar.start if inside else picture.end - bar.end)
        if fits:
            free[place] = bar.start + length
        labels.append(text_of(bar.label) if fits else "")
    return labels


def _lane_axis(picture: Picture, top: float) -> Values:
    names = [text_of(name) for name in picture.lanes]
    return axis(
        domain=[top, 1],
        tickvals=list(picture.where[:-1]),
        ticktext=names,
        range=[picture.where[-1] - 0.5, -0.5],
        fixedrange=True,
        showgrid=False,
    )


def figure_of(trace: Trace, finding: Finding) -> Figure:
    """The finding as a figure: lanes, and below them the measurements over the same axis of time."""
    picture = picture_of(trace, finding)
    measured = measure_trace(trace)
    drawn = unseen(measured, picture.start, picture.end), lag(measured, picture.start, picture.end)
    panels = [panel for panel in drawn if panel is not None]
    lanes = round(LANE * picture.where[-1])
    height = lanes + (PANEL + BETWEEN) * len(panels)
    data = list(_bars(picture))
    if picture.marks:
        data.append(_marks(picture))
    axes: Values = {"yaxis": _lane_axis(picture, 1 - lanes / height)}
    titles = []
    for number, panel in enumerate(panels, 2):
        low = (PANEL + BETWEEN) * (len(panels) + 1 - number) / height
        axes[f"yaxis{number}"] = axis(panel.unit, domain=[low, low + PANEL / height], rangemode="tozero")
        data += [{**one, "yaxis": f"y{number}", "showlegend": False} for one in panel.data]
        titles.append(_heading(panel, low + PANEL / height))
    start, end = picture.start / NANOSECONDS, picture.end / NANOSECONDS
    bottom = f"y{len(panels) + 1}" if panels else "y"
    axes["xaxis"] = axis(range=[start, end], ticksuffix=" s", anchor=bottom)
    return Figure(
        title=picture.title,
        data=tuple(data),
        layout=layout(height + MARGINS, barmode="overlay", annotations=titles, **axes),
    )


def _marks(picture: Picture) -> Values:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "convicting event",
        "x": [mark.time / NANOSECONDS for mark in picture.marks],
        "y": [picture.where[mark.lane] for mark in picture.marks],
        "hovertext": [text_of(mark.title) for mark in picture.marks],
        "hoverinfo": "text",
        "marker": {
            "symbol": "diamond",
            "size": 13,
            "color": "#d62728",
            "line": {"color": "#fff", "width": 1},
        },
    }


def _heading(panel: Panel, y: float) -> Values:
    """Above a panel. y: its upper edge, 0 to 1."""
    return {
        "text": text_of(panel.title),
        "x": 0,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }
