"""The drawn forms: a finding's figure with its measurements, the page. Plotly accepts them, and text stays
text."""

import json

import plotly.graph_objects
import pytest
from attrs import evolve

from fencepost.checkers.kafka import measure_trace
from fencepost.checkers.verdict import Finding
from fencepost.report import report_page
from fencepost.report.chart import lag, unseen
from fencepost.report.picture import FAULT, MOST_CLIENTS, figure_of, picture_of
from fencepost.report.report_page import Example, Page, Table
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace

HOSTILE = '<script>alert("x")</script>&'


def bars(figure, name: str) -> list[dict]:
    """The bars of a kind, one by one, as Plotly will draw them."""
    checked = plotly.graph_objects.Figure(figure.as_json())  # raises for what Plotly would not understand
    return [
        {"lane": lane, "start": base, "length": length, "text": text, "title": title}
        for trace in checked.data
        if trace.name == name
        for lane, base, length, text, title in zip(
            trace.y, trace.base, trace.x, trace.text, trace.hovertext, strict=True
        )
    ]


def test_the_figure_shows_what_convicts_over_its_lanes(trace: Trace, finding: Finding) -> None:
    """Each convicting operation is a red bar of its client, each convicting event a mark on its broker's
    lane."""
    figure = figure_of(trace, finding)
    assert [bar["title"].split(":")[0] for bar in bars(figure, "convicts")] == ["op 2", "op 3"]
    picture = picture_of(trace, finding)
    assert picture.lanes == ("broker 1", "broker 2", "client 4", "client 5")
    assert list(figure.layout["yaxis"]["ticktext"]) == list(picture.lanes)
    assert [mark.lane for mark in picture.marks] == [1]
    assert "LEADS in epoch 1" in picture.marks[0].title
    assert [bar["lane"] for bar in bars(figure, "convicts")] == [2, 3]


def test_faults_at_once_lie_below_each_other_and_lanes_make_room(trace: Trace, finding: Finding) -> None:
    """Two faults of one broker at the same time have a row each, with their names; a third that begins later
    takes the first row again; the lanes below move down by one row."""
    (began,) = [event for event in trace.events if event.name is Name.FAULT_BEGAN]
    (ended,) = [event for event in trace.events if event.name is Name.FAULT_ENDED]

    def fault(number: int, kind: str, start: int, end: int) -> list[Event]:
        detail = json.dumps({"fault": number, "nodes": [began.node]})
        return [
            evolve(began, time=start, cause=kind, detail=detail),
            evolve(ended, time=end, cause=kind, detail=detail),
        ]

    second = 1_000_000_000
    more = [*fault(71, "pause", 9 * second, 11 * second), *fault(72, "loss", 10 * second, 12 * second)]
    events = sorted([*trace.events, *more], key=lambda event: event.time)
    at = {id(event): place for place, event in enumerate(events)}
    moved = evolve(finding, events=tuple(at[id(trace.events[place])] for place in finding.events))
    changed = evolve(trace, events=tuple(events))
    picture = picture_of(changed, moved)
    assert [(bar.label, bar.row) for bar in picture.faults] == [(began.cause, 0), ("pause", 1), ("loss", 0)]
    assert picture.where == pytest.approx((0, 1, 2 + FAULT, 3 + FAULT, 4 + FAULT))
    drawn = bars(figure_of(changed, moved), "fault")
    assert len({round(bar["lane"], 3) for bar in drawn}) == 2


def test_roles_and_faults_are_drawn_as_long_as_they_lasted(trace: Trace, finding: Finding) -> None:
    """A broker's role is a bar from change to change; a fault lasts from its beginning to its end."""
    figure = figure_of(trace, finding)
    (leads, later) = bars(figure, "leads")
    assert leads["title"] == "broker 1 leads, 0.007000 to 9.700000"
    assert later["title"] == "broker 2 leads, 9.701000 to 12.002000"
    (believes,) = bars(figure, "believes that it leads")
    assert (believes["start"], believes["start"] + believes["length"]) == pytest.approx((9.7, 12.002))
    (down,) = bars(figure, "down")
    (fault,) = bars(figure, "fault")
    assert fault["title"].endswith("9.000000 to 9.500000")
    assert (fault["start"], fault["length"]) == pytest.approx((9.0, 0.5))
    assert (down["start"], down["length"]) == pytest.approx((9.0, 0.501))
    assert int(fault["lane"]) == down["lane"] == 1


def test_a_fault_without_a_broker_has_a_lane_of_its_own(trace: Trace, finding: Finding) -> None:
    """It is drawn below all others, and there is no such lane without such a fault."""
    events = tuple(
        evolve(event, detail=event.detail.replace("[2]", "[]"), node=-1) if event.cause == "crash" else event
        for event in trace.events
    )
    picture = picture_of(evolve(trace, events=events), finding)
    assert picture.lanes[-1] == "faults" and [bar.lane for bar in picture.faults] == [4]


def test_an_operation_without_an_answer_reaches_the_edge(trace: Trace, finding: Finding) -> None:
    """What is in flight for ever is drawn to the end of the stretch of time."""
    open_ended = evolve(trace.operations[0], completion_time=None)
    picture = picture_of(evolve(trace, operations=(open_ended, *trace.operations[1:])), finding)
    bar = next(bar for bar in picture.operations if bar.title.startswith("op 1:"))
    assert bar.end == picture.end == max(role.end for role in picture.roles)


def test_bars_can_be_seen_however_short_they_are(trace: Trace, finding: Finding) -> None:
    """An operation of 2 ms in 12 s is as long as a pixel or two."""
    figure = figure_of(trace, finding)
    picture = picture_of(trace, finding)
    span = (picture.end - picture.start) / 1e9
    assert all(bar["length"] >= span / 401 for bar in bars(figure, "convicts"))


def test_labels_do_not_run_into_each_other(trace: Trace, finding: Finding) -> None:
    """Of two convicting operations that begin together one has its label; both have their words."""
    twin = evolve(trace.operations[1], op_id=22)
    both = evolve(trace, operations=(*trace.operations, twin))
    found = bars(figure_of(both, evolve(finding, operations=(2, 3, 22))), "convicts")
    assert sorted(bar["text"] for bar in found if bar["lane"] == 2) == ["", "op 2"]
    assert all(bar["title"] for bar in found)


def test_convicting_clients_have_a_lane_whatever_the_crowd(trace: Trace, finding: Finding) -> None:
    """With more clients than lanes those that convict stay."""
    crowd = [evolve(trace.operations[0], op_id=100 + n, process=100 + n // 3) for n in range(90)]
    picture = picture_of(evolve(trace, operations=(*crowd, *trace.operations)), finding)
    names = [name for name in picture.lanes if name.startswith("client")]
    assert len(names) == MOST_CLIENTS and {"client 4", "client 5"} <= set(names)


def test_names_of_a_trace_cannot_leave_their_place(trace: Trace, finding: Finding) -> None:
    """A hostile topic, fault or check is text on the page, never markup."""
    events = tuple(
        evolve(event, topic=HOSTILE if event.topic else None, cause=HOSTILE) for event in trace.events
    )
    operations = tuple(evolve(operation, topic=HOSTILE) for operation in trace.operations)
    hostile = evolve(trace, events=events, operations=operations)
    figure = figure_of(hostile, evolve(finding, topic=HOSTILE))
    assert "<script" not in json.dumps(figure.as_json())
    table = Table(heading=HOSTILE, columns=(HOSTILE, "n"), rows=((HOSTILE, "1"),), note=HOSTILE, share=(1.0,))
    example = Example(heading=HOSTILE, facts=((HOSTILE, HOSTILE),), proof=(HOSTILE,), figures=(figure,))
    html = Page(title=HOSTILE, lead=HOSTILE, good=False, tables=(table,), examples=(example,)).html()
    assert (
        "<script>alert" not in html and html.count("<script") == 3
    )  # the figure's data, the library, the call
    assert html.count("&lt;script&gt;") >= 9


def test_nothing_runs_but_what_the_policy_names(trace: Trace, finding: Finding, monkeypatch) -> None:
    """Without a figure no script is allowed; with one, two by their hashes; without the library, the page
    says so."""
    example = Example(heading="x", facts=(), proof=(), figures=(figure_of(trace, finding),))
    plain = Page(title="t", lead="l", good=True)
    drawn = evolve(plain, examples=(example,))
    assert "script-src 'none'" in plain.html() and "<script" not in plain.html()
    assert drawn.html().split("script-src ")[1].split(";")[0].count("'sha256-") == 2
    monkeypatch.setattr(report_page, "library", lambda: "")
    assert "pip install plotly" in drawn.html() and "<script" not in drawn.html()
    assert "pip install plotly" not in plain.html()


def test_unseen_and_lag_are_drawn_from_the_measurements(trace: Trace) -> None:
    """Two records are acknowledged and one is shown: the line ends at 1; without polls there is no lag to
    draw."""
    measured = measure_trace(trace)
    end = 12_002_000_000
    panel = unseen(measured, 0, end)
    (line,) = panel.data
    assert (max(line["y"]), line["y"][-1], line["x"][-1]) == (2, 1, 12.002)
    silent = measure_trace(evolve(trace, operations=trace.operations[:2]))
    assert lag(silent, 0, end) is None
    assert unseen(measure_trace(evolve(trace, operations=())), 0, end) is None
