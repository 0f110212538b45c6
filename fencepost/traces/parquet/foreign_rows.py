"""Rows of a Parquet file that is none of ours.

Owns reading it in batches. Must not know what the columns mean.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.traces.parquet.row_groups import unreadable


def rows_of_file(path: Path, columns: Sequence[str], at_a_time: int) -> Iterator[dict[str, Any]]:
    """The rows of a file.

    Args:
        path: of the file.
        columns: to read, as far as the file has them.
        at_a_time: rows that are in memory.

    Raises:
        TraceError: it cannot be read.
    """
    try:
        with pq.ParquetFile(path) as file:
            names = [name for name in columns if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=at_a_time, columns=names):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None
