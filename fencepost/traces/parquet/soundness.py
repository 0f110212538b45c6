"""Which stored traces have all their rows and all their values, found over the columns of many at once.

Owns what every row of the three tables must have, whatever it says: a trace id, a value in each column that
is never null, a row in `traces`, its place among the events of its trace. Must not know files, judges, or
what operations mean (mining/inputs/contradictions.py).

Only columns that are there are looked at. A reader of single columns reads those that may hold a null too
(parquet.read_group).
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from fencepost.traces.schema import SCHEMAS, TABLES, Table
from fencepost.traces.tables import Tables

Array = npt.NDArray[Any]
NO_ROW = "expected a row in traces for every trace, saw none"


@frozen(kw_only=True)
class Unsound:
    """What cannot be judged."""

    # Why, by trace id.
    traces: dict[int, str] = field(factory=dict)
    # Rows that name no trace, one sentence for each table that has some.
    nameless: tuple[str, ...] = ()


def required(table: Table) -> tuple[str, ...]:
    """The columns of a table that are never null."""
    return tuple(each.name for each in SCHEMAS[table] if not each.nullable)


def unsound(tables: Tables) -> Unsound:
    """The traces that lack rows or values, and the rows that belong to no trace.

    Args:
        tables: of whole traces; some columns may be left out, but never `trace_id`.

    Returns:
        what cannot be judged. A row without a trace id may be of any trace between its neighbours, so that
        none of these is whole.
    """
    found: dict[int, str] = {}
    nameless: list[str] = []
    order = _order(tables.traces)
    for table in TABLES:
        rows = tables.of(table)
        ids, named = _ids(rows)
        if not named.all():
            many = int((~named).sum())
            nameless.append(f"expected a trace id in every row of {table}, saw {many} rows without one")
            if table != "traces":
                for trace_id in _around(ids, named, order):
                    found.setdefault(trace_id, f"a row of {table} near its own has no trace id")
        for name in required(table):
            column: Any = rows.column(name) if name in rows.column_names else None
            if column is not None and column.null_count and name != "trace_id":
                empty = pc.is_null(column).to_numpy(zero_copy_only=False) & named
                for trace_id in np.unique(ids[empty]).tolist():
                    found.setdefault(trace_id, f"expected a value in the column {name} of {table}, saw null")
        if table == "traces":
            many_rows, counts = np.unique(ids[named], return_counts=True)
            for trace_id in many_rows[counts > 1].tolist():
                found.setdefault(trace_id, "expected one row in traces, saw more")
        else:
            for trace_id in np.unique(ids[named]).tolist():
                if trace_id not in order:
                    found.setdefault(trace_id, NO_ROW)
    for trace_id in _out_of_place(tables.events):
        found.setdefault(trace_id, "expected its events numbered 0, 1, 2, ..., saw others")
    return Unsound(traces=dict(sorted(found.items())), nameless=tuple(nameless))


def without(tables: Tables, trace_ids: dict[int, str]) -> Tables:
    """The tables without these traces, and without rows that have no trace id."""
    strange = pa.array([*trace_ids, None], pa.int64())
    kept = {
        table: tables.of(table).filter(
            pc.invert(pc.is_in(tables.of(table).column("trace_id"), value_set=strange))
        )
        for table in TABLES
    }
    return Tables(traces=kept["traces"], operations=kept["operations"], events=kept["events"])


def _ids(rows: pa.Table) -> tuple[Array, Array]:
    """(the trace id of each row, 0 where there is none; whether there is one)."""
    column: Any = rows.column("trace_id")
    if not column.null_count:
        return column.to_numpy(), np.ones(len(column), np.bool_)
    named = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return pc.fill_null(column, 0).to_numpy(), named


def _order(traces: pa.Table) -> dict[int, int]:
    """The place of each trace among the rows of `traces`."""
    ids, named = _ids(traces)
    return {trace_id: place for place, trace_id in enumerate(ids[named].tolist())}


def _around(ids: Array, named: Array, order: dict[int, int]) -> list[int]:
    """The traces that rows without an id may belong to: from the one before them to the one after, or all."""
    traces = list(order)
    valid = np.flatnonzero(named)
    found: set[int] = set()
    for place in np.unique(np.searchsorted(valid, np.flatnonzero(~named))).tolist():
        first = order.get(int(ids[valid[place - 1]]), 0) if place else 0
        last = len(traces) - 1
        if place < len(valid):
            last = order.get(int(ids[valid[place]]), last)
        found.update(traces[first : last + 1] if first <= last else traces)
    return sorted(found)


def _out_of_place(events: pa.Table) -> list[int]:
    """The traces whose events are not numbered in order from 0; none where the numbers were not read."""
    if "position" not in events.column_names or not events.num_rows:
        return []
    ids, named = _ids(events)
    column: Any = events.column("position")
    places = pc.fill_null(column, -1)
    positions: Array = places.to_numpy()[named]
    ids = ids[named]
    if (np.diff(ids) < 0).any():
        by_trace = np.argsort(ids, kind="stable")
        ids, positions = ids[by_trace], positions[by_trace]
    begins = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1)) if len(ids) else np.empty(0, np.int64)
    expected = np.arange(len(ids)) - np.repeat(begins, np.diff(begins, append=len(ids)))
    wrong: list[int] = np.unique(ids[positions != expected]).tolist()
    return wrong
