"""The operations of a giant history, few at a time.

Owns which of its columns the log check reads, and how. Must not know what is asked about them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from fencepost.checkers.judges import CHECKS
from fencepost.mining.inputs.ungrouped_parts import Giant, Place, batches_of

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""spread(function, items): function(item) of each item, in order, somewhere."""
LogKey = tuple[str, int]
"""Topic and partition."""
COLUMNS = list(CHECKS["log"].operation_columns)
CODED = ("function", "topic", "key", "argument", "isolation", "records.list.element.topic")
"""Columns of few words, that are numbers from the file on."""


def own_batches(
    giant: Giant, place: Place, columns: list[str], dictionary: tuple[str, ...] = ()
) -> Iterator[pa.Table]:
    """The giant's rows of a row group, few at a time. dictionary: columns to read so. Raises TraceError."""
    names = sorted({"trace_id", *columns})
    for batch in batches_of(place.path, "operations", place.group, names, dictionary=dictionary):
        rows = pa.Table.from_batches([batch])
        mine = rows.column("trace_id").to_numpy() == giant.trace_id
        yield rows if mine.all() else rows.filter(pa.array(mine))
