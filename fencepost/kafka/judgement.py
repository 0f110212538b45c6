"""What is said of a run of an embedded cluster: its verdict, the report of a failure, and what a pass has
exercised.

Owns the words. Must not know how a trace was recorded, or who asked.

The judges, which others import on first use, are imported here at once: this module is imported before a run
ends. When it ends, clients lose their connections and log tracebacks in threads of their own, and CPython
3.11 cannot format one while another thread parses a module for pytest (gh-106905: "AST constructor recursion
depth mismatch").
"""

from collections import Counter
from pathlib import Path
from typing import NoReturn

import fencepost.checkers.conformance
import fencepost.checkers.groups
import fencepost.checkers.invariants
import fencepost.checkers.kafka
import fencepost.checkers.log  # noqa: F401 - all five: before a run ends, see the module's text
from fencepost.campaign.failure import MOST_LINES, REPORT, TRACE, RunFailedError
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.linearizability.overlap import overlapping_pairs
from fencepost.checkers.verdict import Decision, Verdict, combine
from fencepost.kafka.recording.client_record import FIRST_PROCESS
from fencepost.proxy.faults import VERBS
from fencepost.report.commands import check_traces
from fencepost.report.explain import explain
from fencepost.report.spoken import Spoken
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.events import Name
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace
from fencepost.traces.whole_file import write_whole
from fencepost.viewer import Shown, page_next_to

PREPARING = "PreparingRebalance"
"""A group's phase, as the record has it, with which a rebalance begins."""
STRUCK = {kind.replace(" ", "_"): verb.struck for kind, verb in VERBS.items()}
"""Faults of requests, by the cause of their events, in words: one and many."""


def verdict_of(trace: Trace, checks: tuple[str, ...] | None = None) -> Verdict:
    """One verdict of these checks, or of all."""
    return combine(judge(trace, DEFAULT_CHECKS if checks is None else checks))


def assert_ok(trace: Trace, folder: Path | None) -> str:
    """Judge a run; answers what it exercised. Raises RunFailedError unless the verdict is Ok; trace,
    page and report are kept in the folder then."""
    verdict = verdict_of(trace)
    if verdict.decision is not Decision.OK:
        again = "" if folder is None else check_traces(folder / TRACE)
        failed(trace, explanation(trace, verdict, again), verdict, folder)
    return exercised(trace)


def failed(trace: Trace, text: str, verdict: Verdict, folder: Path | None) -> NoReturn:
    """Raises RunFailedError with this text, in which clients and records have their own names, and what was
    exercised; trace, page and report are kept in the folder."""
    kept = ""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_traces(folder / TRACE, [trace])
        kept = f"kept in {folder}\n{page_next_to(folder / TRACE, Shown(trace=trace, verdicts=(verdict,)))}"
    text = "\n".join(filter(None, (Spoken(trace)(text), exercised(trace), kept)))
    if folder is not None:
        write_whole(folder / REPORT, text + "\n")
    raise RunFailedError(text, verdict)


def explanation(trace: Trace, verdict: Verdict, again: str) -> str:
    """The first finding, explained; or why there is none.

    Args:
        trace: the run.
        verdict: of the run.
        again: the command that judges it again.
    """
    if not verdict.findings:
        return f"{verdict.decision.value}: {verdict.reason}"
    finding = min(verdict.findings, key=lambda one: BY_NAME[one.anomaly].rank)
    return explain(finding, trace, replay=again, most_lines=MOST_LINES).plain()


def faults_met(trace: Trace) -> tuple[Counter[str], int]:
    """How often each kind of fault began, and how many operations of clients overlapped one."""
    began: Counter[str] = Counter()
    under_way: dict[str, int] = {}
    spans: list[tuple[int, int | None]] = []
    for event in trace.events:
        if event.name is Name.FAULT_BEGAN:
            began[event.cause] += 1
            under_way[f"{event.cause} {event.node}"] = len(spans)
            spans.append((event.time, None))
        elif event.name is Name.FAULT_ENDED:
            place = under_way.pop(f"{event.cause} {event.node}", None)
            if place is not None:
                spans[place] = (spans[place][0], event.time)
    met = sum(any(_overlaps(row, *span) for span in spans) for row in of_clients(trace))
    return began, met


def met_requests(trace: Trace) -> int:
    """How many operations of clients overlapped a fault, and how many requests a fault of requests hit."""
    began, met = faults_met(trace)
    return met + sum(began[kind] for kind in STRUCK)


def exercised(trace: Trace) -> str:
    """What a run has exercised, e.g. "37 appends (35 acknowledged) and 12 reads by clients, 2 rebalances; 1
    crash, 1 lost answer; 4 of the operations overlapped a fault; 214 overlapping pairs"."""
    rows = of_clients(trace)
    appends = [row for row in rows if row.function == "append"]
    acknowledged = sum(row.outcome is Outcome.OK for row in appends)
    began, met = faults_met(trace)
    faults = ", ".join(_counted(count, kind) for kind, count in sorted(began.items())) or "no fault"
    reads = len(rows) - len(appends)
    done = f"{len(appends)} appends ({acknowledged} acknowledged) and {reads} reads by clients"
    rebalances = sum(event.name is Name.GROUP_PHASE and event.cause == PREPARING for event in trace.events)
    if rebalances:
        done += f", {rebalances} rebalance{'' if rebalances == 1 else 's'}"
    pairs = overlapping_pairs(rows)
    return f"{done}; {faults}; {met} of the operations overlapped a fault; {pairs} overlapping pairs"


def _counted(count: int, kind: str) -> str:
    one, many = STRUCK.get(kind, (kind, kind))
    return f"{count} {one if count == 1 else many}"


def of_run(trace: Trace) -> list[Operation]:
    """What the run did itself, in its last phases."""
    return [row for row in trace.operations if row.process < FIRST_PROCESS]


def of_clients(trace: Trace) -> list[Operation]:
    """What clients from outside did."""
    return [row for row in trace.operations if row.process >= FIRST_PROCESS]


def _overlaps(row: Operation, begin: int, end: int | None) -> bool:
    over = row.completion_time
    return (over is None or over >= begin) and (end is None or row.invoke_time <= end)
