"""Artefacts of a test that failed by its own assertion or exception: the trace, its timeline and its
page.

Owns which files. Must not know pytest, or the judges.
"""

from pathlib import Path

from fencepost.history.judgement import FILE
from fencepost.history.recorder import History
from fencepost.report.processes import process_lanes
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.whole_file import write_whole
from fencepost.viewer import Shown, page_next_to

TIMELINE = "timeline.txt"
HISTORIES, PAGES = "history*.jsonl", "history*.html"
"""What a judgement has saved, and its page if it failed."""


def keep_history(history: History, folder: Path) -> str:
    """Save the history into `folder`. Returns the folder in words. After a failed judgement the trace is
    there already."""
    trace = history.trace()
    if not trace.operations:
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    words = f"{folder}: the history of {len(trace.operations)} operations, and {TIMELINE}"
    if not any(folder.glob(HISTORIES)):
        write_traces(folder / FILE, [trace])
    if not any(folder.glob(PAGES)):
        words += f"\n{page_next_to(folder / FILE, Shown(trace=trace))}"
    write_whole(folder / TIMELINE, process_lanes(trace) + "\n")
    return words
