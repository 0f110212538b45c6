"""What the footer of a part's file says of the file itself: a checksum of the footer, and how many rows were
written.

Owns the two keys and their checks. Must not know columns, rows, or where files are.

Pages have checksums in Parquet, a footer has none. One wrong bit in it may move a page, or end the process
that decodes it. So the writer puts a CRC-32 of the footer into its key-value metadata, taken with zeros in
place of itself, and a reader compares it before anything decodes the footer. Files without it are read all
the same: they were written before, or by other hands.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import msgspec

from fencepost.traces.decoding import from_json
from fencepost.traces.errors import TraceError
from fencepost.traces.schema import TABLES, Table

CHECKSUM_KEY = "fencepost.footer_crc32"
BLANK = "0" * 8
"""The checksum before it is known: 32 bits, hexadecimal."""
ROWS_KEY = "fencepost.rows_of_row_groups"
"""In the file of `traces`: how many rows each row group of the part was written with, by table. A file that
was written again with fewer rows, or that belongs to another part, differs."""
_STATED = re.compile(CHECKSUM_KEY.encode().replace(b".", rb"\.") + rb"\x18\x08([0-9a-f]{8})")
"""The key and its value, as Thrift's compact protocol writes a string of eight bytes after another."""
_TAIL_BYTES = 8
"""After the footer: its length, and four letters."""
_END = b"PAR1"


def with_checksum(ending: bytes) -> bytes:
    """The end of a file with the checksum of its footer in place. ending: the footer, with BLANK under its
    key, and what follows it."""
    found = _STATED.search(ending)
    assert found is not None, "a footer without the key of its checksum"
    return ending[: found.start(1)] + _checksum(ending[:-_TAIL_BYTES]) + ending[found.end(1) :]


def _checksum(footer: bytes) -> bytes:
    """Of the footer as it is with BLANK."""
    return b"%08x" % crc32(footer)


def check_footer(path: Path) -> None:
    """Compare the footer of a file with its checksum, where it has one.

    Args:
        path: the file.

    Raises:
        OSError: if it cannot be read.
        TraceError: if they differ.
    """
    size = path.stat().st_size
    if size < _TAIL_BYTES:
        return  # whoever decodes it says that it is no Parquet file
    with path.open("rb") as file:
        file.seek(size - _TAIL_BYTES)
        length, end = int.from_bytes(file.read(4), "little"), file.read(4)
        if end != _END or length > size - _TAIL_BYTES:
            return
        file.seek(size - _TAIL_BYTES - length)
        footer = file.read(length)
    found = _STATED.search(footer)
    if found is None:
        return
    blank = footer[: found.start(1)] + BLANK.encode() + footer[found.end(1) :]
    if _checksum(blank) != found[1]:
        raise TraceError(
            expected=f"a footer with the checksum {found[1].decode()}",
            seen=_checksum(blank).decode(),
            where=str(path),
            hint="the file is damaged; restore it from a copy",
        )


def differences(
    metadata: Mapping[bytes, bytes] | None, found: Mapping[Table, Sequence[int]], *, where: str
) -> list[str]:
    """How each row group of a part differs from what was written.

    Args:
        metadata: key-value metadata of the file of `traces`.
        found: rows of each row group, by table; as many in each.
        where: names the part in errors.

    Returns:
        one text for each row group, "" where nothing differs or nothing is said.

    Raises:
        TraceError: if there are not as many row groups as were written.
    """
    count = len(found["traces"])
    text = (metadata or {}).get(ROWS_KEY.encode())
    if text is None:
        return [""] * count
    try:
        written: dict[Table, list[int]] = from_json(text, dict[Table, list[int]])
        groups = {len(written[table]) for table in TABLES}
    except (msgspec.MsgspecError, KeyError):
        raise TraceError(expected="a whole footer", seen=f"{ROWS_KEY} damaged", where=where) from None
    if groups != {count}:
        raise TraceError(
            expected=f"the {max(groups)} row groups that were written", seen=str(count), where=where
        )
    return [
        ", ".join(
            f"{found[table][index]:,} rows of {table} instead of {written[table][index]:,}"
            for table in TABLES
            if found[table][index] != written[table][index]
        )
        for index in range(count)
    ]
