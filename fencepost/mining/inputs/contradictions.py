"""Traces that contradict themselves, found over the columns of many at once.

Owns what no trace may say about its operations and events, whatever the checks. Must not know judges, Spark,
or where rows come from.

Conclusions from an operation that ended before it began, or from two operations with one number, mean
nothing. So such a trace is quarantined, and its neighbours are judged. Each rule is one comparison over whole
columns, which costs a fiftieth of reading them for the log check.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from fencepost.checkers.arrow_arrays import NEVER, NONE, Array, integer_array, table_column
from fencepost.checkers.sorting import packed, stable_order
from fencepost.traces.events import OF_A_TOPIC, REPLICA_DELETED, Name
from fencepost.traces.operations import Outcome

arrow: Any = pyarrow.compute

COLUMNS = (
    *("trace_id", "op_id", "invoke_time", "completion_time", "outcome"),
    *("topic", "partition", "offset"),
)
"""Columns of operations that are read here."""


_OF_A_TOPIC = pa.array([name.value for name in OF_A_TOPIC])


def contradictions(operations: pa.Table) -> dict[int, str]:
    """How each trace that contradicts itself does so, by trace id, in the order of the ids. Raises TraceError
    where a column is missing."""
    trace, op_id, invoked, completed = (
        integer_array(table_column(operations, name), null=null)
        for name, null in (
            ("trace_id", NONE),
            ("op_id", NONE),
            ("invoke_time", 0),
            ("completion_time", NEVER),
        )
    )
    columns = {name: table_column(operations, name) for name in ("outcome", "topic", "partition", "offset")}
    found: dict[int, str] = {}
    for wrong, what in (
        (np.flatnonzero(completed < invoked), "completed before it was invoked"),
        (_ok(columns["outcome"], np.flatnonzero(completed == NEVER)), "is ok but has no completion time"),
        (_repeated(trace, op_id), "shares its op id with another operation"),
        (_placed_without(columns["topic"], columns["offset"]), "names an offset but no topic"),
        (_placed_without(columns["partition"], columns["offset"]), "names an offset but no partition"),
    ):
        for row in wrong.tolist():
            found.setdefault(int(trace[row]), f"operation {op_id[row]} {what}")
    return dict(sorted(found.items()))


def contradictions_of_events(events: pa.Table) -> dict[int, str]:
    """The traces with an event about a topic that names none, by trace id, with the reason. events: rows in
    which `topic` may be left out; then there are none."""
    if "topic" not in events.column_names or not events.column("topic").null_count:
        return {}
    bare: Any = events.filter(arrow.is_null(events.column("topic")))
    name, cause = (bare.column(column).cast(pa.string()) for column in ("name", "cause"))
    deleted = arrow.and_(arrow.equal(name, Name.MARK.value), arrow.equal(cause, REPLICA_DELETED))
    wrong = bare.filter(arrow.or_(arrow.is_in(name, value_set=_OF_A_TOPIC), deleted))
    found: dict[int, str] = {}
    for trace_id, what in zip(*(wrong.column(one).to_pylist() for one in ("trace_id", "name")), strict=True):
        found.setdefault(trace_id, f"an event {what} names no topic")
    return found


def _ok(outcome: Any, rows: Array) -> Array:
    """Those of the rows that are ok."""
    kept: Array = rows[
        arrow.equal(outcome.take(pa.array(rows)), Outcome.OK.value).to_numpy(zero_copy_only=False)
    ]
    return kept


def _placed_without(column: Any, offset: Any) -> Array:
    """Rows that name an offset and nothing in the column."""
    if not column.null_count:
        return np.empty(0, np.int64)
    both = arrow.and_(arrow.is_null(column), arrow.is_valid(offset))
    return np.flatnonzero(both.to_numpy(zero_copy_only=False))


def _repeated(trace: Array, op_id: Array) -> Array:
    """Rows with the (trace, op id) of an earlier row."""
    if not len(trace):
        return np.empty(0, np.int64)
    keys = packed((trace, op_id))
    order = stable_order(keys)
    return np.sort(order[1:][np.diff(keys[order]) == 0])
