"""What was read of two topics, in one file of SQLite: as much as there is fits on a disk, not into memory.

Owns the tables and what survives a kill: each batch of rows and the offset after it are one transaction. Must
not know how records are read or compared.

A record is five numbers of 64 bits, digests of its parts: one altered record in 10^19 looks like its
original.
"""

import hashlib
import sqlite3
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

from attrs import define, frozen

from fencepost.impl.log.batch.record_batch import Record
from fencepost.traces.errors import EnvironmentError_

CACHE_KIB = 16 * 1024
"""Of memory that SQLite may keep of the file, and again for each of two or three sorts at a time, whatever
the size of the file. 0.4 and 1.2 million records of each side were compared in less than 90 MiB; with four
times as much, two million took 220."""
DIGEST_BYTES = 8

SCHEMA = """
create table if not exists note (name text primary key, value);
create table if not exists extent (
    side integer, partition integer, start integer, end integer, next integer, latest integer,
    overtaken integer not null default 0, append_time integer not null default 0,
    grew integer not null default 0, matched integer not null default 0, primary key (side, partition));
create table if not exists record (
    side integer, partition integer, position integer, "offset" integer, content integer, stamped integer,
    key integer, value integer, headers integer, timestamp integer);
create table if not exists pair (
    partition integer, source integer, target integer, source_offset integer, target_offset integer,
    identity integer, key integer, sure integer not null default 1, moved integer not null default 0,
    by_key integer not null default 0, primary key (partition, source)) without rowid;
create table if not exists left_over (
    side integer, partition integer, position integer, "offset" integer, identity integer, key integer,
    value integer, headers integer, timestamp integer, repeated integer, gap integer,
    kind text not null default '', twin text not null default '',
    primary key (side, partition, position)) without rowid;
"""
"""extent: up to which offset (`end`) a partition is compared, and from which on it is still to be read
(`next`). record: position counts the records that a reader of committed ones gets. pair: a record of the
source and the one of the target that is its copy, by their positions. left_over: what has no copy; gap is
the position, at the source, of the last pair in order before it."""


class Side(IntEnum):
    """Of the comparison."""

    SOURCE = 0
    TARGET = 1

    @property
    def word(self) -> str:
        """For people."""
        return self.name.lower()


@frozen(kw_only=True)
class Extent:
    """One partition of one side."""

    side: Side
    partition: int
    # The log start when the comparison began.
    start: int
    # Up to here, not included: the last stable offset when the comparison began.
    end: int
    # The next offset to read.
    next: int
    # The high watermark when the comparison began.
    latest: int
    # Whether the log start moved while the partition was read.
    overtaken: bool = False
    # Whether the broker sets the records' times.
    append_time: bool = False
    # Whether the end moved on until the comparison ended.
    grew: bool = False
    # Whether the partition is compared already.
    matched: bool = False


def digest(*parts: bytes | None) -> int:
    """A signed number of 64 bits. None and empty parts differ."""
    whole = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        whole.update(b"-" if part is None else b"%d:" % len(part) + part)
    return int.from_bytes(whole.digest(), "big", signed=True)


def row_of(record: Record) -> tuple[int | None, ...]:
    """offset, content, stamped, key, value, headers, timestamp of a record. Stamped is the content with the
    timestamp; key, value and headers are None where there are none."""
    flat = [part for header in record.headers for part in (header.key.encode(), header.value)]
    content = digest(record.key, record.value, *flat)
    return (
        record.offset,
        content,
        digest(b"%d" % content, b"%d" % record.timestamp_ms),
        None if record.key is None else digest(record.key),
        None if record.value is None else digest(record.value),
        digest(*flat) if flat else None,
        record.timestamp_ms,
    )


@define(eq=False)
class TopicStore:
    """The file."""

    database: sqlite3.Connection

    @classmethod
    def open(cls, path: Path | None) -> Self:
        """Open or make one.

        Args:
            path: the file; None: a temporary one, gone at the end.

        Raises:
            EnvironmentError_: it cannot be written, or is not such a file.
        """
        try:
            database = sqlite3.connect("" if path is None else path, isolation_level=None)
            database.execute(f"pragma cache_size = -{CACHE_KIB}")
            database.execute("pragma temp_store = 1")  # sorts go to the disk
            database.execute("pragma journal_mode = wal")
            database.execute("pragma synchronous = normal")
            database.executescript(SCHEMA)
        except sqlite3.DatabaseError as error:
            raise EnvironmentError_(
                expected="a file of an earlier call, or a place for a new one",
                seen=str(error),
                where=str(path),
                hint="name another folder with --out",
            ) from None
        return cls(database)

    def close(self) -> None:
        """No more is written."""
        self.database.close()

    def note(self, name: str, value: Any = None) -> Any:
        """A value of the whole comparison; value: is written, if there is one."""
        if value is not None:
            self.database.execute("replace into note values (?, ?)", (name, value))
        row = self.database.execute("select value from note where name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def begin(self, extents: Iterable[Extent]) -> None:
        """What is to be read. extents: of both sides, all at once."""
        rows = [(int(e.side), e.partition, e.start, e.end, e.next, e.latest) for e in extents]
        self.database.execute("begin")
        self.database.executemany(
            "insert into extent (side, partition, start, end, next, latest) values (?, ?, ?, ?, ?, ?)", rows
        )
        self.database.execute("commit")

    def extents(self, side: Side) -> tuple[Extent, ...]:
        """Of one side, by partition."""
        rows = self.database.execute("select * from extent where side = ? order by partition", (int(side),))
        return tuple(
            Extent(
                side=side,
                partition=row[1],
                start=row[2],
                end=row[3],
                next=row[4],
                latest=row[5],
                overtaken=bool(row[6]),
                append_time=bool(row[7]),
                grew=bool(row[8]),
                matched=bool(row[9]),
            )
            for row in rows
        )

    def count(self, side: Side) -> int:
        """How many records were read."""
        query = "select count(*) from record where side = ?"
        return int(self.database.execute(query, (int(side),)).fetchone()[0])

    def add(
        self, extent: Extent, position: int, rows: list[tuple[int | None, ...]], after: int, append_time: bool
    ) -> None:
        """Records of one answer, and where to read on, in one transaction.

        Args:
            extent: of which partition.
            position: of the first of them.
            rows: of `row_of`.
            after: the next offset to read.
            append_time: whether the broker sets their times.
        """
        place = int(extent.side), extent.partition
        self.database.execute("begin")
        self.database.executemany(
            "insert into record values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((*place, position + number, *row) for number, row in enumerate(rows)),
        )
        self.database.execute(
            "update extent set next = ?, append_time = max(append_time, ?) where side = ? and partition = ?",
            (after, append_time, *place),
        )
        self.database.execute("commit")

    def next_position(self, extent: Extent) -> int:
        """Of the next record of a partition."""
        query = "select coalesce(max(position), -1) + 1 from record where side = ? and partition = ?"
        return int(self.database.execute(query, (int(extent.side), extent.partition)).fetchone()[0])

    def mark(self, extent: Extent, column: str, value: int = 1) -> None:
        """Write a column of a partition's extent: overtaken, grew, matched or next."""
        assert column in ("overtaken", "grew", "matched", "next"), column
        place = int(extent.side), extent.partition
        query = f"update extent set {column} = ? where side = ? and partition = ?"
        self.database.execute(query, (value, *place))
