"""The page of a mining: totals, anomalies by kind, by fault, bug and profile, and the smallest example of each, drawn.

Owns which of a summary's figures stand where. Must not know Spark, HTML, geometry. Runs on the driver, once, over the few traces that are examples.
"""

from pathlib import Path

from fencepost.checkers.kafka import measure_trace
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.mining.results.rows import Sample
from fencepost.mining.results.summary import Summary
from fencepost.report.chart import lag_chart, unseen_chart
from fencepost.report.explain import explain
from fencepost.report.page import Example, Page, Table
from fencepost.report.picture import draw, span_of
from fencepost.traces.errors import FencepostError
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace
from fencepost.viewer import Shown, write_page

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


def _anchor(anomaly: str) -> str:
    """Of an anomaly's example."""
    return f"example-{anomaly}"


def _anomalies(summary: Summary) -> Table:
    drawn = {sample.finding.anomaly for sample in summary.samples}
    most = max(summary.traces_with.values())
    return Table(
        heading="Anomalies",
        columns=("anomaly", "findings", "traces"),
        rows=tuple(
            (name, _number(count), _number(summary.traces_with[name]))
            for name, count in summary.anomalies.items()
        ),
        share=tuple(summary.traces_with[name] / most for name in summary.anomalies),
        links=tuple(_anchor(name) if name in drawn else "" for name in summary.anomalies),
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
    shades = [
        (0.0, 0.0, *(counts.get(name, 0) / max(counts.get("", 0), 1) for name in names))
        for _, counts in sorted(found.items())
    ]
    return Table(
        heading=heading,
        note=note,
        shades=tuple(shades),
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
    measured, span = measure_trace(trace), span_of(trace, sample.finding)
    drawn = draw(trace, sample.finding), unseen_chart(measured, *span), lag_chart(measured, *span)
    return tuple(svg for svg in drawn if svg)


def _example(sample: Sample, trace: Trace | None, *, again: bool, watch: str) -> Example:
    """A finding. again: its trace was drawn for an earlier one already; watch: the page of the viewer."""
    finding = sample.finding
    facts: tuple[tuple[str, str], ...]
    anchor = _anchor(finding.anomaly)
    if trace is None:
        facts = (("expected", finding.expected), ("seen", finding.seen), ("replay", sample.replay))
        return Example(heading=finding.anomaly, facts=facts, proof=sample.proof, anchor=anchor)
    told = explain(finding, trace, replay=sample.replay)
    where = f"{sample.trace_id} of {sample.source}, {sample.operations:,} operations"
    facts = (*told.facts, ("trace", f"{where}; drawn above" if again else where))
    return Example(
        heading=told.headline,
        facts=facts,
        proof=told.proof,
        pictures=() if again else _pictures(sample, trace),
        anchor=anchor,
        watch=watch,
    )


def _examples(summary: Summary, folder: Path | None) -> tuple[Example, ...]:
    """One for each anomaly, each trace drawn and written as a page of the viewer once."""
    found: list[Example] = []
    pages: dict[tuple[str, int], str] = {}
    for sample in summary.samples:
        key, trace = (sample.source, sample.trace_id), _trace_of(sample)
        again = key in pages
        if trace is not None and not again:
            pages[key] = _watched(sample, trace, summary, folder, number=len(pages) + 1)
        found.append(_example(sample, trace, again=again, watch=pages.get(key, "")))
    return tuple(found)


def _watched(sample: Sample, trace: Trace, summary: Summary, folder: Path | None, *, number: int) -> str:
    """The name of the viewer's page of an example, written into `folder`; "" where none is wanted."""
    if folder is None:
        return ""
    same = (sample.source, sample.trace_id)
    findings = tuple(one.finding for one in summary.samples if (one.source, one.trace_id) == same)
    verdict = Verdict(decision=Decision.ILLEGAL, check="mining", findings=findings)
    name = f"example-{number}.html"
    write_page(folder / name, [Shown(trace=trace, verdicts=(verdict,), replay=sample.replay)])
    return name


def page_of(summary: Summary, folder: Path | None = None) -> str:
    """The HTML of a summary.

    Parameters: folder: where a page of the viewer goes for each example that is drawn; None for no such pages.
    Returns: the page's text, with links to those in the same folder.
    Raises: FencepostError if one of them cannot be written.
    """
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
        examples=_examples(summary, folder),
    ).html()
