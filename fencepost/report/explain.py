"""A finding explained: what was expected, what was seen, the operations and events that prove it, how to
replay it.

Owns the order of the parts of a finding. Must not know how it was found, or where the trace is stored.
"""

from attrs import frozen
from rich.text import Text

from fencepost.checkers.durations import duration
from fencepost.checkers.verdict import Finding
from fencepost.record.stuck import reasons, state_lines
from fencepost.report.event_words import (
    answer_in_words,
    event_in_words,
    partition_name,
    printable,
    request_in_words,
    seconds,
)
from fencepost.report.timeline import MOST_LINES, Line, as_plain, as_text, timeline
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.diagnosis import diagnosis_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

LONGEST_LINE = 300
"""Characters of a line of a diagnosis; names in a trace may come from elsewhere."""
DIAGNOSIS = "What stood when the wait was given up"


@frozen(kw_only=True)
class Explanation:
    """A finding in words."""

    headline: str
    facts: tuple[tuple[str, str], ...]
    # One line per convicting operation or event.
    proof: tuple[str, ...]
    # The timeline with those marked.
    lines: tuple[Line, ...]
    # Of a failure of progress: what stood in the end, and what of it contradicts what.
    state: tuple[str, ...] = ()

    def plain(self) -> str:
        """Without colours."""
        facts = [f"  {name + ':':<10} {text}" for name, text in self.facts]
        proof = [f"  >>> {line}" for line in self.proof]
        state = ["", DIAGNOSIS, *(f"  {line}" for line in self.state)] if self.state else []
        timeline = ["", "Timeline", as_plain(self.lines)]
        return "\n".join([self.headline, *facts, "", "Proof", *proof, *state, *timeline])

    def text(self) -> Text:
        """The text with colours for a terminal."""
        parts = [Text(self.headline, style="bold red")]
        parts += [
            Text(f"  {name + ':':<10} ", style="bold").append(text, style="not bold")
            for name, text in self.facts
        ]
        parts += [Text(), Text("Proof", style="bold")]
        parts += [Text(f"  >>> {line}", style="red") for line in self.proof]
        if self.state:
            parts += [Text(), Text(DIAGNOSIS, style="bold"), *(Text(f"  {line}") for line in self.state)]
        parts += [Text(), Text("Timeline", style="bold"), as_text(self.lines)]
        return Text("\n").join(parts)


def operation_line(operation: Operation) -> str:
    """One operation: who, when, what was asked and what was answered."""
    start = seconds(operation.invoke_time)
    end = seconds(operation.completion_time) if operation.completion_time is not None else "never"
    return (
        f"op {operation.op_id}, client {operation.process}, [{start} .. {end}]:"
        f" {request_in_words(operation)} -> {answer_in_words(operation)}"
    )


def event_line(event: Event) -> str:
    """One event: when, who, where, what."""
    who = f"broker {event.node}" if event.node >= 0 else "the run"
    where = f" {partition_name(event.topic, event.partition)}" if event.topic is not None else ""
    return f"{seconds(event.time)}, {who}{where}: {event_in_words(event)}"


def _proof(finding: Finding, trace: Trace) -> tuple[str, ...]:
    """The convicting operations, then the convicting events. One that the trace does not hold is said to be
    missing."""
    by_id = {operation.op_id: operation for operation in trace.operations}
    lines = []
    for op_id in finding.operations:
        lines.append(operation_line(by_id[op_id]) if op_id in by_id else f"op {op_id}: not in the trace")
    for position in finding.events:
        if not 0 <= position < len(trace.events):
            lines.append(f"event {position}: not in the trace")
            continue
        lines.append(f"event {position} at {event_line(trace.events[position])}")
    return tuple(lines)


def _state(finding: Finding, trace: Trace) -> tuple[str, ...]:
    """The diagnosis that a convicting event carries: the state, then what is wrong with it. Nothing of any
    other finding."""
    for position in finding.events:
        if 0 <= position < len(trace.events) and trace.events[position].name is Name.LIVENESS_FAILED:
            diagnosis = diagnosis_of(trace.events[position].detail)
            if diagnosis is not None:
                lines = (*state_lines(diagnosis), *(f"! {reason}" for reason in reasons(diagnosis)))
                return tuple(printable(line, LONGEST_LINE) for line in lines)
    return ()


def explain(finding: Finding, trace: Trace, *, replay: str = "", most_lines: int = MOST_LINES) -> Explanation:
    """Explain a finding of a trace. replay: the command that shows it again ("" if there is none, as for a
    foreign trace); most_lines: about how long the timeline may be."""
    anomaly = BY_NAME[finding.anomaly]
    where = partition_name(finding.topic, finding.partition) if finding.topic is not None else ""
    if where and finding.offset >= 0:
        where += f" at offset {finding.offset}"
    facts = [
        ("means", f"{anomaly.definition} (breaks {anomaly.breaks})"),
        ("expected", printable(finding.expected, 300)),
        ("seen", printable(finding.seen, 300)),
    ]
    if where:
        facts.append(("where", where))
    if finding.uncertainty_ns >= 0:
        facts.append(("severity", f"clocks that err by {duration(finding.uncertainty_ns)} would clear it"))
    if replay:
        facts.append(("replay", replay))
    partitions = [(finding.topic, finding.partition)] if finding.topic is not None else []
    return Explanation(
        headline=f"{finding.anomaly} in trace {trace.trace_id}, found by {printable(finding.check, 40)}",
        facts=tuple(facts),
        proof=_proof(finding, trace),
        state=_state(finding, trace),
        lines=tuple(
            timeline(
                trace,
                operations=finding.operations,
                events=finding.events,
                partitions=partitions,
                most_lines=most_lines,
            )
        ),
    )
