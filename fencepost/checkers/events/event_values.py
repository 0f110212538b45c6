"""A row group before the event checks: its events as values, made once for all checks, and of its operations
only what a rule has to see.

Owns which operations are decoded. Must not know rules.

The invariants read operations for three rules. HW-MONO asks which ends clients were shown; these are decoded
column by column (shown.py). Compaction asks for the keys of records, where the claims say that a topic is
compacted. HW-READ asks for reads with a record at or above a bound of their answer (beyond.py). All other
traces are judged without their operations.
"""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from attrs import define, evolve, field

from fencepost.checkers import conformance, invariants, liveness
from fencepost.checkers.application import application_judge, recorded
from fencepost.checkers.arrow_arrays import arrow, table_column
from fencepost.checkers.columns_read import LIVENESS_COLUMNS, SHOWN_COLUMNS
from fencepost.checkers.decoded import operations_of
from fencepost.checkers.events.beyond import traces_beyond
from fencepost.checkers.events.shown import shown_ends
from fencepost.checkers.invariants.findings import CHECK
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.model.lives import Lived
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Name
from fencepost.traces.tables import Tables, events_of_table
from fencepost.traces.trace import Trace


@define(kw_only=True)
class EventTables:
    """Whole traces of one row group."""

    tables: Tables
    # The traces without operations and events. operations: at least SHOWN_COLUMNS, where the invariants are
    # asked.
    headers: Sequence[Trace]
    _traces: list[Trace] | None = field(default=None, alias="traces")

    @property
    def traces(self) -> list[Trace]:
        """The headers with their events, decoded once. Raises TraceError for rows that make no trace."""
        if self._traces is None:
            ids = {header.trace_id for header in self.headers}
            events = events_of_table(self.tables.events, ids, where="events")
            self._traces = [evolve(header, events=events.get(header.trace_id, ())) for header in self.headers]
        return self._traces

    def named(
        self, operations: pa.Table, headers: Sequence[Trace], lives: Mapping[int, Lived]
    ) -> "EventTables":
        """The same traces with the names that `tables_with_lives` gives. lives: with all of their events."""
        if not lives:
            return self
        traces = [
            evolve(header, events=lives[trace.trace_id].trace.events) if trace.trace_id in lives else trace
            for header, trace in zip(headers, self.traces, strict=True)
        ]
        return evolve(self, tables=evolve(self.tables, operations=operations), headers=headers, traces=traces)

    def with_operations(
        self, traces: Sequence[Trace], columns: tuple[str, ...] = SHOWN_COLUMNS
    ) -> list[Trace]:
        """The same traces with what a check reads of their operations."""
        ids = [trace.trace_id for trace in traces]
        found = operations_of(self.tables.operations, ids, columns) if ids else {}
        return [evolve(trace, operations=found.get(trace.trace_id, ())) for trace in traces]


def judge_invariants(of: EventTables) -> dict[int, Verdict]:
    """The verdicts that are not a plain Ok, by trace id. Raises TraceError for rows that make no trace."""
    shown = shown_ends(of.tables.operations, {header.trace_id for header in of.headers})
    beyond = traces_beyond(of.tables.operations)

    def asked(trace: Trace) -> bool:
        return bool(trace.claims.compacted) or trace.trace_id in beyond

    whole = iter(of.with_operations([trace for trace in of.traces if asked(trace)]))
    traces = [next(whole) if asked(trace) else trace for trace in of.traces]
    return _judged(traces, lambda trace: invariants.judge(trace, shown.get(trace.trace_id, ())), CHECK)


def judge_conformance(of: EventTables) -> dict[int, Verdict]:
    """The verdicts that are not a plain Ok, by trace id: one without replica events says that it has none.
    Raises TraceError likewise."""
    return _judged(of.traces, conformance.judge, conformance.CHECK)


def judge_liveness(of: EventTables) -> dict[int, Verdict]:
    """The verdicts that are not a plain Ok, by trace id. Raises TraceError likewise."""
    traces = of.with_operations(of.traces, LIVENESS_COLUMNS)
    return _judged(traces, liveness.judge, liveness.CHECK)


def judge_application(of: EventTables) -> dict[int, Verdict]:
    """The verdicts that are not a plain Ok, by trace id. Raises TraceError likewise."""
    names = table_column(of.tables.events, "name").cast(pa.string())
    if not arrow.any(arrow.equal(names, Name.APPLICATION.value)).as_py():
        return {}
    return _judged(of.traces, recorded.judge, application_judge.CHECK)


def _judged(traces: Sequence[Trace], judge: Callable[[Trace], Verdict], check: str) -> dict[int, Verdict]:
    """What the rules say; a trace that they cannot make sense of is Assumption broken."""
    verdicts, ok = {}, Verdict(decision=Decision.OK, check=check)
    for trace in traces:
        try:
            verdict = judge(trace)
        except FencepostError as error:
            verdict = Verdict(decision=Decision.ASSUMPTION_BROKEN, check=check, reason=str(error))
        if verdict != ok:
            verdicts[trace.trace_id] = verdict
    return verdicts
