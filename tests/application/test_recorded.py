"""A run of an application as a trace: the same verdict, through a folder of traces and a row group."""

import json
from pathlib import Path

import pytest
from attrs import evolve

from fencepost.checkers.application.application_judge import Claims, Ordered, Promise, judge_events
from fencepost.checkers.application.recorded import events_of_trace, judge, trace_of_events
from fencepost.checkers.judges import CHECKS, event_tables
from fencepost.checkers.verdict import Decision
from fencepost.cli import run
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.errors import ExitCode, TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace
from tests.application.histories import random_run
from tests.application.test_twin import events_of

PROMISES, ORDERS = tuple(Promise), tuple(Ordered)


def written(folder: Path, seed: int) -> None:
    """A run, as files of its processes."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(random_run(seed)):
        (folder / f"{number}.events").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("part", range(2))
def test_a_trace_has_the_verdict_of_the_run(part: int) -> None:
    for seed in range(part * 500, part * 500 + 60):
        events = events_of(random_run(seed))
        claims = Claims(promise=PROMISES[seed % 3], ordered=ORDERS[seed // 3 % 3])
        trace = trace_of_events(events, claims)
        again, kept = events_of_trace(trace)
        assert kept == claims
        verdict = judge_events(events, claims).verdict
        assert judge_events(again, kept).verdict == verdict
        assert [each.seen for each in judge(trace).findings] == [each.seen for each in verdict.findings]


def test_a_finding_names_the_events_of_the_trace_that_show_it() -> None:
    """Rule: a page opens at the lines that convict; what was in the trace before them does not move them."""
    events = events_of(random_run(3))
    trace = trace_of_events(events, Claims())
    strange = tuple(Event(time=0, name=Name.PHASE, node=-1, cause="steady") for _ in range(4))
    mixed = evolve(trace, events=(*strange, *trace.events))
    shown = 0
    for finding, moved in zip(judge(trace).findings, judge(mixed).findings, strict=True):
        assert moved.events == tuple(position + 4 for position in finding.events)
        for position in finding.events:
            shown += 1
            one = trace.events[position]
            line = json.loads(one.detail)["line"]
            assert f":{line}" in finding.seen
    assert shown


def test_a_row_group_is_judged_as_its_traces() -> None:
    traces = [trace_of_events(events_of(random_run(seed)), Claims(), seed) for seed in range(20)]
    traces.append(Trace(trace_id=99, plan="", seed=0, software_version=""))
    headers = [Trace(trace_id=trace.trace_id, plan="", seed=0, software_version="") for trace in traces]
    of_events = CHECKS["application"].judge_events
    assert of_events is not None
    found = of_events(event_tables(tables_of(map(rows_of, traces)), headers))
    expected = {trace.trace_id: judge(trace) for trace in traces}
    ok = Decision.OK
    assert {key: value.findings for key, value in found.items() if value.decision is not ok} == {
        key: value.findings for key, value in expected.items() if value.decision is not ok
    }
    assert 99 not in found


def test_a_folder_of_runs_becomes_a_folder_of_traces(tmp_path, capsys) -> None:
    for seed in range(6):
        written(tmp_path / "runs" / f"{seed}", seed)
    out = tmp_path / "out"
    assert run(["mine", "convert", str(tmp_path / "runs"), "--out", str(out)]) == ExitCode.NOTHING_FOUND
    capsys.readouterr()
    run(["check", str(out), "--json", "--explain", "0"])
    said = json.loads(capsys.readouterr().out)
    illegal = sum(
        judge_events(events_of(random_run(seed))).verdict.decision is Decision.ILLEGAL for seed in range(6)
    )
    assert said["traces"] == 6
    assert said["decisions"].get("illegal", 0) == illegal > 0


@pytest.mark.parametrize("detail", ["", "{", '{"life":3,"line":1}', '{"line":1}', '{"life":"x","line":1}'])
def test_a_detail_that_is_none_is_refused(detail: str) -> None:
    event = Event(time=0, name=Name.APPLICATION, cause="processed", topic="t", partition=0, detail=detail)
    with pytest.raises(TraceError):
        events_of_trace(Trace(trace_id=0, plan="", seed=0, software_version="", events=(event,)))
