"""What slots do not answer about a giant history: is an operation number, or a value of a log, in it
twice?

Owns the passes that compare numbers, a span of them at a time. Must not know slots, Spark.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.log.appends_and_reads import Kind, log_columns
from fencepost.checkers.log.one_log import sent_twice
from fencepost.checkers.log.ranges.partial import rows_of_group
from fencepost.checkers.operation_columns import columns_of_table
from fencepost.mining.giant.giant_rows import COLUMNS, LogKey, Spread, own_batches
from fencepost.mining.inputs.ungrouped_parts import Giant

IDS_AT_ONCE = 1 << 24
"""Operation numbers or values that are compared at once."""


def overlap(spans: Sequence[tuple[int, ...]]) -> bool:
    """Whether two of these spans of numbers have any in common."""
    ordered = sorted(spans)
    return any(after[0] <= before[1] for before, after in pairwise(ordered))


def _spans(spans: Sequence[tuple[int, ...]], many: int) -> list[tuple[int, int]]:
    """[low, high) that hold about IDS_AT_ONCE of `many` numbers each."""
    low, high = min(span[0] for span in spans), max(span[1] for span in spans) + 1
    step = max(1, (high - low) // max(1, -(-many // IDS_AT_ONCE)))
    return [(start, min(start + step, high)) for start in range(low, high, step)]


def repeated_id(giant: Giant, ids: Sequence[tuple[int, int]], spread: Spread) -> str:
    """Which operation shares its number with an earlier one, in words; "" if none. ids: the lowest and the
    highest of each batch."""
    spans = _spans(ids, giant.operations)
    firsts = [found for found in spread(partial(first_repeated_id, giant), spans) if found is not None]
    return f"operation {min(firsts)[1]} shares its op id with another operation" if firsts else ""


def first_repeated_id(giant: Giant, span: tuple[int, int]) -> tuple[int, int] | None:
    """(row, op id) of the first operation that repeats an earlier number in `span`, which is [low, high).
    None if there is none. giant: the history."""
    rows, ids, before = [], [], 0
    for place in giant.places:
        for table in own_batches(giant, place, ["op_id"]):
            found = table.column("op_id").to_numpy()
            inside = np.flatnonzero((found >= span[0]) & (found < span[1]))
            rows.append(inside + before)
            ids.append(found[inside])
            before += len(found)
    row, op_id = np.concatenate(rows), np.concatenate(ids)
    order = np.argsort(op_id, kind="stable")
    again = order[1:][np.diff(op_id[order]) == 0]
    return (int(row[again.min()]), int(op_id[again.min()])) if len(again) else None


def repeated_value(giant: Giant, log: LogKey, values: Sequence[tuple[int, ...]], spread: Spread) -> str:
    """Which value was sent twice, in the words of the plain check; "" if none. values: the lowest and the
    highest of each batch."""
    spans = _spans(values, giant.operations)
    firsts = [
        found for found in spread(partial(first_repeated_value, giant, log), spans) if found is not None
    ]
    if not firsts:
        return ""
    value, first, second = min(firsts)
    return sent_twice(value, first, second)


def first_repeated_value(giant: Giant, log: LogKey, span: tuple[int, int]) -> tuple[int, int, int] | None:
    """The lowest value within [low, high) that two appends to the log sent, and the first two of them."""
    none = np.empty(0, np.int64)
    values, ids = [none], [none]
    for place in giant.places:
        for table in own_batches(giant, place, COLUMNS):
            columns = log_columns(
                columns_of_table(table.filter(pc.equal(table.column("function"), pa.scalar("append"))))
            )
            for g in range(columns.groups):
                if (columns.topics[columns.topic[g]], int(columns.partition[g])) == log:
                    appends, _ = rows_of_group(columns, g)
                    inside = (appends.value >= span[0]) & (appends.value < span[1])
                    count = np.diff(appends.start)
                    inside &= np.repeat(appends.kind != Kind.FAILED, count)
                    values.append(appends.value[inside])
                    ids.append(np.repeat(appends.op_id, count)[inside])
    value, op_id = np.concatenate(values), np.concatenate(ids)
    order = np.argsort(value, kind="stable")
    again = np.flatnonzero(np.diff(value[order]) == 0)
    if not len(again):
        return None
    first, second = order[again[0] : again[0] + 2]
    return int(value[first]), int(op_id[first]), int(op_id[second])
