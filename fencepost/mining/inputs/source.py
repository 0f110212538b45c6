"""`spark.read.format("fencepost")`: every history that Fencepost knows, as one of its three tables, in a
DataFrame.

Owns: the data source's options, the partitions, and the column `source` in front of a table's own. Must not
know: judges, formats (traces.py reads).

A row group of a folder of traces, or a file of another format, is one partition, and crosses to the JVM as
Arrow batches. That road is ten times slower than the one of `mine` (docs/explanation/mining.md): it is for
looking at traces in SQL, not for judging them.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from attrs import evolve
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from fencepost.mining.inputs.traces import FORMATS, Piece, Quarantined, pieces_of, read_piece
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.parquet.row_groups import read_group
from fencepost.traces.schema import SCHEMAS, Table
from fencepost.traces.tables import tables_of

NAME = "fencepost"
TRACES_AT_ONCE = 200
"""Traces of a file that become Arrow batches together."""
_SOURCE = pa.field("source", pa.string(), nullable=False)


class PiecePartition(InputPartition):
    """One piece of the input, and its number, which is the trace id of a history without an id."""

    def __init__(self, piece: Piece, number: int) -> None:
        super().__init__(number)
        self.piece, self.number = piece, number


class HistoryReader(DataSourceReader):
    """Reads one table of all pieces."""

    def __init__(self, path: str, table: Table, format: str) -> None:
        self.path, self.table, self.format = path, table, format

    def partitions(self) -> Sequence[PiecePartition]:
        """One per piece. Raises TraceError if there is nothing, or something that cannot be read from the
        outside."""
        pieces = list(pieces_of((Path(self.path),), self.format))
        for piece in pieces:
            if isinstance(piece, Quarantined):
                raise TraceError(expected="histories that can be read", seen=piece.reason, where=self.path)
        return [PiecePartition(cast(Piece, piece), number) for number, piece in enumerate(pieces)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a piece. Raises TraceError for what turns out to be unreadable."""
        piece: Piece = partition.piece
        if piece.split is not None and piece.split.group is not None:
            group = piece.split.group
            yield from self._batches(
                read_group(getattr(group.part, self.table), self.table, group.index), piece
            )
            return
        found = read_piece(piece)
        while many := list(islice(found, TRACES_AT_ONCE)):
            traces = []
            for one in many:
                if isinstance(one, Quarantined):
                    raise TraceError(
                        expected="a history that can be read", seen=one.reason, where=piece.source
                    )
                traces.append(evolve(one.trace, trace_id=partition.number) if one.foreign else one.trace)
            tables = tables_of(rows_of(trace) for trace in traces)
            yield from self._batches(getattr(tables, self.table), piece)

    def _batches(self, rows: pa.Table, piece: Piece) -> Iterator[pa.RecordBatch]:
        named = rows.add_column(0, _SOURCE, pa.array([piece.source] * rows.num_rows, pa.string()))
        yield from named.to_batches()


class HistorySource(DataSource):
    """Its options are `path` (given to load), a folder of traces, a file, or a folder of those; `table`,
    which is operations (default), events or traces; and `format` of files, as for `fencepost check` (default
    auto)."""

    @classmethod
    def name(cls) -> str:
        """The name for format(...)."""
        return NAME

    def _table(self) -> Table:
        table = self.options.get("table", "operations")
        if table not in SCHEMAS:
            raise FencepostError(
                expected=f"a table of {', '.join(sorted(SCHEMAS))}",
                seen=repr(table),
                where='the option "table"',
            )
        return table

    def schema(self) -> Any:
        """The table's columns after `source`, the path that a row came from."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(pa.schema([_SOURCE, *SCHEMAS[self._table()]]))

    def reader(self, schema: Any) -> HistoryReader:
        """The reader for the options. Raises FencepostError for an option that is missing or unknown."""
        path, format = self.options.get("path"), self.options.get("format", "auto")
        if not path:
            raise FencepostError(
                expected="a path", seen="none", where='spark.read.format("fencepost").load(...)'
            )
        if format not in FORMATS:
            raise FencepostError(
                expected=f"a format of {', '.join(FORMATS)}", seen=repr(format), where='the option "format"'
            )
        return HistoryReader(path, self._table(), format)


def register(spark: Any) -> None:
    """Make the format known to a session; `fencepost.mining.spark.session.session` has done so already."""
    spark.dataSource.register(HistorySource)
