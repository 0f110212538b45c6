"""Operations of a table as values, for the checks that look at traces one by one.

Owns the decoding of rows and which traces of a table are asked. Must not know any rule.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve

from fencepost.checkers.arrow_arrays import Arrow, arrow, table_column
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Trace


def operations_of(
    table: pa.Table, ids: Collection[int], columns: Sequence[str]
) -> dict[int, list[Operation]]:
    """The operations of some traces.

    Args:
        table: rows of the `operations` table.
        ids: of the traces.
        columns: the columns to decode, with `trace_id`; the other fields keep their defaults.

    Returns:
        the operations by trace id, in the order of the rows; a trace without a row has no entry.

    Raises:
        TraceError: if a column is missing.
    """
    wanted = arrow.is_in(table_column(table, "trace_id"), value_set=pa.array(sorted(ids), pa.int64()))
    found: dict[int, list[Operation]] = {}
    for row in table.select(list(columns)).filter(wanted).to_pylist():
        found.setdefault(row.pop("trace_id"), []).append(_operation(row))
    return found


def _operation(row: dict[str, Any]) -> Operation:
    row["function"], row["outcome"] = Function(row["function"]), Outcome(row["outcome"])
    row["records"] = tuple(Record(**record) for record in row["records"] or ())
    row["positions"] = tuple(Position(**position) for position in row["positions"] or ())
    return Operation(**row)


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
            verdict = judge(evolve(trace, operations=tuple(operations.get(trace.trace_id, ()))))
            if verdict.decision is not Decision.OK:
                verdicts[trace.trace_id] = verdict
    return verdicts
