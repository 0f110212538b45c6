"""The page of a mining: totals, anomalies by kind, by fault, bug and profile, and the smallest example of each, drawn.

Owns which of a summary's figures stand where. Must not know Spark, HTML, geometry. Runs on the driver, once, over the few traces that are examples.
"""

from pathlib import Path

from fencepost.checkers.kafka import measure_trace
from fencepost.checkers.verdict import Decision
from fencepost.mining.results.rows import Sample
from fencepost.mining.results.summary import Summary
from fencepost.report.chart import lag_chart, unseen_chart
from fencepost.report.explain import explain
from fencepost.report.page import Example, Page, Table
from fencepost.report.picture import draw
from fencepost.traces.errors import FencepostError
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace

LARGEST_DRAWN = 20_000
"""Operations of a trace that is still read and drawn on the page; a larger one is named only."""
HEADINGS = {
    "fault": (
        "Anomalies by fault",
        "Traces in which a fault of this kind struck, and those of them with each anomaly.",
    ),
    "bug": (
        "Anomalies by planted bug",
        "Traces whose plan plants the bug, and those of them with each anomaly.",
    ),
    "profile": ("Anomalies by profile", ""),
}


def _number(count: int) -> str:
    return f"{count:,}"


def _inputs(summary: Summary) -> Table:
    rows = [
        (source, _number(count), _number(summary.illegal.get(source, 0)))
        for source, count in summary.traces.items()
    ]
    return Table(heading="Inputs", columns=("input", "traces", "with findings"), rows=tuple(rows))


def _checks(summary: Summary) -> Table:
    rows = [
        (check, *(_number(found.get(decision.value, 0)) for decision in Decision))
        for check, found in summary.decisions.items()
    ]
    names = (decision.value.replace("_", " ") for decision in Decision)
    return Table(heading="Verdicts by check", columns=("check", *names), rows=tuple(rows))


def _anomalies(summary: Summary) -> Table:
    most = max(summary.traces_with.values())
    return Table(
        heading="Anomalies",
        columns=("anomaly", "findings", "traces"),
        rows=tuple(
            (name, _number(count), _number(summary.traces_with[name]))
            for name, count in summary.anomalies.items()
        ),
        share=tuple(summary.traces_with[name] / most for name in summary.anomalies),
        note="The most telling first (docs/anomalies.md says which wins when several hold).",
    )


def _by(summary: Summary, dimension: str) -> Table:
    heading, note = HEADINGS[dimension]
    found = summary.statistics[dimension]
    names = tuple(name for name in summary.anomalies if any(name in counts for counts in found.values()))
    rows = [
        (value, _number(counts.get("", 0)), *(_number(counts.get(name, 0)) for name in names))
        for value, counts in sorted(found.items())
    ]
    return Table(
        heading=heading,
        note=note,
        columns=(dimension, "traces", *(name.replace("_", " ") for name in names)),
        rows=tuple(rows),
    )


def _trace_of(sample: Sample) -> Trace | None:
    """The sample's trace, if it is not too large to draw and its folder still is as it was."""
    if sample.operations > LARGEST_DRAWN:
        return None
    try:
        return TraceStore.open(Path(sample.source)).read(sample.trace_id)
    except (FencepostError, KeyError):
        return None


def _pictures(sample: Sample, trace: Trace) -> tuple[str, ...]:
    measured = measure_trace(trace)
    times = [operation.invoke_time for operation in trace.operations] or [0]
    ends = [operation.completion_time or operation.invoke_time for operation in trace.operations] or [0]
    span = min(times), max(ends)
    drawn = draw(trace, sample.finding), unseen_chart(measured, *span), lag_chart(measured, *span)
    return tuple(svg for svg in drawn if svg)


def _example(sample: Sample) -> Example:
    trace, finding = _trace_of(sample), sample.finding
    facts: tuple[tuple[str, str], ...]
    if trace is None:
        facts = (("expected", finding.expected), ("seen", finding.seen), ("replay", sample.replay))
        return Example(heading=finding.anomaly, facts=facts, proof=sample.proof)
    told = explain(finding, trace, replay=sample.replay)
    facts = (
        *told.facts,
        ("trace", f"{sample.trace_id} of {sample.source}, {sample.operations:,} operations"),
    )
    return Example(heading=told.headline, facts=facts, proof=told.proof, pictures=_pictures(sample, trace))


def page_of(summary: Summary) -> str:
    """The HTML of a summary."""
    judged, illegal = sum(summary.traces.values()), sum(summary.illegal.values())
    tables = [_inputs(summary), _checks(summary)]
    if summary.anomalies:
        tables += [_anomalies(summary), *(_by(summary, dimension) for dimension in HEADINGS)]
    if summary.quarantined:
        rows = tuple((f"{piece.place}: {piece.reason}",) for piece in summary.quarantine)
        note = f"{summary.quarantined:,} pieces of input could not be read; the table quarantine has all."
        tables.append(Table(heading="Quarantine", columns=("piece",), rows=rows, note=note))
    lead = f"{judged:,} traces with {summary.operations:,} operations judged by {', '.join(summary.checks)}: "
    lead += f"{illegal:,} with findings." if illegal else "no finding."
    lead += f" {summary.shapes.capitalize()}." if summary.shapes else ""
    return Page(
        title="Fencepost: mined traces",
        lead=lead,
        good=not illegal and not summary.quarantined,
        tables=tuple(tables),
        examples=tuple(_example(sample) for sample in summary.samples),
    ).html()
