"""What an application wrote of itself, as a page: a lane of each process, over the partitions."""

import json

import pytest
from attrs import evolve

from fencepost.checkers.application.application_events import Kind
from fencepost.checkers.application.application_judge import Claims
from fencepost.checkers.application.recorded import trace_of_events
from fencepost.checkers.judges import judge
from fencepost.cli import run
from fencepost.traces.errors import ExitCode
from fencepost.traces.operations import Function
from fencepost.viewer.view import Shown, view_of
from tests.application.histories import random_run
from tests.application.test_twin import events_of
from tests.checkers import lab

AT = {"topic": "orders", "partition": 0}


def lines(process, *rows, **more):
    """The lines of a process: (event, offset) each."""
    found = [{"event": "started", "process": process, "n": 0, **more}]
    for number, (event, offset) in enumerate(rows, 1):
        of_send = {"id": offset} if event in ("sent", "acknowledged") else {}
        found.append({"event": event, "process": process, "n": number, "offset": offset, **of_send, **AT})
    return found


def lossy_run():
    """A consumer commits past record 1 and dies; another one goes on at 2. Its lines are read before those
    of the producer."""
    return [
        lines("billing-2", ("assigned", 2), ("received", 2), ("processed", 2), ("committed", 3), group="g"),
        lines(
            "billing-1",
            *(("assigned", 0), ("received", 0), ("received", 1), ("processed", 0), ("committed", 2)),
            group="g",
        ),
        lines("shop", *((event, offset) for offset in range(3) for event in ("sent", "acknowledged"))),
    ]


@pytest.fixture
def view():
    """Of the run above, judged."""
    trace = trace_of_events(events_of(lossy_run()), Claims())
    return view_of(Shown(trace=trace, verdicts=judge(trace)))


def test_the_axis_of_lines_without_times_is_their_order(view):
    """Rule: a reader does not take a place for a time; next to operations of clients there are times."""
    assert view["timed"] is False
    trace = trace_of_events(events_of(lossy_run()), Claims())
    operation = lab.operation(1, Function.POLL, 0, 1, process=1, topic="orders", partition=0)
    assert view_of(Shown(trace=evolve(trace, operations=(operation,))))["timed"] is True


def moments(view):
    """(lane's label, words) of each moment."""
    rows = zip(view["moments"]["lane"], view["moments"]["text"], strict=True)
    return [(view["lanes"][lane]["label"], view["texts"][text]) for lane, text in rows]


def test_each_process_has_a_lane_and_its_lines_are_on_it(view):
    """Rule: a line is drawn on the lane of the process that wrote it, and says what it did."""
    assert [(lane["kind"], lane["label"]) for lane in view["lanes"]] == [
        ("process", "billing-2"),
        ("process", "billing-1"),
        ("process", "shop"),
    ]
    found = moments(view)
    assert len(found) == 5 + 6 + 7
    assert ("billing-1", "received orders-0 offset 1") in found
    assert ("shop", "acknowledged orders-0 offset 2") in found


def test_a_line_is_drawn_after_those_that_it_follows_from(view):
    """Rule: a record is acknowledged before it is handed out, and an owner that begins at a commit comes
    after it, in whatever order their files are read."""
    found = moments(view)
    place = found.index
    for offset, owner in ((0, "billing-1"), (1, "billing-1"), (2, "billing-2")):
        sent = place(("shop", f"acknowledged orders-0 offset {offset}"))
        assert sent < place((owner, f"received orders-0 offset {offset}"))
    assert place(("billing-1", "committed orders-0 offset 2")) < place(
        ("billing-2", "assigned orders-0 offset 2")
    )
    for process in ("billing-1", "billing-2", "shop"):
        mine = [words for label, words in found if label == process]
        rows = next(rows for rows in lossy_run() if rows[0]["process"] == process)
        assert [words.split()[0] for words in mine] == [row["event"] for row in rows]


def test_the_finding_is_marked_at_its_lines(view):
    """Rule: the page opens at the line that passed the record, and marks where it was received, too."""
    (finding,) = [one for one in view["findings"] if one["anomaly"] == "record_never_processed"]
    found = moments(view)
    assert [found[step] for step in finding["steps"]] == [
        ("billing-1", "received orders-0 offset 1"),
        ("billing-2", "committed orders-0 offset 3"),
    ]
    assert finding["records"] == [[0, 1]]


def test_partitions_show_what_became_of_each_record(view):
    """Rule: a row each of what was acknowledged, read and processed; record 1 is in the first two alone."""
    (partition,) = view["clients"]
    known = partition["known"]
    offsets = {how: set() for how in ("acknowledged", "read", "processed")}
    for base, how, values in zip(known["base"], known["how"], known["values"], strict=True):
        count = len(values[0]) if isinstance(values[0], list) else values[1]
        offsets[view["hows"][how]] |= set(range(base, base + count))
    assert offsets == {"acknowledged": {0, 1, 2}, "read": {0, 1, 2}, "processed": {0, 2}}


def test_groups_show_commits_and_positions(view):
    """Rule: of the group, what it has committed, and where each process stands."""
    facts = view["groups"]["facts"]
    assert view["groups"]["names"] == ["g"]
    assert facts["g"]["committed orders-0"]["values"] == [2, 3]
    assert facts["billing-2"]["position orders-0"]["values"] == [3]
    members = {name: facts[name]["member"]["values"] for name in ("billing-1", "billing-2")}
    assert [each["partitions"] for each in members["billing-1"]] == [["orders-0"], []], "the other one has it"
    assert [each["partitions"] for each in members["billing-2"]] == [["orders-0"]]


@pytest.mark.parametrize("seed", range(40))
def test_any_run_is_drawn_whole(seed):
    """Rule: every line is one moment, in the order of its process, also where lines contradict each other."""
    events = events_of(random_run(seed))
    view = view_of(Shown(trace=trace_of_events(events, Claims()), verdicts=()))
    found = moments(view)
    assert len(found) == len(events)
    for life, lane in enumerate(view["lanes"]):
        kinds = [words.split()[0] for label, words in found if label == lane["label"]]
        written = events.kind[events.life == life]
        assert kinds == [Kind(kind).name.lower() for kind in written]


def test_show_draws_a_folder_of_events(tmp_path, capsys, monkeypatch):
    """Rule: `fencepost show app/` writes the page, and its exit code is that of the verdict."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "app"
    folder.mkdir()
    for rows in lossy_run():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{rows[0]['process']}.events").write_text(text)
    assert run(["show", "app", "--html", "page.html"]) == ExitCode.FINDINGS
    said = capsys.readouterr().out
    assert "record_never_processed" in said and "page.html" in said
    assert "billing-1" in (tmp_path / "page.html").read_text()
