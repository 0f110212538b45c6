"""The records of a check, and how they are compared with a log.

Owns what is compared: key, value, headers, time and order. Must not know drivers' processes or clusters.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.torture.driver_process import Command
from fencepost.torture.protocol import decoded
from fencepost.torture.truth import Entry

PARTITIONS = 3
"""Partitions of each topic of a check."""
Wanted = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Key, value and headers of a record."""


class WrongError(Exception):
    """A check that failed, with what was expected and seen."""


class LackingError(Exception):
    """The library itself refuses what the check is about: it has no such ability, and breaks nothing."""


FIRST_MS = 1_700_000_000_000
"""Timestamp of the first record, milliseconds since 1970."""


def records(count: int, *, nulls: bool, padding: int = 0) -> list[Wanted]:
    """Records with every shape: null and empty keys and values, empty headers, several headers of one name,
    bytes that are no text. nulls: only such with null values of headers. padding: equal bytes at the end of
    each value that is neither null nor empty."""
    shapes: list[Wanted] = [
        (b"key", b"value", (("name", b"one"), ("name", b"two"))),
        (None, b"without a key", ()),
        (b"tombstone", None, (("empty", b""),)),
        (b"", b"", ()),
        (b"\xff\xfe\x00", bytes(range(256)), (("bytes", b"\x00\xff"),)),
    ]
    if nulls:
        shapes = [(b"key", b"value", (("null", None),)), (b"key", b"value", (("a", b"b"), ("null", None)))]
    made = []
    for number in range(count):
        key, value, headers = shapes[number // PARTITIONS % len(shapes)]
        made.append((key, value if not value else value + b" %d" % number + b"." * padding, headers))
    return made


def compare(log: Mapping[int, Sequence[Entry]], commands: Sequence[Command], *, acknowledged: bool) -> None:
    """Hold a log against what was appended to it. Raises WrongError."""
    for partition in range(PARTITIONS):
        sent = [command for command in commands if command.fields["partition"] == partition]
        held: Sequence[Entry] = log.get(partition, ())
        if len(held) != len(sent):
            raise WrongError(
                f"expected {len(sent)} records in partition {partition}, saw {len(held)} in the log"
            )
        if acknowledged:  # where each went was said; the order of sends is judged by torture
            sent.sort(key=lambda command: int((command.answer or {}).get("offset", -1)))
        else:
            sent.sort(key=lambda command: int(command.fields["timestamp_ms"]))
            held = sorted(held, key=lambda entry: entry.timestamp_ms)
        for command, entry in zip(sent, held, strict=True):
            headers = tuple((name, decoded(value)) for name, value in command.fields["headers"])
            for what, expected, seen in (
                ("key", decoded(command.fields["key"]), entry.key),
                ("value", decoded(command.fields["value"]), entry.value),
                ("headers", headers, entry.headers),
                ("time", command.fields["timestamp_ms"], entry.timestamp_ms),
            ):
                if expected != seen:
                    raise WrongError(
                        f"{what} at {partition}/{entry.offset}: expected {expected!r:.60}, saw {seen!r:.60}"
                    )
            offset = (command.answer or {}).get("offset")
            if acknowledged and offset != entry.offset:
                raise WrongError(
                    f"acknowledged at offset {offset}, in the log of {partition} at {entry.offset}"
                )


def compare_read(
    log: Mapping[int, Sequence[Entry]],
    seen: Mapping[tuple[int, int], Mapping[str, Any]],
    *,
    exact: bool = False,
) -> None:
    """Compare the delivered records with the log. exact: an empty key, value or header differs from a null
    one. Raises WrongError."""

    def same(one: Any, other: Any) -> bool:
        return bool(one == other) if exact else (one or None) == (other or None)

    for partition, entries in log.items():
        for entry in entries:
            record = seen.get((partition, entry.offset))
            if record is None:
                raise WrongError(f"the record at {partition}/{entry.offset} was not delivered")
            headers = tuple((name, decoded(value)) for name, value in record["headers"])
            names = len(headers) == len(entry.headers) and all(
                one[0] == other[0] and same(one[1], other[1])
                for one, other in zip(headers, entry.headers, strict=True)
            )
            if names:
                headers = entry.headers
            for what, expected, read in (
                ("key", entry.key, decoded(record["key"])),
                ("value", entry.value, decoded(record["value"])),
                ("headers", entry.headers, headers),
                ("time", entry.timestamp_ms, record["timestamp_ms"]),
            ):
                if not same(expected, read):
                    raise WrongError(
                        f"{what} at {partition}/{entry.offset}: expected {expected!r:.60}, saw {read!r:.60}"
                    )
