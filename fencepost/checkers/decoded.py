"""Operations of a table as values, for the checks that look at traces one by one.

Owns the decoding of rows and which traces of a table are asked. Must not know any rule. Traces with a name
that is used again are cut as values (model/lives), all others stay columns.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
from attrs import evolve

from fencepost.checkers.arrow_arrays import Arrow, arrow, string_codes, table_column
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.model.lives import ENDING, Lived, with_lives
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.operations import Operation
from fencepost.traces.schema import EVENT_COLUMNS
from fencepost.traces.tables import Tables, events_of_table, operations_of_table, tables_of
from fencepost.traces.trace import Trace


def operations_of(
    table: pa.Table, ids: Collection[int], columns: Sequence[str]
) -> dict[int, tuple[Operation, ...]]:
    """The operations of some traces.

    Args:
        table: rows of the `operations` table.
        ids: of the traces.
        columns: the columns to decode, with `trace_id`; the other fields keep their defaults.

    Returns:
        the operations by trace id, in the order of the rows; a trace without a row has no entry.

    Raises:
        TraceError: if a column is missing, or for an outcome that cannot be.
    """
    wanted = arrow.is_in(table_column(table, "trace_id"), value_set=pa.array(sorted(ids), pa.int64()))
    return operations_of_table(table.select(list(columns)).filter(wanted), columns, where="operations")


def judge_decoded(
    table: pa.Table,
    traces: Sequence[Trace],
    bearing: Arrow,
    columns: Sequence[str],
    judge: Callable[[Trace], Verdict],
) -> dict[int, Verdict]:
    """Check the traces of a table one by one, those with a row that bears on the check.

    Args:
        table: rows of the `operations` table.
        traces: their traces; operations and events may be missing.
        bearing: a mask of the rows that bear on the check.
        columns: the columns that the check reads.
        judge: the check of one trace.

    Returns:
        the verdicts that are not Ok, by trace id.

    Raises:
        TraceError: if a column is missing.
    """
    ids: set[int] = set(table_column(table, "trace_id").filter(bearing).to_pylist())
    operations = operations_of(table, ids, columns) if ids else {}
    verdicts = {}
    for trace in traces:
        if trace.trace_id in ids or trace.claims.assumption_broken:
            verdict = judge(evolve(trace, operations=operations.get(trace.trace_id, ())))
            if verdict.decision is not Decision.OK:
                verdicts[trace.trace_id] = verdict
    return verdicts


def tables_with_lives(
    tables: Tables, headers: Sequence[Trace]
) -> tuple[Tables, list[Trace], dict[int, Lived]]:
    """Give each topic and group a name of its own.

    Args:
        tables: whole traces, perhaps without some columns.
        headers: the traces without operations and events.

    Returns:
        the tables and headers, the same ones if no name was used again; and by trace id those that changed.

    Raises:
        TraceError: for rows that make no trace.
    """
    lives = {one.trace.trace_id: one for one in _lived(tables, headers) if one.changed}
    if not lives:
        return tables, list(headers), {}
    ids = pa.array(sorted(lives), pa.int64())
    cut = tables_of(rows_of(lives[number].trace) for number in sorted(lives))

    def joined(whole: pa.Table, some: pa.Table) -> pa.Table:
        others = whole.filter(arrow.invert(arrow.is_in(table_column(whole, "trace_id"), value_set=ids)))
        names = whole.column_names
        rows = pa.concat_tables([others.select(names), some.select(names).cast(others.schema)])
        order = np.argsort(rows.column("trace_id").to_numpy(), kind="stable")
        return rows.take(order)

    bare = [
        evolve(header, claims=lives[header.trace_id].trace.claims) if header.trace_id in lives else header
        for header in headers
    ]
    lived = Tables(
        traces=tables.traces,
        operations=joined(tables.operations, cut.operations),
        events=joined(tables.events, cut.events),
    )
    return lived, bare, lives


def _lived(tables: Tables, headers: Sequence[Trace]) -> list[Lived]:
    """The traces with an event that may end a name's use."""
    events = tables.events
    if set(events.column_names) < set(EVENT_COLUMNS):
        return []  # no check reads them, and none of operations is asked
    words, codes = string_codes(table_column(events, "name"))
    ending = np.isin(codes, [code for code, word in enumerate(words) if word in ENDING])
    numbers = set(np.unique(table_column(events, "trace_id").to_numpy()[ending]).tolist())
    if not numbers:
        return []
    wanted = pa.array(sorted(numbers), pa.int64())
    of_them = events.filter(arrow.is_in(table_column(events, "trace_id"), value_set=wanted))
    found = events_of_table(of_them, numbers)
    operations = operations_of(tables.operations, numbers, tables.operations.column_names)
    return [
        with_lives(
            evolve(
                header,
                events=found[header.trace_id],
                operations=operations.get(header.trace_id, ()),
            )
        )
        for header in headers
        if header.trace_id in numbers
    ]
