"""Operations of a table as values, for the checks that look at traces one by one.

Owns the decoding of rows and which traces of a table are asked. Must not know any rule. Traces with a name
that is used again are cut as values (model/lives), all others stay columns.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
from attrs import evolve

from fencepost.checkers.arrow_arrays import (
    NEVER,
    Array,
    Arrow,
    arrow,
    list_children,
    slice_starts,
    string_codes,
    struct_field,
    table_column,
)
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.model.lives import ENDING, OF_GROUPS, Endings, Extent, Lived, cut_by, ended_in
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Name
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
    tables: Tables, headers: Sequence[Trace], decoded: Callable[[], Sequence[Trace]] | None = None
) -> tuple[pa.Table, list[Trace], dict[int, Lived]]:
    """Give each topic and group a name of its own.

    Args:
        tables: whole traces, perhaps without some columns.
        headers: the traces without operations and events.
        decoded: the headers with all of their events; None: they are needed for nothing else.

    Returns:
        the operations and headers, the same ones if no name was used again; and by trace id those that
        changed, with those of their events that were decoded and those operations that have other names.

    Raises:
        TraceError: for rows that make no trace.
    """
    ended = _ended(tables.events, headers, decoded)
    if not ended:
        return tables.operations, list(headers), {}
    ids = pa.array(sorted(ended), pa.int64())
    among = arrow.is_in(table_column(tables.operations, "trace_id"), value_set=ids)
    of_them = tables.operations.filter(among)
    names = {name for _, endings in ended.values() for name in (*endings.topics, *endings.groups)}
    bearing = pa.array(_naming(of_them, sorted(names)))
    columns = tables.operations.column_names
    operations = operations_of_table(of_them.filter(bearing), columns, where="operations")
    lives = {
        number: cut_by(
            evolve(trace, operations=operations.get(number, ())), endings, _extent(of_them, number)
        )
        for number, (trace, endings) in ended.items()
    }
    cut = tables_of(rows_of(evolve(one.trace, events=())) for one in lives.values()).operations
    others = of_them.filter(arrow.invert(bearing))
    rows = pa.concat_tables([others, cut.select(columns).cast(others.schema)])
    keys = [table_column(rows, name).to_numpy() for name in ("op_id", "invoke_time")]
    rows = rows.take(np.lexsort(keys))
    rows = pa.concat_tables([tables.operations.filter(arrow.invert(among)), rows])
    rows = rows.take(np.argsort(rows.column("trace_id").to_numpy(), kind="stable"))
    bare = [
        evolve(header, claims=lives[header.trace_id].trace.claims) if header.trace_id in lives else header
        for header in headers
    ]
    return rows, bare, lives


def _ended(
    events: pa.Table, headers: Sequence[Trace], decoded: Callable[[], Sequence[Trace]] | None
) -> dict[int, tuple[Trace, Endings]]:
    """The traces in which a name's use ended, with their events, named; and what ended."""
    if set(events.column_names) < set(EVENT_COLUMNS):
        return {}  # no check reads them, and none of operations is asked
    ids = table_column(events, "trace_id").to_numpy()
    words, codes = string_codes(table_column(events, "name"))
    ending = _is_one_of(codes, words, ENDING)
    numbers = set(np.unique(ids[ending]).tolist())
    if not numbers:
        return {}
    if decoded is None:
        _topics, topic_codes = string_codes(table_column(events, "topic"))
        ended = np.unique(topic_codes[_is_one_of(codes, words, {Name.TOPIC_DELETION})])
        told = np.isin(topic_codes, ended[ended >= 0]) | _is_one_of(codes, words, OF_GROUPS)
        some = events.filter(pa.array(told & np.isin(ids, sorted(numbers))))
        found = events_of_table(some, numbers)
        traces = [evolve(header, events=found.get(header.trace_id, ())) for header in headers]
    else:
        traces = [trace for trace in decoded() if trace.trace_id in numbers]
    answers = {trace.trace_id: (trace, ended_in(trace)) for trace in traces}
    return {
        number: (evolve(trace, events=of[1]), of[0])
        for number, (trace, of) in answers.items()
        if of is not None
    }


def _is_one_of(codes: Array, words: Sequence[str], wanted: Collection[str]) -> Array:
    return np.isin(codes, [code for code, word in enumerate(words) if word in wanted])


def _naming(operations: pa.Table, names: Sequence[str]) -> Array:
    """Which operations name one of these topics or groups."""
    found = np.zeros(len(operations), bool)
    for column in {"topic", "group"} & set(operations.column_names):
        words, codes = string_codes(table_column(operations, column))
        found |= _is_one_of(codes, words, names)
    for column in {"records", "positions"} & set(operations.column_names):
        starts, structs = list_children(table_column(operations, column))
        words, codes = string_codes(struct_field(structs, "topic"))
        before = slice_starts(_is_one_of(codes, words, names))
        found |= before[starts[1:]] > before[starts[:-1]]
    return found


def _extent(operations: pa.Table, number: int) -> Extent:
    """What a trace's operations use of its numbers."""
    own = operations.filter(arrow.equal(table_column(operations, "trace_id"), number))
    op_ids, processes, times = (own.column(name).to_numpy() for name in ("op_id", "process", "invoke_time"))
    each, at = np.unique(processes, return_inverse=True)
    began = np.full(len(each), NEVER)
    np.minimum.at(began, at, times)
    return Extent(
        op_id=1 + int(op_ids.max(initial=0)),
        process=1 + int(processes.max(initial=0)),
        began=dict(zip(each.tolist(), began.tolist(), strict=True)),
    )
