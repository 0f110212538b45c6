"""Client operations as columns: one array per column, many traces stacked, built from objects or from an Arrow table.

Owns the step from `Operation` values, or from rows of the `operations` table, to flat NumPy arrays. Must not know what any judge
does with them. Null becomes -1 in integer columns, except that a missing completion becomes `NEVER` and a missing `acks` ACKS_ALL.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
from attrs import frozen

from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Trace

Array = npt.NDArray[Any]

arrow: Any = pyarrow.compute

Arrow = Any
"""An Arrow array; the stubs are too strict for its compute functions."""

NEVER = int(np.iinfo(np.int64).max)
"""The completion time of an operation that never completed."""

NONE = -1
"""Not said."""

FUNCTIONS = tuple(Function)
OUTCOMES = tuple(Outcome)


@frozen(kw_only=True, eq=False)
class RecordColumns:
    """The records of all operations, flat: operation i owns the slice [start[i], start[i + 1])."""

    start: Array
    topic: Array
    partition: Array
    offset: Array
    value: Array
    leader_epoch: Array


@frozen(kw_only=True, eq=False)
class PositionColumns:
    """The positions of all multi-partition polls, flat: operation i owns the slice [start[i], start[i + 1])."""

    start: Array
    topic: Array
    partition: Array
    offset: Array
    end_offset: Array
    leader_epoch: Array


@frozen(kw_only=True, eq=False)
class OperationColumns:
    """Operations in row order. trace: index into `traces`; function and outcome: index into FUNCTIONS and OUTCOMES;
    topic: index into `topics` (sorted by name), -1 where there is none."""

    traces: tuple[Trace, ...]
    topics: tuple[str, ...]
    trace: Array
    op_id: Array
    process: Array
    session: Array
    clock_id: Array
    function: Array
    outcome: Array
    invoke_time: Array
    completion_time: Array
    topic: Array
    partition: Array
    acks: Array
    offset: Array
    end_offset: Array
    leader_epoch: Array
    strong: Array
    records: RecordColumns
    positions: PositionColumns


_PLAIN = ("op_id", "process", "session", "clock_id", "invoke_time")
_OPTIONAL = ("partition", "acks", "offset", "end_offset", "leader_epoch")


def columns_of_traces(traces: Sequence[Trace]) -> OperationColumns:
    """The operations of `traces`, in order."""
    operations = [operation for trace in traces for operation in trace.operations]
    records = [record for operation in operations for record in operation.records]
    positions = [position for operation in operations for position in operation.positions]
    named: list[Operation | Record | Position] = [*operations, *records, *positions]
    topics = tuple(sorted({item.topic for item in named if item.topic is not None}))
    codes: dict[str | None, int] = {topic: code for code, topic in enumerate(topics)}
    codes[None] = NONE

    def column(items: Sequence[Any], name: str) -> Array:
        return np.array([NONE if (v := getattr(item, name)) is None else v for item in items], np.int64)

    def topic(items: Sequence[Any]) -> Array:
        return np.array([codes[item.topic] for item in items], np.int64)

    def starts(name: str) -> Array:
        return _starts(np.array([len(getattr(operation, name)) for operation in operations], np.int64))

    integers = {name: column(operations, name) for name in (*_PLAIN, *_OPTIONAL)}
    completion = column(operations, "completion_time")
    completion[[operation.completion_time is None for operation in operations]] = NEVER
    return OperationColumns(
        traces=tuple(traces),
        topics=topics,
        trace=np.repeat(np.arange(len(traces)), [len(trace.operations) for trace in traces]),
        function=np.array([FUNCTIONS.index(operation.function) for operation in operations], np.int8),
        outcome=np.array([OUTCOMES.index(operation.outcome) for operation in operations], np.int8),
        completion_time=completion,
        topic=topic(operations),
        strong=np.array([operation.strong for operation in operations], np.bool_),
        records=RecordColumns(
            start=starts("records"),
            topic=topic(records),
            **{name: column(records, name) for name in ("partition", "offset", "value", "leader_epoch")},
        ),
        positions=PositionColumns(
            start=starts("positions"),
            topic=topic(positions),
            **{
                name: column(positions, name)
                for name in ("partition", "offset", "end_offset", "leader_epoch")
            },
        ),
        **integers,
    )


def columns_of_table(table: pa.Table | pa.RecordBatch, traces: Iterable[Trace] = ()) -> OperationColumns:
    """The rows of an `operations` table (or record batch), in order.

    traces: what is known of the runs themselves (claims, flags); their operations are not looked at. A run that the table names and
    `traces` does not gets the defaults of `Trace`. Raises TraceError where a column is missing.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    nested = {name: _nested(_column(table, name)) for name in ("records", "positions")}
    topic_columns = [_column(table, "topic"), *(_field(children, "topic") for _, children in nested.values())]
    topics, coded = _topic_codes(topic_columns)
    headers, trace = _trace_index(_integers(_column(table, "trace_id")), tuple(traces))

    def children(name: str, fields: tuple[str, ...]) -> dict[str, Array]:
        return {field: _integers(_field(nested[name][1], field)) for field in fields}

    return OperationColumns(
        traces=headers,
        topics=topics,
        trace=trace,
        function=_enum_codes(_column(table, "function"), FUNCTIONS, "function"),
        outcome=_enum_codes(_column(table, "outcome"), OUTCOMES, "outcome"),
        completion_time=_integers(_column(table, "completion_time"), null=NEVER),
        topic=coded[0],
        strong=arrow.fill_null(_column(table, "strong"), False).to_numpy(zero_copy_only=False),
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
        **{name: _integers(_column(table, name)) for name in (*_PLAIN, *_OPTIONAL)},
    )


def _starts(lengths: Array) -> Array:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _column(table: pa.Table, name: str) -> Arrow:
    if name not in table.column_names:
        raise TraceError(
            expected=f"a column {name}", seen=", ".join(table.column_names), where="operations table"
        )
    chunks: Arrow = table.column(name)
    return (
        chunks.chunk(0)
        if chunks.num_chunks == 1
        else pa.concat_arrays(chunks.chunks or [pa.array([], chunks.type)])
    )


def _field(structs: Arrow, name: str) -> Arrow:
    if structs.type.get_field_index(name) < 0:
        raise TraceError(expected=f"a field {name}", seen=str(structs.type), where="operations table")
    return arrow.struct_field(structs, name)


def _integers(array: Arrow, null: int = NONE) -> Array:
    if array.type != pa.int64():
        array = array.cast(pa.int64())
    numbers: Array = (arrow.fill_null(array, null) if array.null_count else array).to_numpy(
        zero_copy_only=False
    )
    return numbers


def _nested(lists: Arrow) -> tuple[Array, Arrow]:
    """Slice starts and the flat structs of a list column; a null list is an empty one."""
    lengths = arrow.fill_null(arrow.list_value_length(lists), 0)
    return _starts(lengths.to_numpy(zero_copy_only=False).astype(np.int64)), lists.flatten()


def _dictionary(array: Arrow) -> tuple[list[str], Array]:
    """Distinct strings and the index of each row into them, -1 for null."""
    encoded = array if pa.types.is_dictionary(array.type) else arrow.dictionary_encode(array)
    return encoded.dictionary.to_pylist(), _integers(encoded.indices)


def _recode(indices: Array, codes: list[int]) -> Array:
    """codes[index] for each index; -1 stays -1 (it picks the extra entry at the end)."""
    return np.array([*codes, NONE], np.int64)[indices]


def _enum_codes(array: Arrow, members: tuple[Any, ...], what: str) -> Array:
    names, indices = _dictionary(array)
    known = {str(member): code for code, member in enumerate(members)}
    strange = sorted(name for name in names if name not in known)
    if strange:
        raise TraceError(expected=f"one of {', '.join(known)}", seen=strange[0], where=f"column {what}")
    return _recode(indices, [known[name] for name in names]).astype(np.int8)


def _topic_codes(columns: list[Arrow]) -> tuple[tuple[str, ...], list[Array]]:
    """The topics that the columns name, sorted, and each column as indices into them."""
    encoded = [_dictionary(column) for column in columns]
    used = {names[i] for names, indices in encoded for i in np.unique(indices).tolist() if i >= 0}
    topics = tuple(sorted(used))
    position = {topic: code for code, topic in enumerate(topics)}
    return topics, [
        _recode(indices, [position.get(name, NONE) for name in names]) for names, indices in encoded
    ]


def _trace_index(trace_ids: Array, known: tuple[Trace, ...]) -> tuple[tuple[Trace, ...], Array]:
    """The runs, known ones first, and each row's index into them (rows of one run usually stand together)."""
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
