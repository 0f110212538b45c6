"""Columns about consumers, producers and groups that extend `OperationColumns`: one array per column, in row
order.

Owns these columns, from `Operation` values and from rows of an `operations` table. Must not know how they are
used. Null becomes -1.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.arrow_arrays import (
    NONE,
    Array,
    arrow,
    integer_array,
    list_children,
    object_integers,
    string_codes,
    struct_field,
    table_column,
)
from fencepost.traces.operations import COOPERATIVE
from fencepost.traces.trace import Trace

COLUMNS = (
    *("argument", "generation", "group", "key", "log_start_offset"),
    *("positions", "producer_epoch", "producer_id"),
)
"""Columns of the `operations` table that this module reads, in addition to those of `OperationColumns`."""
SEEK, TOMBSTONE = "seek_to_beginning", "tombstone"


@frozen(kw_only=True, eq=False)
class Extras:
    """One entry per operation, in row order."""

    # Whether the operation names a group.
    member: Array
    # The generation of the member; -1 if none.
    generation: Array
    # The producer id; -1 if none.
    producer_id: Array
    # The producer epoch; -1 if none.
    producer_epoch: Array
    # The log start offset that the client was shown; -1 if none.
    log_start: Array
    # A code of the key, equal for equal keys; -1 if none.
    key: Array
    # Whether an assign starts at the beginning again.
    seeks: Array
    # Whether a join goes on in what it names (KIP-429).
    cooperative: Array
    # Whether an append deletes its key.
    tombstone: Array
    # The log start offset shown, per position (flat); -1 if none.
    position_log_start: Array


def extras_of_traces(traces: Sequence[Trace]) -> Extras:
    """The extras of the operations of traces, in order."""
    operations = [operation for trace in traces for operation in trace.operations]
    positions = [position for operation in operations for position in operation.positions]
    keys = [operation.key for operation in operations]
    codes: dict[str | None, int] = {None: NONE}
    for key in dict.fromkeys(keys):
        codes.setdefault(key, len(codes))
    arguments = [operation.argument for operation in operations]
    return Extras(
        member=np.array([operation.group is not None for operation in operations], np.bool_),
        generation=object_integers(operations, "generation"),
        producer_id=object_integers(operations, "producer_id"),
        producer_epoch=object_integers(operations, "producer_epoch"),
        log_start=object_integers(operations, "log_start_offset"),
        key=np.array([codes[key] for key in keys], np.int64),
        seeks=np.array([argument == SEEK for argument in arguments], np.bool_),
        cooperative=np.array([argument == COOPERATIVE for argument in arguments], np.bool_),
        tombstone=np.array([argument == TOMBSTONE for argument in arguments], np.bool_),
        position_log_start=object_integers(positions, "log_start_offset"),
    )


def extras_of_table(table: pa.Table) -> Extras:
    """The extras of the rows of an `operations` table, in order. Raises TraceError if a column is missing."""
    argument = table_column(table, "argument")

    def says(word: str) -> Array:
        return np.asarray(arrow.fill_null(arrow.equal(argument, word), False)).astype(np.bool_)

    return Extras(
        member=np.asarray(arrow.is_valid(table_column(table, "group"))).astype(np.bool_),
        generation=integer_array(table_column(table, "generation")),
        producer_id=integer_array(table_column(table, "producer_id")),
        producer_epoch=integer_array(table_column(table, "producer_epoch")),
        log_start=integer_array(table_column(table, "log_start_offset")),
        key=string_codes(table_column(table, "key"))[1],
        seeks=says(SEEK),
        cooperative=says(COOPERATIVE),
        tombstone=says(TOMBSTONE),
        position_log_start=integer_array(
            struct_field(list_children(table_column(table, "positions"))[1], "log_start_offset")
        ),
    )
