"""What a mining came to, as a value, as JSON and as text for a person.

Owns: the totals' arrangement and wording. Must not know: Spark, files, the terminal.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from attrs import Factory, asdict, frozen

from fencepost.checkers.judges import LOG
from fencepost.checkers.verdict import Decision
from fencepost.mining.inputs.splits import Unreadable
from fencepost.mining.results.result_rows import DIMENSIONS, Counts, statistics_rows
from fencepost.mining.triage.bugs import Bugs
from fencepost.mining.triage.since import Since
from fencepost.report.record_counts import LogTotals
from fencepost.report.sample import Sample
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.errors import ExitCode, strongest

MOST_NAMED = 100
"""Quarantined pieces that a summary names; the table has all."""


@frozen(kw_only=True)
class Summary:
    """What a mining came to."""

    # The folder of the results.
    out: str
    checks: tuple[str, ...]
    # Traces, and those with a finding, by input.
    traces: dict[str, int]
    illegal: dict[str, int]
    operations: int
    events: int
    splits: int
    # Traces by check and decision.
    decisions: dict[str, dict[str, int]] = Factory(dict)
    # Findings by name.
    anomalies: dict[str, int] = Factory(dict)
    # Traces by anomaly.
    traces_with: dict[str, int] = Factory(dict)
    # dimension -> value -> anomaly -> traces; anomaly "": all of them.
    statistics: dict[str, dict[str, dict[str, int]]] = Factory(dict)
    # The smallest trace of each anomaly, the anomaly of the lowest rank first.
    samples: tuple[Sample, ...] = ()
    # The first MOST_NAMED pieces of input that could not be read, and how many there were.
    quarantine: tuple[Unreadable, ...] = ()
    # Pieces of input that could not be read.
    quarantined: int = 0
    # Tasks that had not ended at an interruption.
    unfinished: int = 0
    # Histories that were judged by slot ranges.
    giants: int = 0
    # Which histories are too large for their records to be counted: input and trace id.
    uncounted: tuple[str, ...] = ()
    # Traces that were brought together first.
    regrouped: int = 0
    # What became of the records of logs, in all histories but giants; None: the log check did not run.
    records: LogTotals | None = None
    # What the bad traces come to (docs/how-to/triage.md).
    bugs: Bugs = Factory(Bugs)
    # How the bugs compare with those of an earlier mining, where one was named.
    since: Since | None = None

    @property
    def shapes(self) -> str:
        """How the traces were judged, in a few words."""
        small = f"{max(sum(self.traces.values()) - self.giants, 0):,} small ones by row group"
        sentence = (
            f"{_many(self.giants, 'giant history', 'giant histories')} by slot ranges, {small}"
            if self.giants
            else ""
        )
        moved = (
            f"{_many(self.regrouped, 'trace', 'traces')} regrouped first, because their files do not "
            f"keep each within one row group"
        )
        return "; ".join(part for part in (sentence, moved if self.regrouped else "") if part)

    @property
    def uncounted_named(self) -> str:
        """The first MOST_NAMED histories whose records are not counted, and how many more there are."""
        more = len(self.uncounted) - MOST_NAMED
        return ", ".join(self.uncounted[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

    @property
    def exit_codes(self) -> set[ExitCode]:
        """Those that apply: nothing readable, findings, quarantined, undecided, or nothing found."""
        codes = {ExitCode.NOTHING_FOUND}
        if self.unfinished:
            codes.add(ExitCode.INTERRUPTED)
        if not sum(self.traces.values()):
            codes.add(ExitCode.USAGE)
        if sum(self.illegal.values()):
            codes.add(ExitCode.FINDINGS)
        if self.quarantined:
            codes.add(ExitCode.QUARANTINED)
        undecided = (Decision.UNKNOWN.value, Decision.ASSUMPTION_BROKEN.value)
        if any(
            count for found in self.decisions.values() for name, count in found.items() if name in undecided
        ):
            codes.add(ExitCode.UNDECIDED)
        return codes

    @property
    def exit_code(self) -> ExitCode:
        """The strongest of them."""
        return strongest(self.exit_codes)

    def to_json(self) -> str:
        """One JSON object on one line."""
        records = None if self.records is None else self.records.as_dict()
        return msgspec.json.encode({**asdict(self), "records": records}).decode()

    @property
    def record_lines(self) -> list[str]:
        """What became of the records of logs, as lines of text."""
        if self.records is None:
            return []
        lines = list(self.records.lines(f"{self.out}/lost"))
        if self.uncounted:
            many = _many(len(self.uncounted), "giant history", "giant histories")
            lines.append(f"records of {many} are not counted: {self.uncounted_named}")
        return lines

    def plain(self) -> str:
        """The summary for a person, without colours: totals, anomalies, one sample of each with its proof and
        replay command."""
        return "\n".join(_lines(self))


def _many(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Rows under each other, the first column to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()


def _sample_lines(sample: Sample) -> Iterator[str]:
    finding = sample.finding
    where = f"trace {sample.trace_id} of {sample.source}"
    if finding.topic is not None:
        where += f", {finding.topic}-{finding.partition}"
    if finding.offset >= 0:
        where += f", offset {finding.offset}"
    yield f"{finding.anomaly}: {BY_NAME[finding.anomaly].definition}"
    yield f"  where:     {where} (found by {finding.check})"
    yield f"  expected:  {finding.expected}"
    yield f"  seen:      {finding.seen}"
    for line in sample.proof:
        yield f"  >>> {line}"
    if sample.replay:
        yield f"  replay:    {sample.replay}"


def _lines(summary: Summary) -> Iterator[str]:
    judged = sum(summary.traces.values())
    yield (
        f"{judged:,} traces with {summary.operations:,} operations judged by {', '.join(summary.checks)};"
        f" results in {summary.out}"
    )
    if summary.shapes:
        yield summary.shapes
    if judged:
        inputs = [
            (name, f"{count:,}", f"{summary.illegal[name]:,}") for name, count in summary.traces.items()
        ]
        yield ""
        yield from _table([("input", "traces", "with findings"), *inputs])
        decisions = [
            (check, *(f"{found.get(decision.value, 0):,}" for decision in Decision))
            for check, found in summary.decisions.items()
        ]
        yield ""
        yield from _table(
            [("check", *(decision.value.replace("_", " ") for decision in Decision)), *decisions]
        )
    if summary.record_lines:
        yield ""
        yield from summary.record_lines
    if summary.anomalies:
        found = [
            (name, f"{count:,}", f"{summary.traces_with[name]:,}")
            for name, count in summary.anomalies.items()
        ]
        yield ""
        yield from _table([("anomaly", "findings", "traces"), *found])
    for bug in summary.bugs.bugs:
        yield ""
        yield from bug.lines()
    if summary.since is not None:
        yield ""
        yield from summary.since.lines()
    for sample in summary.samples:
        yield ""
        yield from _sample_lines(sample)
    if summary.quarantined:
        yield ""
        yield f"Could not be read, and is in quarantine ({summary.quarantined:,}):"
        for unreadable in summary.quarantine:
            run = f" (trace {unreadable.trace_id})" if unreadable.trace_id >= 0 else ""
            yield f"  {unreadable.place}{run}: {unreadable.reason}"
        if summary.quarantined > len(summary.quarantine):
            yield f"  and {summary.quarantined - len(summary.quarantine):,} more in {summary.out}/quarantine"


def summary_of(
    counts: Counts, *, out: Path, checks: tuple[str, ...], splits: int, unfinished: int = 0
) -> Summary:
    """The summary of all tasks' counts."""
    decisions: dict[str, dict[str, int]] = {check: {} for check in checks}
    for (check, decision), count in sorted(counts.decisions.items()):
        decisions[check][decision] = count
    statistics: dict[str, dict[str, dict[str, int]]] = {dimension: {} for dimension in DIMENSIONS}
    for _, dimension, value, anomaly, count in statistics_rows(counts):
        found = statistics[dimension].setdefault(value, {})
        found[anomaly or ""] = found.get(anomaly or "", 0) + count
    by_rank = sorted(counts.anomalies, key=lambda name: BY_NAME[name].rank)
    quarantine = sorted(counts.quarantined, key=lambda found: (found.source, found.place, found.trace_id))
    return Summary(
        out=str(out),
        checks=checks,
        traces=dict(sorted(counts.traces.items())),
        illegal=dict(sorted(counts.illegal.items())),
        operations=counts.operations,
        events=counts.events,
        splits=splits,
        decisions=decisions,
        anomalies={name: counts.anomalies[name] for name in by_rank},
        traces_with={name: counts.traces_with[name] for name in by_rank},
        statistics=statistics,
        samples=tuple(counts.samples[name] for name in by_rank),
        quarantine=tuple(quarantine[:MOST_NAMED]),
        quarantined=len(quarantine),
        unfinished=unfinished,
        records=counts.records if LOG in checks else None,
    )
