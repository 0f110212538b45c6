"""Parquet parts: reading one row group with clear errors.

Owns: that row group i of a part's three files holds the same traces, each whole, and the refusal of files
that are truncated, damaged, foreign or of another version. Must not know: how parts are written
(writer.py), which of them a folder has, journals, sealing (store.py, sealing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import frozen

from fencepost.traces.errors import TraceError
from fencepost.traces.parquet.footer import ROWS_KEY, check_footer, differences
from fencepost.traces.parquet.soundness import required
from fencepost.traces.schema import SCHEMAS, STRINGS, TABLES, Table, check_schema
from fencepost.traces.tables import Tables

CELLS_MAX = 1 << 26
"""Values of a row group that are read at once, half a gigabyte as columns. A million operations of one record
each have 43 million; equal rows take next to nothing on disk."""
TEXT_BYTES_MAX = 1 << 28
"""Bytes of a row group's strings once each row has its own. A file states a string once, however many
rows have it."""
PAGE_BYTES_MAX = 1 << 30
"""Bytes of the columns that are read once decompressed, by the file's own account."""
DAMAGED = (OSError, pa.ArrowException, UnicodeError, LookupError)
"""What Arrow raises for a file that is damaged: in its pages, in names of its footer, in its structure."""


@frozen(kw_only=True)
class TablePart:
    """The three files of one part; `number` is the same in all three names."""

    number: int
    traces: Path
    operations: Path
    events: Path

    def of(self, table: Table) -> Path:
        """The file of a table."""
        return {"traces": self.traces, "operations": self.operations, "events": self.events}[table]


@frozen(kw_only=True)
class RowGroup:
    """One row group of a part, the unit of reading."""

    part: TablePart
    index: int
    # Its rows of the table `operations`.
    operations: int
    # Size of all three tables, compressed.
    size_bytes: int
    # The smallest and the largest trace id; None if the file does not say.
    first_trace: int | None = None
    last_trace: int | None = None
    # How many traces; -1: not counted.
    traces: int = -1
    # Its rows of the table `events`.
    events: int = 0
    # How its numbers of rows differ from those that were written; "": they do not, or the part does not say.
    differs: str = ""
    # Whether the part says its numbers of rows, and so was written with checksums.
    sealed_with_checksums: bool = False


def parquet_file(
    path: Path, *, dictionary: Sequence[str] = (), footer: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    """An open Parquet file that verifies the checksums of its footer and of each page that it reads, where
    they have some. Its schema is not checked.

    Args:
        path: the file.
        dictionary: string columns to read as dictionaries, by their paths in the schema.
        footer: its footer, if it is known.

    Returns:
        the file.

    Raises:
        DAMAGED: if it is no whole Parquet file.
        TraceError: if its footer does not agree with its checksum.
    """
    if footer is None:
        check_footer(path)
    return pq.ParquetFile(
        path,
        memory_map=True,
        metadata=footer,
        read_dictionary=list(dictionary) or None,
        page_checksum_verification=True,
    )


def open_part(path: Path, table: Table, *, dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    """An open file of a part, its schema checked. dictionary: string columns to read as dictionaries, by
    their paths in the schema. Raises TraceError."""
    try:
        file = parquet_file(path, dictionary=dictionary)
        schema = file.schema_arrow
    except DAMAGED as error:
        raise unreadable(path, error) from None
    try:
        check_schema(file.schema_arrow if not dictionary else _plain(schema), table, where=str(path))
    except TraceError:
        file.close()
        raise
    return file


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with strings instead of dictionaries of strings, as they were written."""
    for index, field in enumerate(schema):
        schema = schema.set(index, field.with_type(_plain_type(field.type)))
    return schema


def _plain_type(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind])
    return kind


def unreadable(path: Path, error: Exception) -> TraceError:
    """What Arrow says of a file that it cannot read, as our own error."""
    seen = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return TraceError(expected="a whole Parquet file", seen=seen, where=str(path))


def read_group(
    path: Path,
    table: Table,
    group: int,
    *,
    columns: Sequence[str] | None = None,
    dictionary: Sequence[str] = (),
) -> pa.Table:
    """One row group of a file. columns: default all of the schema, in its order; dictionary: string columns
    that stay dictionaries, by their paths in the schema. Columns that must not hold a null, but may in this
    file, are read too (soundness.py). Raises TraceError, also for one that would take too much memory."""
    with open_part(path, table, dictionary=STRINGS[table]) as file:
        if not 0 <= group < file.metadata.num_row_groups:
            raise TraceError(
                expected=f"a row group {group}",
                seen=f"{file.metadata.num_row_groups} row groups",
                where=str(path),
            )
        names = list(columns or SCHEMAS[table].names)
        names += [name for name in _doubtful(file.schema_arrow, table) if name not in names]
        where = f"{path}, row group {group}"
        try:
            check_size(file.metadata.row_group(group), names, where=where)
            found = file.read_row_group(group, columns=names).select(names)
            check_text(found, where=where)
        except DAMAGED as error:
            raise unreadable(path, error) from None
        return _plain_columns(found, table, dictionary)


def _doubtful(schema: pa.Schema, table: Table) -> list[str]:
    """Columns that the file allows to hold nulls, and the table does not. Our own files have none."""
    return [name for name in required(table) if schema.field(name).nullable]


def check_size(group: Any, names: Sequence[str], *, where: str) -> None:
    """Refuse a row group, by its footer, that would take too much memory as columns. Raises TraceError."""
    group_columns = [group.column(index) for index in range(group.num_columns)]
    read = [column for column in group_columns if column.path_in_schema.split(".")[0] in names]
    for what, count, most in (
        ("values", sum(column.num_values for column in read), CELLS_MAX),
        ("bytes of columns", sum(column.total_uncompressed_size for column in read), PAGE_BYTES_MAX),
    ):
        if count > most:
            raise TraceError(
                expected=f"at most {most:,} {what} in a row group",
                seen=f"{count:,} in {group.num_rows:,} rows",
                where=where,
                hint="`fencepost mine` judges a history of more than a million operations, by columns",
            )


def check_text(table: pa.Table, *, where: str) -> None:
    """Refuse columns with more text than TEXT_BYTES_MAX after dictionaries are expanded, and text that is not
    UTF-8. table: the columns; where: for the error. Raises TraceError, ArrowInvalid."""
    size = sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks)
    if size > TEXT_BYTES_MAX:
        raise TraceError(
            expected=f"at most {TEXT_BYTES_MAX:,} bytes of text in a row group", seen=f"{size:,}", where=where
        )


def _text_bytes(array: Any) -> int:
    """Bytes of an array's strings as if no two rows shared one."""
    if pa.types.is_dictionary(array.type):
        array.dictionary.validate(full=True)  # Arrow decodes what is not UTF-8, and Python does not
        lengths = pc.binary_length(array.dictionary).fill_null(0).to_numpy(zero_copy_only=False)
        longest = int(lengths.max(initial=0))
        if longest * len(array) <= TEXT_BYTES_MAX >> 8:
            return longest * len(array)
        return int(lengths.astype(np.int64)[array.indices.drop_null().to_numpy()].sum())
    if pa.types.is_list(array.type) and not pa.types.is_integer(array.type.value_type):
        return _text_bytes(array.flatten())
    if pa.types.is_struct(array.type):
        return sum(map(_text_bytes, array.flatten()))
    return 0


def _plain_columns(table: pa.Table, kind: Table, dictionary: Sequence[str]) -> pa.Table:
    """The table with strings in place of dictionaries, but for the columns of which a path is named."""
    kept = {path.split(".")[0] for path in dictionary}
    for index, field in enumerate(table.schema):
        plain = SCHEMAS[kind].field(field.name)
        if field.type != plain.type and field.name not in kept:
            table = table.set_column(index, plain, table.column(index).cast(plain.type))
    return table


def read_tables(part: TablePart, group: int) -> Tables:
    """The whole traces of one row group, all columns, strings as dictionaries. Raises TraceError."""
    found: dict[str, Any] = {
        table: read_group(part.of(table), table, group, dictionary=STRINGS[table]) for table in TABLES
    }
    return Tables(**found)


def groups_of(part: TablePart) -> tuple[RowGroup, ...]:
    """The row groups of a part. Raises TraceError if a file is unreadable, the three do not fit
    together, or a row group is gone."""
    try:
        return _groups_of(part)
    except DAMAGED as error:
        raise unreadable(part.traces, error) from None


def _groups_of(part: TablePart) -> tuple[RowGroup, ...]:
    metadata = {}
    for table in TABLES:
        with open_part(part.of(table), table) as file:
            metadata[table] = file.metadata
    counts = {table: found.num_row_groups for table, found in metadata.items()}
    if len(set(counts.values())) != 1:
        raise TraceError(
            expected="as many row groups in all three tables",
            seen=", ".join(f"{count} in {table}" for table, count in counts.items()),
            where=str(part.traces),
        )
    found_rows = {
        table: [found.row_group(index).num_rows for index in range(counts[table])]
        for table, found in metadata.items()
    }
    differing = differences(metadata["traces"].metadata, found_rows, where=str(part.traces))
    return tuple(
        RowGroup(
            part=part,
            index=index,
            operations=found_rows["operations"][index],
            size_bytes=sum(_group_bytes(found.row_group(index)) for found in metadata.values()),
            **_trace_range(metadata["traces"].row_group(index)),
            traces=found_rows["traces"][index],
            events=found_rows["events"][index],
            differs=differing[index],
            sealed_with_checksums=ROWS_KEY.encode() in (metadata["traces"].metadata or {}),
        )
        for index in range(counts["traces"])
    )


def _trace_range(group: Any) -> dict[str, int]:
    group_columns = [group.column(column) for column in range(group.num_columns)]
    (ids,) = (column.statistics for column in group_columns if column.path_in_schema == "trace_id")
    return {"first_trace": ids.min, "last_trace": ids.max} if ids is not None and ids.has_min_max else {}


def _group_bytes(group: Any) -> int:
    return sum(group.column(column).total_compressed_size for column in range(group.num_columns))
