"""The event checks of a row group: screened by columns; suspicious traces are decoded and checked by the
plain code.

Owns which traces are decoded, and the memory that the kernels get. Must not know rules.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, evolve, field

from fencepost.checkers import conformance, invariants, meantime
from fencepost.checkers.arrow_arrays import Array, arrow, slice_starts
from fencepost.checkers.columns_read import SHOWN_COLUMNS
from fencepost.checkers.events.event_columns import EventColumns, columns_of_events
from fencepost.checkers.events.kernels import conformance as conformance_kernel
from fencepost.checkers.events.kernels import conformance_fields, invariants_fields
from fencepost.checkers.events.kernels import invariants as invariants_kernel
from fencepost.checkers.events.kernels.column import KEYED_AT, NAME, UNCLEAN_AT
from fencepost.checkers.events.kernels.logs import Logs
from fencepost.checkers.events.kernels.state import TraceState
from fencepost.checkers.events.kernels.words import NAME_CODES, OTHER, PARTITION_STATE
from fencepost.checkers.events.keyed import keys_of_records
from fencepost.checkers.events.shown import mark_regresses
from fencepost.checkers.invariants.findings import CHECK
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.tables import Tables, traces_of_tables
from fencepost.traces.trace import Trace

FEW = 10_000
"""The plain code checks a row group with fewer events, because loading the kernels would take longer."""
RECORDS = 1 << 20
"""The most records of all logs of one trace (16 MiB). The plain code checks a trace with more."""
LOGS, ITEMS, PARTITIONS = 4_096, 8_192, 512
"""The most logs, list items and partitions of one trace, likewise."""

_OF_REPLICAS = np.zeros(OTHER + 1, np.bool_)
_OF_REPLICAS[[NAME_CODES[name] for name in sorted(conformance.REPLICA_EVENTS)]] = True
"""For each code of a name: whether such an event is about replicas."""


@define(kw_only=True)
class EventTables:
    """Whole traces of one row group.

    headers: the traces without operations and events. operations: at least SHOWN_COLUMNS, if the invariants
    are checked. decoded: suspicious traces with their events, by trace id.
    """

    tables: Tables
    headers: Sequence[Trace]
    decoded: dict[int, Trace] = field(factory=dict, init=False)
    operations: dict[int, tuple[Operation, ...]] = field(factory=dict, init=False)
    _columns: EventColumns | None = field(default=None, init=False)

    @property
    def columns(self) -> EventColumns:
        """The events as columns, made once for all checks."""
        if self._columns is None:
            self._columns = columns_of_events(self.tables.events, self.headers)
        return self._columns

    @property
    def few(self) -> bool:
        """Whether the table is too small for columns to pay."""
        return self.tables.events.num_rows < FEW

    def suspects(self, suspicious: Array) -> list[Trace]:
        """The marked traces, with their events."""
        headers = [self.headers[index] for index in np.flatnonzero(suspicious).tolist()]
        missing = [header.trace_id for header in headers if header.trace_id not in self.decoded]
        if missing:
            tables, none = self.tables, SCHEMAS["operations"].empty_table()
            traces, events = _of(tables.traces, missing), tables.events
            if len(missing) < len(self.headers):
                events = _of(events, missing)
            some = Tables(traces=traces, operations=none, events=events)
            self.decoded.update((trace.trace_id, trace) for trace in traces_of_tables(some))
        return [evolve(header, events=self.decoded[header.trace_id].events) for header in headers]

    def with_operations(self, traces: list[Trace]) -> list[Trace]:
        """The same traces, with the operations that the invariants read."""
        missing = [trace.trace_id for trace in traces if trace.trace_id not in self.operations]
        if missing:
            found: dict[int, list[Operation]] = {trace_id: [] for trace_id in missing}
            rows = _of(self.tables.operations.select(list(SHOWN_COLUMNS)), missing).to_pylist()
            for row in rows:
                found[row.pop("trace_id")].append(_operation(row))
            self.operations.update((trace_id, tuple(made)) for trace_id, made in found.items())
        return [evolve(trace, operations=self.operations[trace.trace_id]) for trace in traces]


def _of(table: pa.Table, trace_ids: list[int]) -> pa.Table:
    """The rows of these traces."""
    return table.filter(arrow.is_in(table.column("trace_id"), value_set=pa.array(trace_ids, pa.int64())))


def _operation(row: dict[str, Any]) -> Operation:
    row["function"], row["outcome"] = Function(row["function"]), Outcome(row["outcome"])
    row["records"] = tuple(Record(**record) for record in row["records"] or ())
    row["positions"] = tuple(Position(**position) for position in row["positions"] or ())
    return Operation(**row)


def judge_invariants(of: EventTables) -> dict[int, Verdict]:
    """The verdicts of the invariants that are not a plain Ok, by trace id. Raises TraceError for rows that
    form no trace."""
    suspicious = _all(of) if of.few else suspicious_of_invariants(of)
    return _judged(of.with_operations(of.suspects(suspicious)), invariants.judge, CHECK)


def judge_conformance(of: EventTables) -> dict[int, Verdict]:
    """The verdicts of conformance that are not a plain Ok, by trace id. A trace without replica events has a
    verdict that says so. Raises TraceError for rows that form no trace."""
    if of.few:
        return _judged(of.suspects(_all(of)), conformance.judge, conformance.CHECK)
    claims, unmapped = unmapped_traces(of)
    verdicts = {}
    for index in np.flatnonzero(unmapped).tolist():
        header = of.headers[index]
        verdicts[header.trace_id] = conformance.of_unmapped(header, claims=bool(claims[index]))
    suspects = of.suspects(suspicious_of_conformance(of) & ~unmapped)
    return verdicts | _judged(suspects, conformance.judge, conformance.CHECK)


def judge_meantime(of: EventTables) -> dict[int, Verdict]:
    """The verdicts of the meantime checks that are not a plain Ok, by trace id. Only events with names that
    the checks read are decoded; each keeps its position in its trace."""
    words = pa.array([name.value for name in meantime.NAMES], pa.string())
    # also for a dictionary-encoded column
    wanted = arrow.is_in(of.tables.events.column("name"), value_set=words)
    marked = wanted.combine_chunks().to_numpy(zero_copy_only=False)
    events, none = of.tables.events.filter(wanted), SCHEMAS["operations"].empty_table()
    start = of.columns.start
    verdicts = {}
    traces = traces_of_tables(Tables(traces=of.tables.traces, operations=none, events=events))
    by_id = {trace.trace_id: trace.events for trace in traces}
    for index, header in enumerate(of.headers):
        places = np.flatnonzero(marked[start[index] : start[index + 1]]).tolist()
        verdict = meantime.judge_events(header, zip(places, by_id[header.trace_id], strict=True))
        if verdict.decision is not Decision.OK:
            verdicts[header.trace_id] = verdict
    return verdicts


def unmapped_traces(of: EventTables) -> tuple[Array, Array]:
    """Which traces have replica events, and which are not replayed: traces without them, and traces with
    replica events that cannot be mapped."""
    name, start = of.columns.events.of[NAME], of.columns.start
    claims = _has(_OF_REPLICAS[name], start)
    broken = np.array([bool(trace.claims.assumption_broken) for trace in of.headers], np.bool_)
    return claims, ~claims | broken | ~_has(name == PARTITION_STATE, start)


def _all(of: EventTables) -> Array:
    return np.ones(len(of.headers), np.bool_)


def _judged(suspects: list[Trace], judge: Callable[[Trace], Verdict], check: str) -> dict[int, Verdict]:
    """The verdict of the plain code. A trace that it cannot interpret is Assumption broken."""
    verdicts = {}
    for trace in suspects:
        try:
            verdict = judge(trace)
        except FencepostError as error:
            verdict = Verdict(decision=Decision.ASSUMPTION_BROKEN, check=check, reason=str(error))
        if verdict != Verdict(decision=Decision.OK, check=check):
            verdicts[trace.trace_id] = verdict
    return verdicts


def suspicious_of_invariants(of: EventTables) -> Array:
    """Which traces may break an invariant."""
    columns = of.columns
    suspicious: Array = columns.odd.copy()
    for index, trace in enumerate(of.headers):
        suspicious[index] |= bool(trace.claims.assumption_broken)
    state = _state(columns, invariants_fields, reach=0)
    begins, keyed = keys_of_records(of.tables.operations, of.headers)
    columns.events.claims[:, KEYED_AT] = begins
    events = columns.events._replace(keyed=keyed)
    invariants_kernel.screen(state, events, columns.start, columns.capacity, suspicious)
    mark_regresses(of.tables.operations, of.headers, suspicious)
    return suspicious


def suspicious_of_conformance(of: EventTables) -> Array:
    """Which traces may have an event that no action explains."""
    columns = of.columns
    suspicious: Array = columns.odd.copy()
    state = _state(columns, conformance_fields, reach=3)
    asks = np.zeros(len(suspicious), np.bool_)
    conformance_kernel.screen(state, columns.events, columns.start, columns.capacity, suspicious, asks)
    if asks.any():
        again, begins, unclean = ~asks, [0], list[int]()
        for index, trace in enumerate(of.headers):
            if asks[index]:
                found = _unclean(trace, columns.topics)
                again[index] = found is None
                unclean += found or []
            begins.append(len(unclean))
        columns.events.claims[:, UNCLEAN_AT] = begins
        events = columns.events._replace(unclean=np.array(unclean, np.int64))
        conformance_kernel.screen(state, events, columns.start, columns.capacity, again, np.zeros_like(asks))
        suspicious[asks] = again[asks]
    return suspicious


def _unclean(trace: Trace, topics: Sequence[str]) -> list[int] | None:
    """The topics that allow unclean leader election, as numbers; None if the plan cannot be read."""
    try:
        names = conformance.unclean_topics(trace)
    except FencepostError:
        return None
    return [code for code, name in enumerate(topics) if name in names]


def _state(columns: EventColumns, fields: Any, *, reach: int) -> TraceState:
    """Memory for one trace at a time. fields: a screen's initial values; reach: its fields by list item and
    broker."""
    nodes, partitions = max(columns.nodes, 1), max(1, min(columns.keys, PARTITIONS))
    begins = [getattr(fields, f"{name}_NEW") for name in ("RUN", "HOST", "TOPIC", "KEY", "REPLICA", "ITEM")]
    new = np.full((len(begins), max(map(len, begins))), -1, np.int64)
    for row, values in enumerate(begins):
        new[row, : len(values)] = values
    run, host, topic, key, replica, item = map(len, begins)
    return TraceState(
        run=np.empty(run, np.int64),
        host=np.empty((nodes, host), np.int64),
        topic=np.full((max(len(columns.topics), 1), topic), -1, np.int64),
        seen=np.full((max(columns.keys, 1), 2), -1, np.int64),
        key=np.empty((partitions, key), np.int64),
        replica=np.empty((partitions, nodes, replica), np.int64),
        item=np.empty((ITEMS, item), np.int64),
        reach=np.empty((ITEMS, nodes, reach), np.int64),
        new=new,
        logs=Logs(
            record=np.empty((RECORDS, 2), np.int64),
            size=np.zeros((LOGS, 2), np.int64),
            pool=np.zeros(3, np.int64),
        ),
    )


def _has(rows: Array, start: Array) -> Array:
    """Which traces have a marked row."""
    return np.diff(slice_starts(rows.astype(np.int64))[start]) > 0
