"""Which traces have a read at or above a bound of its own answer, from the columns of an `operations` table.

Owns the screen; only such traces are decoded for the rule in checkers/invariants/hw_read.py. Must not know
what convicts.
"""

import numpy as np
import pyarrow as pa

from fencepost.checkers.arrow_arrays import (
    Array,
    Arrow,
    arrow,
    integer_array,
    list_children,
    string_codes,
    struct_field,
    table_column,
)
from fencepost.checkers.invariants.hw_mono import READ_COMMITTED
from fencepost.traces.operations import Function, Outcome

COLUMNS = (
    *("trace_id", "function", "outcome", "topic", "partition", "end_offset", "last_stable_offset"),
    *("isolation", "records", "positions"),
)
_NO_BOUND = int(np.iinfo(np.int64).max)


def traces_beyond(table: pa.Table) -> set[int]:
    """The traces with such a read.

    Args:
        table: rows of the `operations` table, with at least COLUMNS.

    Raises:
        TraceError: if a column is missing.
    """
    for name in COLUMNS:
        table_column(table, name)
    words = {"function": Function.POLL.value, "outcome": Outcome.OK.value}
    rows = table.select(list(COLUMNS))
    for name, word in words.items():
        rows = rows.filter(arrow.equal(table_column(rows, name).cast(pa.string()), word))
    starts, records = list_children(table_column(rows, "records"))
    of_record = np.repeat(np.arange(rows.num_rows), np.diff(starts))
    at, positions = list_children(table_column(rows, "positions"))
    of_position = np.repeat(np.arange(rows.num_rows), np.diff(at))
    single = np.flatnonzero(
        (np.diff(at) == 0) & arrow.is_valid(table_column(rows, "partition")).to_numpy(zero_copy_only=False)
    )
    own = rows.take(single)
    isolation = arrow.fill_null(table_column(rows, "isolation").cast(pa.string()), "")
    committed = arrow.equal(isolation, READ_COMMITTED).to_numpy(zero_copy_only=False)
    row = np.concatenate((single, of_position))
    stable = _bounds(own, positions, "last_stable_offset")
    bound = np.minimum(_bounds(own, positions, "end_offset"), np.where(committed[row], stable, _NO_BOUND))
    place, sought = _places(own, positions, records, row, of_record)
    if not len(place) or not len(sought):
        return set()
    order = np.lexsort((bound, place))
    found = np.minimum(np.searchsorted(place[order], sought), len(order) - 1)
    mine = order[found]
    offsets = integer_array(struct_field(records, "offset"), -1)
    beyond = (place[mine] == sought) & (offsets >= bound[mine])
    ids = table_column(rows, "trace_id").to_numpy()
    return set(np.unique(ids[of_record[beyond]]).tolist())


def _bounds(own: pa.Table, positions: Arrow, name: str) -> Array:
    """A bound of each place; the largest number where none is claimed."""
    values = np.concatenate(
        (
            integer_array(table_column(own, name), _NO_BOUND),
            integer_array(struct_field(positions, name), _NO_BOUND),
        )
    )
    return np.where(values < 0, _NO_BOUND, values)


def _places(
    own: pa.Table, positions: Arrow, records: Arrow, row: Array, of_record: Array
) -> tuple[Array, Array]:
    """A number for (row, topic, partition) of each place, and of each record."""
    names: dict[str, int] = {}
    topics, partitions = [], []
    for topic, partition in (
        (table_column(own, "topic"), table_column(own, "partition")),
        *((struct_field(one, "topic"), struct_field(one, "partition")) for one in (positions, records)),
    ):
        words, codes = string_codes(topic)
        known = np.array([names.setdefault(word, len(names)) for word in words] + [-1], np.int64)
        topics.append(known[codes] + 1)
        partitions.append(integer_array(partition, -1))
    _, codes = np.unique(np.concatenate(partitions), return_inverse=True)
    every = np.concatenate((row, of_record)) * (len(names) + 1) + np.concatenate(topics)
    every = every * (codes.max(initial=0) + 1) + codes
    return every[: len(row)], every[len(row) :]
