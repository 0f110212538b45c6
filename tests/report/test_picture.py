"""The drawn forms: a finding's picture, measurements over time, the page. Everything is well-formed XML and escaped."""

from xml.etree import ElementTree

from attrs import evolve

from fencepost.checkers.kafka import measure_trace
from fencepost.checkers.verdict import Finding
from fencepost.report.chart import lag_chart, unseen_chart
from fencepost.report.page import Example, Page, Table
from fencepost.report.picture import MOST_CLIENTS, draw, picture_of
from fencepost.traces.trace import Trace

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>alert("x")</script>&'


def _titles(svg: str, kind: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    rectangles = [shape for shape in root.iter(f"{SVG}rect") if kind in (shape.get("class") or "").split()]
    return [shape.findtext(f"{SVG}title") or "" for shape in rectangles if len(shape)]


def test_the_picture_shows_what_convicts_over_its_lanes(trace: Trace, finding: Finding) -> None:
    """Each convicting operation is a red bar of its client, each convicting event a mark on its broker's lane."""
    svg = draw(trace, finding)
    assert [title.split(":")[0] for title in _titles(svg, "convicts")] == ["op 2", "op 3"]
    picture = picture_of(trace, finding)
    assert [name for _, name in picture.lanes] == ["broker 1", "broker 2", "client 4", "client 5"]
    assert [mark.y for mark in picture.marks] == [picture.lanes[1][0]]
    assert "LEADS in epoch 1" in picture.marks[0].title
    assert all(picture.lanes[2][0] == shape.y for shape in picture.operations if "op 2" in shape.title)


def test_roles_and_faults_are_drawn_as_long_as_they_lasted(trace: Trace, finding: Finding) -> None:
    """A broker's role is a bar from change to change; a fault is shaded from its beginning to its end."""
    picture = picture_of(trace, finding)
    told = [(shape.kind, shape.title) for shape in picture.roles]
    assert ("leader", "broker 1 leads, 0.007000 to 9.700000") in told
    assert ("believes", "broker 1 believes that it leads, 9.700000 to 12.002000") in told
    assert ("down", "broker 2 is down, 9.000000 to 9.501000") in told
    (fault,) = picture.faults
    assert fault.label == "crash" and fault.title.endswith("9.000000 to 9.500000")
    down = next(shape for shape in picture.roles if shape.kind == "down")
    assert (fault.x, True) == (down.x, fault.width < down.width)


def test_an_operation_without_an_answer_reaches_the_edge(trace: Trace, finding: Finding) -> None:
    """What is in flight for ever is drawn to the end of the window."""
    open_ended = evolve(trace.operations[0], completion_time=None)
    picture = picture_of(evolve(trace, operations=(open_ended, *trace.operations[1:])), finding)
    bar = next(shape for shape in picture.operations if shape.title.startswith("op 1:"))
    assert bar.x + bar.width == max(shape.x + shape.width for shape in picture.roles)


def test_convicting_clients_have_a_lane_whatever_the_crowd(trace: Trace, finding: Finding) -> None:
    """With more clients than lanes those that convict stay."""
    crowd = [evolve(trace.operations[0], op_id=100 + n, process=100 + n // 3) for n in range(90)]
    picture = picture_of(evolve(trace, operations=(*crowd, *trace.operations)), finding)
    names = [name for _, name in picture.lanes if name.startswith("client")]
    assert len(names) == MOST_CLIENTS and {"client 4", "client 5"} <= set(names)


def test_ticks_are_few_and_round(trace: Trace, finding: Finding) -> None:
    """Between 2 and 11 moments, whatever the length of the window."""
    for factor in (1, 7, 1_000, 123_457):
        slow = tuple(evolve(event, time=event.time * factor) for event in trace.events)
        ticks = picture_of(evolve(trace, events=slow), evolve(finding, operations=())).ticks
        assert 2 <= len(ticks) <= 11, factor


def test_names_of_a_trace_cannot_leave_their_place(trace: Trace, finding: Finding) -> None:
    """A hostile topic, fault or check is text on the page, never markup."""
    events = tuple(
        evolve(event, topic=HOSTILE if event.topic else None, cause=HOSTILE) for event in trace.events
    )
    operations = tuple(evolve(operation, topic=HOSTILE) for operation in trace.operations)
    hostile = evolve(trace, events=events, operations=operations)
    svg = draw(hostile, evolve(finding, topic=HOSTILE))
    assert "<script" not in svg
    table = Table(heading=HOSTILE, columns=(HOSTILE, "n"), rows=((HOSTILE, "1"),), note=HOSTILE, share=(1.0,))
    example = Example(heading=HOSTILE, facts=((HOSTILE, HOSTILE),), proof=(HOSTILE,), pictures=(svg,))
    html = Page(title=HOSTILE, lead=HOSTILE, good=False, tables=(table,), examples=(example,)).html()
    assert "<script" not in html and svg in html
    assert html.count("&lt;script&gt;") >= 9


def test_unseen_and_lag_are_drawn_from_the_measurements(trace: Trace) -> None:
    """Two records are acknowledged and one is shown: the line ends at 1; without polls there is no lag to draw."""
    measured = measure_trace(trace)
    end = 12_002_000_000
    root = ElementTree.fromstring(unseen_chart(measured, 0, end))
    (line,) = root.iter(f"{SVG}polyline")
    heights = [float(point.split(",")[1]) for point in (line.get("points") or "").split()]
    bottom, top = heights[0], min(heights)
    assert heights[-1] == (bottom + top) / 2
    silent = measure_trace(evolve(trace, operations=trace.operations[:2]))
    assert lag_chart(silent, 0, end) == ""
    assert unseen_chart(measure_trace(evolve(trace, operations=())), 0, end) == ""
