"""Rows of an external store as lines of events, `sink`.

Owns where rows come from: CSV, JSON lines, Parquet, or a database and a query. Must not know rules. Columns
are `topic`, `partition`, `offset`, `key` and `value`; any of them may be missing, others are passed over. Of
keys and values the hashes are written, as an emitter writes them.
"""

import csv
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import msgspec

from fencepost.application.event_lines import LARGEST, LARGEST_PARTITION
from fencepost.traces.errors import EnvironmentError_, TraceError

COLUMNS = ("topic", "partition", "offset", "key", "value")
HASH_DIGITS = 16
AT_A_TIME = 10_000
"""Rows that are in memory."""
POSTGRESQL = ("psycopg", "psycopg2", "pg8000.dbapi")
"""Drivers, any of which will do."""


def sink_lines(source: str, query: str | None) -> Iterator[bytes]:
    """The lines of a store.

    Args:
        source: a file `*.csv`, `*.jsonl` or `*.parquet`, or `sqlite:///FILE`, or
            `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`.
        query: of a database: one that answers with the columns by these names.

    Yields:
        lines with their line feeds.

    Raises:
        TraceError: the source cannot be read, or a row has no column of these, or a wrong one.
        EnvironmentError_: the database's driver is not installed.
    """
    process = Path(urlsplit(source).path).name or source
    for number, row in enumerate(_rows(source, query)):
        named = {name: row[name] for name in COLUMNS if row.get(name) not in (None, "")}
        if not named:
            raise TraceError(
                expected=f"a column out of {', '.join(COLUMNS)}",
                seen=", ".join(map(str, row)) or "none",
                where=f"{source}, row {number + 1}",
            )
        for name, most in (("partition", LARGEST_PARTITION), ("offset", LARGEST)):
            if name in named:
                named[name] = _number(named[name], most, f"{source}, row {number + 1}, {name}")
        for name in ("key", "value"):
            if name in named:
                named[name] = _hash(named[name])
        if "topic" in named:
            named["topic"] = str(named["topic"])
        line = {"event": "sink", "process": process, "n": number, **named}
        yield msgspec.json.encode(line) + b"\n"


def _number(value: Any, most: int, where: str) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number <= most:
        raise TraceError(expected=f"an integer from 0 to {most}", seen=repr(value)[:80], where=where)
    return number


def _hash(value: Any) -> str:
    data = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else str(value).encode()
    return hashlib.sha256(data).hexdigest()[:HASH_DIGITS]


def _rows(source: str, query: str | None) -> Iterator[dict[str, Any]]:
    scheme = urlsplit(source).scheme if "://" in source else ""
    if bool(scheme) != bool(query):
        raise TraceError(
            expected="a query with a database, and none with a file",
            seen="a query" if query else "no query",
            where=source,
            hint='SELECT topic, partition, "offset" FROM ... is one' if scheme else "",
        )
    if scheme:
        return _of_database(source, scheme, query or "")
    readers = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}
    reader = readers.get(Path(source).suffix.lower())
    if reader is None:
        raise TraceError(
            expected=f"a file {', '.join(f'*{name}' for name in readers)}, or sqlite:/// or postgresql://",
            seen=source,
            where="the source of a sink",
        )
    return reader(Path(source))


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from csv.DictReader(file, strict=True)
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        _refuse(path, "a CSV file with a header", error)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    try:
        with path.open("rb") as file:
            yield from (decode(line) for line in file if not line.isspace())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        _refuse(path, "JSON lines, an object each", error)


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    from fencepost.traces.parquet.foreign_rows import rows_of_file

    yield from rows_of_file(path, COLUMNS, AT_A_TIME)


def _refuse(path: Path, expected: str, error: Exception) -> NoReturn:
    said = error.strerror if isinstance(error, OSError) else str(error)
    raise TraceError(expected=expected, seen=said or type(error).__name__, where=str(path)) from None


def _of_database(source: str, scheme: str, query: str) -> Iterator[dict[str, Any]]:
    if scheme == "sqlite":
        path = unquote(urlsplit(source).path)[1:]
        if not Path(path).is_file():
            raise TraceError(expected="a database of SQLite", seen="no such file", where=path)
        connection: Any = sqlite3.connect(f"file:{Path(path).resolve().as_posix()}?mode=ro", uri=True)
        errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    elif scheme in ("postgresql", "postgres"):
        connection, errors = _postgresql(source)
    else:
        raise TraceError(
            expected="sqlite:/// or postgresql://", seen=f"{scheme}://", where="the source of a sink",
            hint="any other store: write its rows into a CSV file",
        )  # fmt: skip
    with closing(connection):
        try:
            cursor = connection.cursor()
            cursor.execute(query)
            names = [column[0].lower() for column in cursor.description or ()]
            while found := cursor.fetchmany(AT_A_TIME):
                yield from (dict(zip(names, row, strict=True)) for row in found)
        except errors as error:
            raise TraceError(
                expected=f"a query with columns out of {', '.join(COLUMNS)}",
                seen=str(error).splitlines()[0],
                where=query,
            ) from None


def _postgresql(source: str) -> tuple[Any, tuple[type[Exception], ...]]:
    parts = urlsplit(source)
    for name in POSTGRESQL:
        try:
            driver = import_module(name)
        except ImportError:
            continue
        options = {
            "host": unquote(parts.hostname or ""),  # or the directory of a socket
            "port": parts.port or 5432,
            "user": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            ("database" if name.startswith("pg8000") else "dbname"): unquote(parts.path[1:]),
        }
        try:
            return driver.connect(**{name: value for name, value in options.items() if value}), (
                driver.Error,
            )
        except driver.Error as error:
            raise TraceError(
                expected="a database that can be reached",
                seen=(str(error).splitlines() or ["no answer"])[0],
                where=f"{parts.hostname}:{parts.port or 5432}",
            ) from None
    raise EnvironmentError_(
        expected="a driver of PostgreSQL",
        seen="none",
        where=f"{parts.hostname}",
        hint="pip install 'psycopg[binary]'",
    )


def write_sink(path: Path, lines: Iterable[bytes]) -> int:
    """Write lines into a new file, whole or not at all.

    Args:
        path: of the file.
        lines: with their line feeds.

    Returns:
        how many there are.
    """
    from fencepost.traces.whole_file import whole

    count = 0
    with whole(path) as draft, draft.open("wb") as file:
        for line in lines:
            file.write(line)
            count += 1
    return count
