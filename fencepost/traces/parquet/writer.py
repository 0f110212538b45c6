"""Writing the three files of a part together.

Owns how a part is encoded: compression, checksums of pages and footers, and that row group i of its three
files holds the same traces. Must not know where the files are, journals, sealing (sealing.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import Factory, define

from fencepost.traces.parquet.footer import BLANK, CHECKSUM_KEY, ROWS_KEY, with_checksum
from fencepost.traces.schema import SCHEMAS, TABLES, Table
from fencepost.traces.tables import Tables


@define(eq=False)
class _Sink:
    """What Parquet's writer writes to. The footer is held back until its checksum is known."""

    file: BinaryIO
    # The footer so far; None: not begun.
    held: bytearray | None = None

    @property
    def closed(self) -> bool:
        """Whether nothing can be written any more."""
        return self.file.closed

    def write(self, data: bytes) -> int:
        """Write, or hold."""
        if self.held is None:
            return self.file.write(data)
        self.held += data
        return len(data)

    def tell(self) -> int:
        """Where the next byte goes."""
        return self.file.tell() + len(self.held or b"")

    def flush(self) -> None:
        """The file is its owner's to flush."""


@define(eq=False)
class FileWriter:
    """Writes one file of a part: row groups, then the footer."""

    sink: _Sink
    parquet: pq.ParquetWriter

    @classmethod
    def open(cls, file: BinaryIO, schema: pa.Schema) -> Self:
        """A writer on an open file, which stays the caller's to sync and close. schema: of the file."""
        sink: Any = _Sink(file)  # whatever writes
        return cls(sink, pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True))

    def write(self, rows: pa.Table) -> None:
        """Add one row group."""
        self.parquet.write_table(rows, row_group_size=max(1, rows.num_rows))

    def close(self, about: Mapping[str, str] | None = None) -> None:
        """Write the footer. After an error, here or before, it does not try again when it is forgotten:
        PyArrow would print a traceback then. about: further key-value metadata."""
        try:
            self.parquet.add_key_value_metadata({CHECKSUM_KEY: BLANK, **(about or {})})
            self.sink.held = bytearray()
            self.parquet.close()
            self.sink.file.write(with_checksum(bytes(self.sink.held)))
        finally:
            self.parquet.is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@define
class PartWriter:
    """Writes whole traces into the three open files of a part."""

    # By table; every `write` adds one row group to each, so that the same index means the same traces.
    writers: dict[Table, FileWriter]
    # Of each row group so far.
    rows: dict[Table, list[int]] = Factory(lambda: {table: [] for table in TABLES})

    @classmethod
    def open(cls, sinks: dict[Table, BinaryIO]) -> Self:
        """A writer on three open files, which stay the caller's to sync and close."""
        return cls({table: FileWriter.open(sinks[table], SCHEMAS[table]) for table in TABLES})

    def write(self, tables: Tables) -> None:
        """Add one row group to each file; an empty table adds an empty one, which keeps the indices
        aligned."""
        for table in TABLES:
            self.writers[table].write(tables.of(table))
            self.rows[table].append(tables.of(table).num_rows)

    def bytes_written(self) -> int:
        """Compressed bytes of the finished row groups."""
        return sum(writer.sink.tell() for writer in self.writers.values())

    def close(self) -> None:
        """Write the footers."""
        about = {ROWS_KEY: msgspec.json.encode(self.rows).decode()}
        try:
            for table in TABLES:
                self.writers[table].close(about if table == "traces" else None)
        finally:
            for writer in self.writers.values():
                writer.parquet.is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
