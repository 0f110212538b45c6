"""What mining answers: rows of findings, verdicts and quarantine, and counts that add up over tasks.

Owns: the schemas of the result tables (docs/reference/mining-tables.md), one task's files, the sums. Must
not know: Spark, judges.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import Factory, define, field

from fencepost.checkers.log.accounts import LogCounts, LostRecord
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.mining.inputs.splits import Unreadable
from fencepost.report.commands import replay_stored
from fencepost.report.record_counts import MOST_LOST, LogReport, LogTotals
from fencepost.report.sample import Sample
from fencepost.traces.anomalies import first_by_rank
from fencepost.traces.decoding import from_json
from fencepost.traces.trace import Trace

Result = Literal[
    "findings", "verdicts", "quarantine", "statistics", "lost", "evidence", "contrast", "spectra"
]
RESULTS: tuple[Result, ...] = (
    *("findings", "verdicts", "quarantine", "statistics", "lost"),
    *("evidence", "contrast", "spectra"),
)
RESULTS_VERSION = 4
DIMENSIONS = ("profile", "bug", "fault")
"""Traces are counted by their source and by these: the profile of the run, its planted bugs, and its kinds of
fault."""


def _schema(result: str, *columns: tuple[str, Any]) -> pa.Schema:
    fields = [pa.field(name.rstrip("?"), kind, nullable=name.endswith("?")) for name, kind in columns]
    metadata = {"fencepost.results_version": str(RESULTS_VERSION), "fencepost.result": result}
    return pa.schema(fields).with_metadata(metadata)


_text, _int, _bool = pa.string(), pa.int64(), pa.bool_()
_ints = pa.list_(pa.field("element", pa.int64(), nullable=False))
_texts = pa.list_(pa.field("element", pa.string(), nullable=False))

SCHEMAS: dict[Result, pa.Schema] = {
    "findings": _schema(
        "findings",
        *(
            ("source", _text),
            ("trace_id", _int),
            ("seed", _int),
            ("digest", _text),
            ("check", _text),
            ("anomaly", _text),
        ),
        *(("topic?", _text), ("partition", _int), ("offset", _int), ("expected", _text), ("seen", _text)),
        *(("operations", _ints), ("events", _ints), ("uncertainty_ns", _int), ("replay", _text)),
    ),
    "verdicts": _schema(
        "verdicts",
        *(("source", _text), ("trace_id", _int), ("check", _text), ("decision", _text), ("anomaly?", _text)),
        *(("findings", _int), ("reason", _text), ("unjudged", _text)),
    ),
    "quarantine": _schema(
        "quarantine", ("source", _text), ("place", _text), ("trace_id", _int), ("reason", _text)
    ),
    "statistics": _schema(
        "statistics",
        *(("source", _text), ("dimension", _text), ("value", _text), ("anomaly?", _text), ("traces", _int)),
    ),
    "lost": _schema(
        "lost",
        *(("source", _text), ("trace_id", _int), ("topic", _text), ("partition", _int), ("offset", _int)),
        *(("value", _int), ("acks", _text), ("allowed", _bool)),
    ),
    "evidence": _schema(
        "evidence",
        *(("source", _text), ("trace_id", _int), ("profile", _text), ("operations", _int)),
        *(("anomaly", _text), ("items", _texts), ("features", _texts), ("replay", _text)),
    ),
    "contrast": _schema("contrast", ("profile", _text), ("feature", _text), ("traces", _int)),
    "spectra": _schema(
        "spectra",
        *(("source", _text), ("trace_id", _int), ("profile", _text), ("state", _text), ("features", _texts)),
    ),
}


def replay_command(source: str, trace: Trace, *, anomaly: str = "") -> str:
    """The command that runs a recorded run again; empty for a foreign trace or one of a file, which nothing
    can run.

    anomaly: the finding to explain, where it is not what names the run.
    """
    stored = trace.plan and not Path(source).is_file()
    return replay_stored(source, trace.trace_id, anomaly=anomaly) if stored else ""


def headline_of(verdicts: Iterable[Verdict]) -> str | None:
    """The anomaly that names a run."""
    return first_by_rank({one.anomaly for verdict in verdicts for one in verdict.findings})


class _Cluster(msgspec.Struct):
    bugs: tuple[str, ...] = ()


class _Plan(msgspec.Struct):
    """What is read of a plan here: a whole one costs a hundred times as much to decode."""

    cluster: _Cluster = msgspec.field(default_factory=_Cluster)


def _says_none(plan: str) -> bool:
    """Whether a plan of ours says in as many characters that it plants none: most do, and a plan is tens of
    kilobytes to decode.

    It does if there is an empty list of bugs in the first of its objects, which is the cluster's, and in none
    within that.
    """
    before, cluster, own = plan[: max(plan.find('"bugs":[]'), 0)].partition('"cluster":{')
    return bool(cluster) and before.count("{") == 1 and own.count("{") == own.count("}")


def bugs_of(plan: str) -> tuple[str, ...]:
    """The bugs that a plan plants; none for a foreign trace, or for a plan that cannot be read here."""
    if _says_none(plan):
        return ()
    try:
        return from_json(plan, _Plan).cluster.bugs if plan else ()
    except msgspec.MsgspecError:
        return ()


@define
class Counts:
    """What was judged, summed."""

    # Traces by source.
    traces: Counter[str] = Factory(Counter)
    operations: int = 0
    events: int = 0
    # (check, decision) -> traces.
    decisions: Counter[tuple[str, str]] = Factory(Counter)
    # Name -> findings.
    anomalies: Counter[str] = Factory(Counter)
    # Name -> traces that have it.
    traces_with: Counter[str] = Factory(Counter)
    # Traces with any finding, by source.
    illegal: Counter[str] = Factory(Counter)
    # (source, dimension, value, anomaly) -> traces; anomaly None: all traces.
    statistics: Counter[tuple[str, str, str, str | None]] = Factory(Counter)
    # The smallest trace by anomaly.
    samples: dict[str, Sample] = Factory(dict)
    quarantined: list[Unreadable] = Factory(list)
    # What became of the records of logs, with the first lost ones.
    records: LogTotals = Factory(LogTotals)

    def add_records(self, source: str, trace_id: int, counts: LogCounts) -> None:
        """Count what became of the records of one trace. source, trace_id: of the trace; counts: its
        records."""
        self.records.add(source, trace_id, LogReport.of(counts, MOST_LOST), MOST_LOST)

    def add_verdicts(
        self,
        source: str,
        trace: Trace,
        operations: int,
        verdicts: Iterable[Verdict],
        faults: Iterable[str] = (),
    ) -> None:
        """Count one trace. faults: the kinds that struck it."""
        verdicts, found = tuple(verdicts), set[str]()
        headline = headline_of(verdicts)
        for verdict in verdicts:
            self.decisions[verdict.check, verdict.decision.value] += 1
            for finding in verdict.findings:
                self.anomalies[finding.anomaly] += 1
                if finding.anomaly not in found:
                    found.add(finding.anomaly)
                    self._offer(
                        Sample(
                            source=source,
                            trace_id=trace.trace_id,
                            operations=operations,
                            finding=finding,
                            replay=replay_command(
                                source, trace, anomaly="" if finding.anomaly == headline else finding.anomaly
                            ),
                        )
                    )
        self.traces[source] += 1
        self.traces_with.update(found)
        self.illegal[source] += bool(found)
        dimensions = (("profile", (trace.profile,)), ("bug", bugs_of(trace.plan)), ("fault", faults))
        for dimension, values in dimensions:
            for value in values or ("none",):
                for anomaly in (None, *found):
                    self.statistics[source, dimension, value, anomaly] += 1

    def _offer(self, sample: Sample) -> None:
        kept = self.samples.get(sample.finding.anomaly)
        if kept is None or sample.size < kept.size:
            self.samples[sample.finding.anomaly] = sample

    def merge(self, other: "Counts") -> None:
        """Add the counts of another task."""
        for name in ("traces", "decisions", "anomalies", "traces_with", "illegal", "statistics"):
            getattr(self, name).update(getattr(other, name))
        self.operations += other.operations
        self.events += other.events
        for sample in other.samples.values():
            self._offer(sample)
        self.quarantined.extend(other.quarantined)
        self.records.merge(other.records, MOST_LOST)


def finding_row(source: str, trace: Trace, finding: Finding, headline: str | None = None) -> tuple[Any, ...]:
    """One row of `findings`. headline: the anomaly by which `replay` names the run; the command of another
    names that one."""
    other = "" if finding.anomaly == headline else finding.anomaly
    return (
        *(source, trace.trace_id, trace.seed, trace.digest, finding.check, finding.anomaly),
        *(finding.topic, finding.partition, finding.offset, finding.expected, finding.seen),
        *(
            list(finding.operations),
            list(finding.events),
            finding.uncertainty_ns,
            replay_command(source, trace, anomaly=other),
        ),
    )


def verdict_row(source: str, trace: Trace, verdict: Verdict) -> tuple[Any, ...]:
    """One row of `verdicts`. source: of the trace."""
    decision: Decision = verdict.decision
    return (
        *(
            source,
            trace.trace_id,
            verdict.check,
            decision.value,
            verdict.anomaly if verdict.findings else None,
        ),
        *(len(verdict.findings), verdict.reason, verdict.unjudged),
    )


def quarantine_row(unreadable: Unreadable) -> tuple[Any, ...]:
    """One row of `quarantine`."""
    return unreadable.source, unreadable.place, unreadable.trace_id, unreadable.reason


def lost_row(source: str, trace_id: int, lost: LostRecord) -> tuple[Any, ...]:
    """One row of `lost`."""
    return (
        *(source, trace_id, lost.topic, lost.partition, lost.offset),
        *(lost.value, lost.acks, lost.allowed),
    )


def statistics_rows(counts: Counts) -> list[tuple[Any, ...]]:
    """The rows of `statistics`, in order."""
    return sorted(
        ((*key, count) for key, count in counts.statistics.items()), key=lambda row: (row[:3], row[3] or "")
    )


@define
class ResultWriter:
    """One task's files, one per result that has rows, under names that no other attempt uses."""

    folder: Path
    name: str
    # Not yet written, by result; files: names written so far, relative to the folder.
    rows: dict[Result, list[tuple[Any, ...]]] = field(factory=lambda: {result: [] for result in RESULTS})
    writers: dict[Result, pq.ParquetWriter] = field(factory=dict)

    def file_of(self, result: Result) -> str:
        """The name of this task's file of a result, relative to the folder."""
        return f"{result}/{self.name}.parquet"

    def add(self, source: str, trace: Trace, verdicts: Iterable[Verdict]) -> None:
        """The rows of one trace's verdicts, and of their findings."""
        verdicts = tuple(verdicts)
        headline = headline_of(verdicts)
        for verdict in verdicts:
            self.rows["verdicts"].append(verdict_row(source, trace, verdict))
            for finding in verdict.findings:
                self.rows["findings"].append(finding_row(source, trace, finding, headline))

    def flush(self, *, unless_below: int = 0) -> None:
        """Write the rows so far as one row group of each result. unless_below: fewer rows wait."""
        for result, rows in self.rows.items():
            if rows and len(rows) >= unless_below:
                schema = SCHEMAS[result]
                columns = [
                    pa.array(values, type=column.type)
                    for values, column in zip(zip(*rows, strict=True), schema, strict=True)
                ]
                if result not in self.writers:
                    path = self.folder / self.file_of(result)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    self.writers[result] = pq.ParquetWriter(path, schema, compression="zstd")
                self.writers[result].write_table(pa.Table.from_arrays(columns, schema=schema))
                rows.clear()

    def files(self) -> list[str]:
        """The files that were written."""
        return [self.file_of(result) for result in self.writers]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()
        for writer in self.writers.values():
            writer.close()
