"""The file of a tap: its lines, and what they say of a record.

Owns the writing of lines (docs/reference/events.md). Must not know clients (tapped_clients.py) or rules.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, field

from fencepost.impl.log.batch.varint import encode_varint
from fencepost.proxy.record.values import Values

_encode = msgspec.json.Encoder().encode
VARIABLE = "FENCEPOST_EVENTS"
"""Of the environment: the file, where a program names none."""
HASH_DIGITS = 16
"""Of a key or value: 64 bits, so that among a million of them no two are equal by chance."""


@define(eq=False)
class TapFile:
    """A file of events."""

    # None: where the environment says, as that of a service under test does.
    path: str | Path | None = None
    # The key file of a proxy's record, to compare contents with it, too; None: only among lines.
    key: str | Path | None = None
    # Whether sends carry a header with their id, so that `proxy blame` finds them.
    ids: bool = True
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _descriptor: int = field(default=-1, init=False)
    # Of each process, the number of its next line.
    _lines: dict[str, int] = field(factory=dict, init=False)
    # Which consumer was handed a partition's last record.
    _owners: dict[tuple[str, int], str] = field(factory=dict, init=False)
    # Of each partition, its highest processed offset, and the commit of a transaction that waits for one.
    _done: dict[tuple[str, int], int] = field(factory=dict, init=False)
    _due: dict[tuple[str, int], tuple[str, int]] = field(factory=dict, init=False)
    _values: Values | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        given = self.path or os.environ.get(VARIABLE)
        if given is None:
            raise ValueError(f"expected a path, or the variable {VARIABLE}, saw none")
        path = Path(given)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if self.key is not None:
            self._values = Values(key=Path(self.key).read_bytes())

    def processed(self, message: Any, *, sink: bool = True) -> None:
        """Nothing is left to do for a record.

        Args:
            message: as the client handed it out.
            sink: whether a row of an external store follows from it.
        """
        place = place_of(message)
        process = self.owner(*place[:2])
        if not process:
            raise ValueError(f"expected a record that a tapped consumer handed out, saw {place}")
        self._at("processed", process, *place, sink=None if sink else False)
        done = self._done[place[:2]] = max(place[2], self._done.get(place[:2], -1))
        if self._due.get(place[:2], ("", done + 2))[1] <= done + 1:
            self._settle(place[:2])

    def on_commit(self, name: str) -> Callable[[Any, Any], None]:
        """A callback for confluent_kafka's setting `on_commit`, by which automatic and asynchronous commits
        are known. name: that the consumer gets."""
        return lambda error, partitions: None if error else self.committed(name, partitions)

    def committed(self, process: str, partitions: Iterable[Any]) -> None:
        """A commit has succeeded.

        Args:
            process: the consumer's name.
            partitions: objects with topic, partition and offset; those without a valid offset are left out.
        """
        for one in partitions:
            if one.offset is not None and one.offset >= 0 and not getattr(one, "error", None):
                self._at("committed", process, one.topic, one.partition, one.offset)

    def committed_in_transaction(self, topic: str, partition: int, offset: int) -> None:
        """A transaction has committed an offset. The work of its records is part of it, so that the line
        comes after theirs, which no application can write before it knows of the commit; or when the
        partition's owner has reached its end.

        Args:
            topic, partition, offset: what was committed.
        """
        place = topic, partition
        if owner := self.owner(*place):
            self._due[place] = owner, offset
            if self._done.get(place, -1) >= offset - 1:
                self._settle(place)

    def _settle(self, place: tuple[str, int]) -> None:
        due = self._due.pop(place, None)
        if due is not None:
            self._at("committed", due[0], *place, due[1])

    def taken(self, event: str, process: str, topic: str, partition: int) -> None:
        """A partition was taken from a process. event: `revoked` or `lost`."""
        self._settle((topic, partition))
        self.write(event, process, topic=topic, partition=partition)

    def stopped(self, process: str) -> None:
        """A process has ended in order."""
        for place in [place for place, due in self._due.items() if due[0] == process]:
            self._settle(place)
        self.write("stopped", process)

    def owner(self, topic: str, partition: int) -> str:
        """The consumer that was handed the last record of a partition; "" for none."""
        return self._owners.get((topic, partition), "")

    def received(self, process: str, place: tuple[str, int, int], key: Any, value: Any, headers: Any) -> None:
        """A record was handed out.

        Args:
            process: to this consumer.
            place: topic, partition, offset.
            key, value, headers: of the record.
        """
        self._owners[place[:2]] = process
        self._at("received", process, *place, **self.contents(key, value, headers))

    def _at(self, event: str, process: str, topic: str, partition: int, offset: int, **more: Any) -> None:
        self.write(event, process, topic=topic, partition=partition, offset=offset, **more)

    def write(self, event: str, process: str, **values: Any) -> None:
        """Write a line; the operating system has it when this returns.

        Args:
            event: its kind.
            process: the producer or consumer.
            values: its other fields; None is left out.
        """
        given = {name: value for name, value in values.items() if value is not None}
        with self._lock:
            number = self._lines.get(process, 0)
            self._lines[process] = number + 1
            row = {"event": event, "process": process, "n": number, **given}
            os.write(self._descriptor, _encode(row) + b"\n")

    def contents(self, key: Any, value: Any, headers: Any) -> dict[str, Any]:
        """What a line says of a record. key, value, headers: of the record."""
        return {"key": _hash(key), "value": _hash(value), "content": self.content(key, value, headers)}

    def content(self, key: Any, value: Any, headers: Iterable[tuple[str, Any]] | None) -> int | None:
        """The id of a record's contents in a proxy's record: key, value and headers. None if it cannot be
        computed, or is not compared."""
        parts = (key, value, *(each for _, each in headers or ()))
        if self._values is None or not all(part is None or isinstance(part, bytes | str) for part in parts):
            return None
        rows = list(headers or ())
        encoded = encode_varint(len(rows)) + b"".join(_part(name) + _part(each) for name, each in rows)
        return self._values.content(_bytes(key), _bytes(value), encoded)

    def close(self) -> None:
        """Nothing more is written."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1


def place_of(message: Any) -> tuple[str, int, int]:
    """Topic, partition and offset of a record of any of the three clients."""
    parts = (getattr(message, name) for name in ("topic", "partition", "offset"))
    topic, partition, offset = (part() if callable(part) else part for part in parts)
    return topic, partition, offset


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _hash(value: Any) -> str | None:
    """What a line says of a key or value; None for an object, which a serializer turned into bytes
    elsewhere."""
    data = _bytes(value)
    return hashlib.sha256(data).hexdigest()[:HASH_DIGITS] if isinstance(data, bytes) else None


def _part(value: Any) -> bytes:
    data = _bytes(value)
    return b"\x01" if data is None else encode_varint(len(data)) + data
