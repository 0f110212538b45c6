"""What the application saw of a run is kept in three files, and drawn in one picture with the brokers."""

import json

from fencepost.application.event_columns import read_events
from fencepost.checkers.application.application_judge import judge_events
from fencepost.checkers.application.recorded import written
from fencepost.torture.saw import _time_of
from fencepost.torture.scenario import Scenario
from fencepost.torture.workers import Job, Worker
from fencepost.traces.events import Name
from fencepost.traces.jsonlines import read_traces
from tests.torture.test_planted import CONSUMER, PRODUCER, tampered
from tests.torture.torture_lab import library_here


def test_a_run_with_a_finding_keeps_commands_events_and_times(tmp_path, monkeypatch):
    """Rule: every command, its answer and both times are there; the events are legal lines; each lies in the
    trace where the brokers' events of its time lie."""
    built = tampered(library_here(tmp_path, monkeypatch), "wrong_offset")
    worker = Worker(Job(library="ours", out=str(tmp_path)), built)
    scenario = Scenario(seed=7, producer=PRODUCER, consumer=CONSUMER, members=1, bursts=3, burst=12)
    path = tmp_path / "7.jsonl"
    try:
        assert worker.run(scenario, path)["findings"]
    finally:
        worker.driver.kill()
    commands = [json.loads(line) for line in path.with_suffix(".commands.jsonl").read_text().splitlines()]
    sent = [one for one in commands if one.get("command") == "append"]
    assert len(sent) == 39 and all(one["sent_ns"] < one["answered_ns"] for one in sent)
    events = read_events([path.with_suffix(".events")])
    assert not events.left_out_in_all and not events.torn
    found = {one.anomaly for one in judge_events(events).verdict.findings}
    assert found <= {"offset_acknowledged_twice"}
    (trace,) = read_traces(path)
    lives, lines = written(trace)
    assert {life.process for life in lives} == {"p7-0-0", "c7-0"} and len(lines) == len(events)
    first = next(e.time for e in trace.events if e.name is Name.APPLICATION and e.cause == "acknowledged")
    appended = min(row.invoke_time for row in trace.operations if row.function == "append")
    assert appended <= first <= max(event.time for event in trace.events)


def test_the_clock_of_the_trace_stands_while_a_machine_is_busy():
    """Rule: between two known moments no time is later than the second one."""
    clock = [(100, 0), (200, 50), (300, 150)]
    assert [_time_of(at, clock) for at in (50, 100, 140, 190, 200, 350)] == [0, 0, 40, 50, 50, 200]
    assert _time_of(5, []) == 0
