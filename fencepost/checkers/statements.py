"""Rarely used columns of operations: log starts, last stable offsets, isolation, keys, tombstones. They
extend `OperationColumns`.

Owns these columns, and whether any check needs them. A run needs them if it claims retention or compaction,
has transactions or read_committed reads, or asks for log starts. Other runs have none, at no cost. Must not
know how checks use them.
"""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.arrow_arrays import (
    NONE,
    Array,
    Arrow,
    integer_array,
    object_integers,
    recoded,
    string_codes,
    struct_field,
    table_column,
)
from fencepost.traces.operations import Function, Operation, Position
from fencepost.traces.trace import Trace

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
ISOLATIONS = ("read_uncommitted", "read_committed")
TOMBSTONE, EARLIEST = "tombstone", "earliest"
"""Arguments: of an append that deletes its key; of a list_offsets that asks for the log start."""


@frozen(kw_only=True, eq=False)
class Statements:
    """One entry per operation, in row order."""

    # The log start offset that the client was shown; -1 if none.
    log_start_offset: Array
    # The last stable offset that the client was shown; -1 if none.
    last_stable_offset: Array
    # Index into ISOLATIONS; -1 if not known.
    isolation: Array
    # Index into the sorted keys; -1 if the operation has no key.
    key: Array
    # The number of distinct keys.
    keys: int
    # Whether an append deletes its key.
    tombstone: Array
    # Whether a list_offsets asks for the log start.
    earliest: Array
    # For each position, as in PositionColumns: the log start offset shown; -1 if none.
    position_log_start_offset: Array
    # For each position: the last stable offset shown; -1 if none.
    position_last_stable_offset: Array


def statements_of_operations(
    traces: Sequence[Trace], operations: Sequence[Operation], positions: Sequence[Position]
) -> Statements | None:
    """The statements of operations in memory.

    Args:
        traces: the traces; their claims decide whether the statements matter.
        operations: their operations, in order.
        positions: the positions of the operations, flat.

    Returns:
        the statements; None if no check would use them.
    """
    stable = object_integers(operations, "last_stable_offset")
    position_stable = object_integers(positions, "last_stable_offset")
    claimed = _claimed(traces)
    committed = ISOLATIONS[READ_COMMITTED] in map(attrgetter("isolation"), operations)
    transactions = Function.TXN in map(attrgetter("function"), operations)
    earliest = EARLIEST in map(attrgetter("argument"), operations)
    if not (claimed or committed or transactions or earliest or _any(stable) or _any(position_stable)):
        return None
    names = sorted({operation.key for operation in operations if operation.key is not None})
    codes: dict[str | None, int] = {name: code for code, name in enumerate(names)}
    isolations: dict[str | None, int] = {name: code for code, name in enumerate(ISOLATIONS)}
    return Statements(
        log_start_offset=object_integers(operations, "log_start_offset"),
        last_stable_offset=stable,
        isolation=np.array([isolations.get(o.isolation, NONE) for o in operations], np.int8),
        key=np.array([codes.get(o.key, NONE) for o in operations], np.int64),
        keys=len(names),
        tombstone=np.array([o.argument == TOMBSTONE for o in operations], np.bool_),
        earliest=np.array([o.argument == EARLIEST for o in operations], np.bool_),
        position_log_start_offset=object_integers(positions, "log_start_offset"),
        position_last_stable_offset=position_stable,
    )


def statements_of_table(
    table: pa.Table, traces: Sequence[Trace], positions: Arrow, *, transactions: bool
) -> Statements | None:
    """The statements of the rows of an `operations` table.

    Args:
        table: the rows.
        traces: the headers of their traces; their claims decide whether the statements matter.
        positions: the flat positions of the rows (structs).
        transactions: whether the rows have transactions.

    Returns:
        the statements; None if no check would use them.

    Raises:
        TraceError: if a column is missing.
    """
    stable = integer_array(table_column(table, "last_stable_offset"))
    position_stable = integer_array(struct_field(positions, "last_stable_offset"))
    isolation = _coded(table, "isolation", ISOLATIONS)
    argument = _coded(table, "argument", (TOMBSTONE, EARLIEST))
    committed_only = bool((isolation == READ_COMMITTED).any() or (argument == 1).any())
    if not (_claimed(traces) or committed_only or transactions or _any(stable) or _any(position_stable)):
        return None
    names, indices = string_codes(table_column(table, "key"))
    used = sorted({names[i] for i in np.unique(indices[indices >= 0]).tolist()})
    codes = {name: code for code, name in enumerate(used)}
    return Statements(
        log_start_offset=integer_array(table_column(table, "log_start_offset")),
        last_stable_offset=stable,
        isolation=isolation,
        key=recoded(indices, [codes.get(name, NONE) for name in names]),
        keys=len(used),
        tombstone=argument == 0,
        earliest=argument == 1,
        position_log_start_offset=integer_array(struct_field(positions, "log_start_offset")),
        position_last_stable_offset=position_stable,
    )


def _claimed(traces: Sequence[Trace]) -> bool:
    return any(trace.claims.retention or trace.claims.compacted for trace in traces)


def _any(offsets: Array) -> bool:
    return bool((offsets >= 0).any())


def _coded(table: pa.Table, name: str, known: tuple[str, ...]) -> Array:
    """The index of each string into `known`; -1 for other strings and for null."""
    names, indices = string_codes(table_column(table, name))
    codes = recoded(indices, [known.index(word) if word in known else NONE for word in names])
    return codes.astype(np.int8)
