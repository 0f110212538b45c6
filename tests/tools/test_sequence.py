"""tools/sequence: the diagrams of docs/explanation/architecture.md are drawn from recorded runs."""

import pytest
from attrs import evolve

from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.trace import Trace
from tools.page import drawn
from tools.sequence import PAGE, PLAN, WINDOWS, diagram


@pytest.fixture(scope="module")
def trace() -> Trace:
    """The run that is drawn."""
    return run(PLAN)


def test_the_page_is_what_the_runs_say(trace: Trace) -> None:
    """Rule: the diagrams are drawn, never edited: `python -m tools.sequence` writes them anew."""
    assert PAGE.read_text(encoding="utf-8").count("```mermaid") == len(WINDOWS) == 2
    for name, window in WINDOWS.items():
        assert drawn(PAGE, name).read() == diagram(trace, window(trace))


def test_a_diagram_follows_its_trace(trace: Trace) -> None:
    """Rule: an event that is not in the trace is not in the diagram, and one that is in the window is."""
    window = WINDOWS["produce"](trace)
    silent = evolve(
        trace, events=tuple(event for event in trace.events if event.name is not Name.HIGH_WATERMARK)
    )
    assert "high watermark 1" in diagram(trace, window) and "high watermark" not in diagram(silent, window)


def test_arrows_and_notes_name_parties_that_are_declared(trace: Trace) -> None:
    """Rule: Mermaid draws every line: each party of an arrow or a note is a participant."""
    for window in WINDOWS.values():
        lines = diagram(trace, window(trace)).splitlines()[2:-1]
        declared = {line.split()[1] for line in lines if line.strip().startswith("participant")}
        for line in lines[len(declared) :]:
            head = line.strip().split(":")[0].removeprefix("Note over ")
            assert set(head.replace("-->>", " ").replace("->>", " ").split()) <= declared, line
