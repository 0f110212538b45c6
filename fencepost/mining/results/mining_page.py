"""The page of a mining: totals, anomalies by kind, by fault, bug and profile, and the smallest example of
each, drawn.

Owns which of a summary's figures are where. Must not know Spark, HTML, geometry. Runs on the driver, once,
over the few traces that are examples.
"""

from pathlib import Path

from fencepost.checkers.verdict import Decision
from fencepost.mining.results.summary import Summary
from fencepost.report.record_counts import LogTotals
from fencepost.report.report_page import Page, Table
from fencepost.viewer.examples import anchor_of, examples_of

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
        links=tuple(anchor_of(name) if name in drawn else "" for name in summary.anomalies),
        note="The most telling first (fencepost check --anomalies has their ranks).",
    )


def _bugs(summary: Summary) -> Table:
    rows = [
        (
            f"{bug.number}: {bug.name}",
            _number(bug.traces),
            f"trace {bug.smallest.trace_id} of {bug.smallest.source}",
            bug.shares[0].words() if bug.shares else "nothing that passes the correction for many tests",
        )
        for bug in summary.bugs.bugs
    ]
    most = max(bug.traces for bug in summary.bugs.bugs)
    return Table(
        heading="Bugs",
        note="Groups of bad traces with the same unusual features, and the feature that distinguishes each "
        "group best from healthy traces.",
        columns=("bug", "traces", "smallest", "what they share"),
        rows=tuple(rows),
        share=tuple(bug.traces / most for bug in summary.bugs.bugs),
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


def _records(summary: Summary, records: LogTotals) -> list[Table]:
    """What became of records, by acks, and the lost ones."""
    counts = records.as_dict()
    rows = []
    for acks, acknowledged in counts["acknowledged"].items():
        lost = counts["lost"].get(acks, {"allowed": 0, "not_allowed": 0})
        rows.append((acks, *map(_number, (acknowledged, lost["not_allowed"], lost["allowed"]))))
    note = (
        f"{_number(records.unread)} acknowledged records never read; {_number(records.duplicated)} "
        f"values duplicated;"
        f" {_number(records.unknown_present)} records of unknown outcome present."
    )
    if summary.uncounted:
        note += f" Not counted are the records of {summary.uncounted_named}: giant histories."
    columns = ("acks", "acknowledged", "lost", "lost, allowed")
    tables = [Table(heading="Records", columns=columns, rows=tuple(rows), note=note)]
    if listed := records.not_allowed_ones:
        rows = [
            (
                source,
                str(trace_id),
                f"{one.topic}-{one.partition}",
                _number(one.offset),
                str(one.value),
                one.acks,
            )
            for source, trace_id, one in listed
        ]
        names = ("input", "trace", "partition", "offset", "value", "acks")
        note = (
            f"{_number(len(rows))} of {_number(records.not_allowed.total())} that no claim allows; "
            "the table lost has all."
        )
        tables.append(Table(heading="Lost records", columns=names, rows=tuple(rows), note=note))
    return tables


def page_of(summary: Summary, page: Path | None = None) -> str:
    """The HTML of a summary.

    Parameters: page: where the text will be written, a page of the viewer next to it for each example that is
    drawn; None for no such pages. Returns: the page's text. Raises: FencepostError if one of them cannot be
    written.
    """
    judged, illegal = sum(summary.traces.values()), sum(summary.illegal.values())
    tables = [_inputs(summary), _checks(summary)]
    if summary.bugs.bugs:
        tables.append(_bugs(summary))
    if summary.anomalies:
        tables += [_anomalies(summary), *(_by(summary, dimension) for dimension in HEADINGS)]
    if summary.records is not None:
        tables += _records(summary, summary.records)
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
        examples=examples_of(summary.samples, page),
    ).html()
