"""The keys of records of compacted topics, from rows of an `operations` table. COMMIT-SAFE needs them for
compacted logs.

Owns which records have a key, and which are tombstones (checkers/invariants/commit_safe.py does the same for
objects). Must not know what may be missing.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from fencepost.checkers.arrow_arrays import (
    Array,
    arrow,
    integer_array,
    list_children,
    slice_starts,
    string_codes,
    struct_field,
    table_column,
)
from fencepost.checkers.events.event_columns import rows_by_trace
from fencepost.checkers.invariants.commit_safe import TOMBSTONE
from fencepost.traces.operations import Function
from fencepost.traces.trace import Trace

COLUMNS = ("trace_id", "function", "topic", "key", "argument", "records")


def keys_of_records(operations: pa.Table, traces: Sequence[Trace]) -> tuple[Array, Array]:
    """Collect the keyed records.

    Args:
        operations: rows of an `operations` table.
        traces: the headers of its traces.

    Returns:
        where each trace's records begin, and the records: (value, key as a number, whether it is a
        tombstone), by value in each trace.
    """
    ids = [trace.trace_id for trace in traces if trace.claims.compacted]
    none = np.zeros(len(traces) + 1, np.int64), np.empty((0, 3), np.int64)
    if not ids:
        return none
    table = operations.select(list(COLUMNS)).unify_dictionaries()
    table = table.filter(arrow.is_in(table.column("trace_id"), value_set=pa.array(ids, pa.int64())))
    appends = arrow.equal(table.column("function").cast(pa.string()), Function.APPEND.value)
    table, start = rows_by_trace(
        table.filter(arrow.and_(appends, arrow.is_valid(table.column("key")))), traces
    )
    if not table.num_rows:
        return none
    trace = np.repeat(np.arange(len(traces)), np.diff(start))
    topics, topic = string_codes(table_column(table, "topic"))
    names, name = string_codes(table_column(table, "key"))
    arguments, argument = string_codes(table_column(table, "argument"))
    tombstone = argument == (arguments.index(TOMBSTONE) if TOMBSTONE in arguments else len(arguments))
    # the last entry is the one that a topic of -1 picks
    compacted = np.zeros((len(traces), len(topics) + 1), np.bool_)
    for index, one in enumerate(traces):
        compacted[index, [topics.index(told) for told in one.claims.compacted if told in topics]] = True
    named = compacted[trace, topic] & (name != (names.index("") if "" in names else -1))
    at, records = list_children(table_column(table, "records"))
    row = np.repeat(np.arange(len(trace)), np.diff(at))
    kept = np.flatnonzero(named[row])
    row, value = row[kept], integer_array(struct_field(records, "value"))[kept]
    order = np.lexsort((np.arange(len(row)), value, trace[row]))
    row, value = row[order], value[order]
    last = np.ones(len(row), np.bool_)  # if a value was appended twice, its last key counts
    last[:-1] = (np.diff(value) != 0) | (np.diff(trace[row]) != 0)
    row, value = row[last], value[last]
    begins = slice_starts(np.bincount(trace[row], minlength=len(traces)))
    return begins, np.stack((value, name[row], tombstone[row].astype(np.int64)), axis=1)
