"""Client operations as columns: one array per column, for many traces together, from objects or from an Arrow
table.

Owns the conversion of `Operation` values, or of rows of the `operations` table, into flat NumPy arrays. Must
not know how checks use them. Null becomes -1 in integer columns, with two exceptions: a missing completion
becomes `NEVER`, and a missing `acks` becomes ACKS_ALL.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.arrow_arrays import NEVER as NEVER
from fencepost.checkers.arrow_arrays import NONE as NONE
from fencepost.checkers.arrow_arrays import Array as Array
from fencepost.checkers.arrow_arrays import (
    Arrow,
    arrow,
    enum_codes,
    integer_array,
    list_children,
    object_integers,
    recoded,
    slice_starts,
    string_codes,
    struct_field,
    table_column,
)
from fencepost.checkers.sorting import packed
from fencepost.checkers.statements import Statements, statements_of_operations, statements_of_table
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.trace import Trace

MOST_PARTITION = 1 << 31
"""Partitions are below this, as in Kafka's protocol."""
FUNCTIONS = tuple(Function)
OUTCOMES = tuple(Outcome)
_FUNCTION_CODES = {function: code for code, function in enumerate(FUNCTIONS)}
OTHER = -1
"""The code of a function that no judge of logs knows."""
_OUTCOME_CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}
_TXN = FUNCTIONS.index(Function.TXN)


@frozen(kw_only=True, eq=False)
class RecordColumns:
    """The records of all operations, flat."""

    # Operation i owns the records [start[i], start[i + 1]). One entry more than operations.
    start: Array
    # Index into `topics`.
    topic: Array
    # The partition of the topic.
    partition: Array
    # The offset of the record; -1 if it is not known.
    offset: Array
    # The value id.
    value: Array
    # The leader epoch of the record's batch; -1 if it is not known.
    leader_epoch: Array


@frozen(kw_only=True, eq=False)
class PositionColumns:
    """The positions of all multi-partition polls, flat."""

    # Operation i owns the positions [start[i], start[i + 1]). One entry more than operations.
    start: Array
    # Index into `topics`.
    topic: Array
    # The partition of the topic.
    partition: Array
    # The offset from which the poll read.
    offset: Array
    # The high watermark that the poll was shown; -1 if none.
    end_offset: Array
    # The leader epoch of the response; -1 if it is not known.
    leader_epoch: Array


@frozen(kw_only=True, eq=False)
class OperationColumns:
    """Operations in row order, one array per column."""

    # The traces that the rows belong to.
    traces: tuple[Trace, ...]
    # The names of topics, sorted.
    topics: tuple[str, ...]
    # Index into `traces`.
    trace: Array
    # The id of the operation, unique within its trace.
    op_id: Array
    # The client process.
    process: Array
    # The session of the process.
    session: Array
    # The clock of the time stamps.
    clock_id: Array
    # Index into FUNCTIONS.
    function: Array
    # Index into OUTCOMES.
    outcome: Array
    # Nanoseconds.
    invoke_time: Array
    # Nanoseconds; NEVER if the operation did not complete.
    completion_time: Array
    # Index into `topics`; -1 if the operation names none.
    topic: Array
    # The partition; -1 if the operation names none.
    partition: Array
    # The producer's acks; ACKS_ALL if missing.
    acks: Array
    # The offset: of the first record (append), or the start (poll).
    offset: Array
    # The high watermark that the client was shown; -1 if none.
    end_offset: Array
    # The leader epoch that the client was shown; -1 if none.
    leader_epoch: Array
    # Whether the operation claims real-time consistency.
    strong: Array
    # The records appended or returned.
    records: RecordColumns
    # The positions of multi-partition polls.
    positions: PositionColumns
    # Rarely used columns; None if no check needs them.
    statements: Statements | None = None


_PLAIN = ("op_id", "process", "session", "clock_id", "invoke_time")
_OPTIONAL = ("partition", "acks", "offset", "end_offset", "leader_epoch")


def columns_of_traces(traces: Sequence[Trace]) -> OperationColumns:
    """The operations of `traces`, in order, as columns."""
    operations = [operation for trace in traces for operation in trace.operations]
    records = [record for operation in operations for record in operation.records]
    positions = [position for operation in operations for position in operation.positions]
    named = [[item.topic for item in items] for items in (operations, records, positions)]
    topics = tuple(sorted(name for name in {*named[0], *named[1], *named[2]} if name is not None))
    codes: dict[str | None, int] = {topic: code for code, topic in enumerate(topics)}
    codes[None] = NONE
    topic_of = [_coded(names, codes) for names in named]

    def starts(counts: list[int]) -> Array:
        return slice_starts(np.array(counts, np.int64))

    integers = {name: object_integers(operations, name) for name in (*_PLAIN, *_OPTIONAL)}
    completion = object_integers(operations, "completion_time", null=NEVER)
    function = [operation.function for operation in operations]
    outcome = [operation.outcome for operation in operations]
    return OperationColumns(
        traces=tuple(traces),
        topics=topics,
        trace=np.repeat(np.arange(len(traces)), [len(trace.operations) for trace in traces]),
        function=np.array([_FUNCTION_CODES.get(one, OTHER) for one in function], np.int8),
        outcome=np.array([_OUTCOME_CODES[one] for one in outcome], np.int8),
        completion_time=completion,
        topic=topic_of[0],
        strong=np.array([operation.strong for operation in operations], np.bool_),
        records=RecordColumns(
            start=starts([len(operation.records) for operation in operations]),
            topic=topic_of[1],
            **{
                name: object_integers(records, name)
                for name in ("partition", "offset", "value", "leader_epoch")
            },
        ),
        positions=PositionColumns(
            start=starts([len(operation.positions) for operation in operations]),
            topic=topic_of[2],
            **{
                name: object_integers(positions, name)
                for name in ("partition", "offset", "end_offset", "leader_epoch")
            },
        ),
        statements=statements_of_operations(traces, operations, positions),
        **integers,
    )


def _coded(names: list[str | None], codes: dict[str | None, int]) -> Array:
    """The code of each name. A history is often about one topic."""
    if names and names.count(names[0]) == len(names):
        return np.full(len(names), codes[names[0]], np.int64)
    return np.array([codes[name] for name in names], np.int64)


def incarnations(operations: OperationColumns) -> Array:
    """A code for each row: equal for the rows of one process in one session in one trace, in the order of
    traces."""
    return packed((operations.trace, operations.process, operations.session))


def is_place(topic: Array, partition: Array) -> Array:
    """Which of these name a log: a topic, and a partition that Kafka's protocol can name. A client that
    failed before it chose a partition reports -1. topic: indices, -1 for none."""
    return (topic >= 0) & (partition >= 0) & (partition < MOST_PARTITION)


def columns_of_table(table: pa.Table | pa.RecordBatch, traces: Iterable[Trace] = ()) -> OperationColumns:
    """The rows of an `operations` table (or record batch), in order, as columns.

    Args:
        table: the rows.
        traces: the claims and flags of the runs. Their operations are not used. A run that is in the table
            but not in `traces` gets the defaults of `Trace`.

    Returns:
        the columns.

    Raises:
        TraceError: if a column is missing.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    nested = {name: list_children(table_column(table, name)) for name in ("records", "positions")}
    topic_columns = [
        table_column(table, "topic"),
        *(struct_field(children, "topic") for _, children in nested.values()),
    ]
    topics, coded = _topic_codes(topic_columns)
    headers, trace = _trace_index(integer_array(table_column(table, "trace_id")), tuple(traces))
    function = enum_codes(table_column(table, "function"), FUNCTIONS, "function", other=OTHER)

    def children(name: str, fields: tuple[str, ...]) -> dict[str, Array]:
        return {field: integer_array(struct_field(nested[name][1], field)) for field in fields}

    return OperationColumns(
        traces=headers,
        topics=topics,
        trace=trace,
        function=function,
        outcome=enum_codes(table_column(table, "outcome"), OUTCOMES, "outcome"),
        completion_time=integer_array(table_column(table, "completion_time"), null=NEVER),
        topic=coded[0],
        strong=arrow.fill_null(table_column(table, "strong"), False).to_numpy(zero_copy_only=False),
        records=RecordColumns(
            start=nested["records"][0],
            topic=coded[1],
            **children("records", ("partition", "offset", "value", "leader_epoch")),
        ),
        positions=PositionColumns(
            start=nested["positions"][0],
            topic=coded[2],
            **children("positions", ("partition", "offset", "end_offset", "leader_epoch")),
        ),
        statements=statements_of_table(
            table, headers, nested["positions"][1], transactions=bool((function == _TXN).any())
        ),
        **{name: integer_array(table_column(table, name)) for name in (*_PLAIN, *_OPTIONAL)},
    )


def _topic_codes(columns: list[Arrow]) -> tuple[tuple[str, ...], list[Array]]:
    """The topics that the columns name, sorted, and each column as indices into them."""
    encoded = [string_codes(column) for column in columns]
    used = {names[i] for names, indices in encoded for i in _used(indices, len(names))}
    topics = tuple(sorted(used))
    position = {topic: code for code, topic in enumerate(topics)}
    return topics, [
        recoded(indices, [position.get(name, NONE) for name in names]) for names, indices in encoded
    ]


def _used(indices: Array, names: int) -> list[int]:
    """The `names` that occur as indices, in order."""
    present = np.zeros(names + 1, np.bool_)
    present[indices] = True  # -1 marks the extra last entry, which belongs to no name
    found: list[int] = np.flatnonzero(present[:-1]).tolist()
    return found


def _trace_index(trace_ids: Array, known: tuple[Trace, ...]) -> tuple[tuple[Trace, ...], Array]:
    """The runs, known ones first, and each row's index into them. Rows of one run are usually contiguous."""
    heads = (
        np.flatnonzero(np.diff(trace_ids, prepend=trace_ids[:1] - 1))
        if len(trace_ids)
        else np.empty(0, np.int64)
    )
    index = {trace.trace_id: position for position, trace in enumerate(known)}
    headers = list(known)
    for trace_id in trace_ids[heads].tolist():
        if trace_id not in index:
            index[trace_id] = len(headers)
            headers.append(Trace(trace_id=trace_id, plan="", seed=0, software_version=""))
    of_head = np.array([index[trace_id] for trace_id in trace_ids[heads].tolist()], np.int64)
    return tuple(headers), np.repeat(of_head, np.diff(heads, append=len(trace_ids)))
