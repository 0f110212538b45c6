"""Columns of Arrow or of objects as NumPy arrays: integers, strings as codes, lists as slices of flat
children.

Owns reading single columns. Must not know which columns an operations table has or what they mean.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from fencepost.traces.errors import TraceError

Array = npt.NDArray[Any]

arrow: Any = pyarrow.compute

Arrow = Any
"""An Arrow array. The type stubs are too strict for Arrow's compute functions."""

NEVER = int(np.iinfo(np.int64).max)
"""The completion time of an operation that never completed."""

NONE = -1
"""The code for a missing value."""


def slice_starts(lengths: Array) -> Array:
    """The start index of each of consecutive slices, and the end of the last one."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def table_column(table: pa.Table, name: str) -> Arrow:
    """A column as one array.

    Args:
        table: the table or record batch.
        name: the name of the column.

    Returns:
        the Arrow array.

    Raises:
        TraceError: if there is no such column.
    """
    if name not in table.column_names:
        raise TraceError(
            expected=f"a column {name}", seen=", ".join(table.column_names), where="operations table"
        )
    chunks: Arrow = table.column(name)
    return (
        chunks.chunk(0)
        if chunks.num_chunks == 1
        else pa.concat_arrays(chunks.chunks or [pa.array([], chunks.type)])
    )


def struct_field(structs: Arrow, name: str) -> Arrow:
    """A field of an array of structs.

    Args:
        structs: the structs.
        name: the name of the field.

    Returns:
        the Arrow array.

    Raises:
        TraceError: if there is no such field.
    """
    if structs.type.get_field_index(name) < 0:
        raise TraceError(expected=f"a field {name}", seen=str(structs.type), where="operations table")
    return arrow.struct_field(structs, name)


def object_integers(items: Sequence[Any], name: str, null: int = NONE) -> Array:
    """An attribute of each item as 64-bit integers. Fast for columns that are all None, as most columns of a
    history are.

    Args:
        items: the items.
        name: the attribute.
        null: the value for None.

    Returns:
        one integer per item.

    Raises:
        TraceError: for an integer that does not fit.
    """
    values = list(map(attrgetter(name), items))
    missing = values.count(None)
    if missing == len(values):
        return np.full(len(values), null, np.int64)
    try:
        if values.count(values[0]) == len(values):
            return np.full(len(values), values[0], np.int64)
        return np.array([null if one is None else one for one in values] if missing else values, np.int64)
    except OverflowError:
        large = next(one for one in values if one is not None and not -(1 << 63) <= one < 1 << 63)
        raise TraceError(expected="64-bit integers", seen=str(large), where=f"column {name}") from None


def integer_array(array: Arrow, null: int = NONE) -> Array:
    """The column `array` as 64-bit integers, with `null` for nulls."""
    if len(array) and array.null_count == len(array):
        return np.full(len(array), null, np.int64)
    if array.type != pa.int64():
        array = array.cast(pa.int64())
    numbers: Array = (arrow.fill_null(array, null) if array.null_count else array).to_numpy(
        zero_copy_only=False
    )
    return numbers


def list_children(lists: Arrow) -> tuple[Array, Arrow]:
    """The slice starts and the flat structs of a list column. A null list counts as empty."""
    lengths = arrow.fill_null(arrow.list_value_length(lists), 0)
    return slice_starts(lengths.to_numpy(zero_copy_only=False).astype(np.int64)), lists.flatten()


def string_codes(array: Arrow) -> tuple[list[str], Array]:
    """The distinct strings, and the index of each row into them (-1 for null)."""
    encoded = array if pa.types.is_dictionary(array.type) else arrow.dictionary_encode(array)
    return encoded.dictionary.to_pylist(), integer_array(encoded.indices)


def recoded(indices: Array, codes: list[int], kind: type[np.integer[Any]] = np.int64) -> Array:
    """codes[index] for each of `indices`. -1 stays -1: it picks an extra entry at the end."""
    return np.array([*codes, NONE], kind)[indices]


def enum_codes(array: Arrow, members: tuple[Any, ...], what: str, *, other: int | None = None) -> Array:
    """The index of each string into `members`.

    Args:
        array: the strings.
        members: the valid strings.
        what: the name of the column, for the error.
        other: the code of an unknown string; None: there is none.

    Returns:
        one index per string.

    Raises:
        TraceError: for an unknown string.
    """
    names, indices = string_codes(array)
    known = {str(member): code for code, member in enumerate(members)}
    strange = sorted(name for name in names if name not in known)
    if strange and other is None:
        raise TraceError(expected=f"one of {', '.join(known)}", seen=strange[0], where=f"column {what}")
    return recoded(indices, [known.get(name, other or 0) for name in names], np.int8)
