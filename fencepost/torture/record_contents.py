"""The contents of a run's records, and how a record is recognised.

Owns the shapes of keys, values and headers. Must not know who sends or judges. A record is identified by its
header `id`, because its key and its value may be null, empty or large.

A null and an empty value are compared as equal here, because several libraries do not distinguish them;
`fencepost torture drivers check` says which (the column "null is not empty").
"""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from fencepost.torture.protocol import decoded, encoded
from fencepost.torture.truth import Entry

ID = "id"
"""Name of the header that a record is known by."""
LARGE_BYTES = 40_000
"""Size of a large value. Several fill a request, and a burst of them stays below a driver's bounds."""
MOST_POLLED_BYTES = 400_000
"""Most bytes of one poll: below the 500,000 at which a driver would have to hold back records."""
SHAPES: Mapping[str, str] = {
    "null value": "a tombstone",
    "empty value": "a value of no bytes",
    "large value": f"a value of {LARGE_BYTES:,} bytes",
    "null key": "no key",
    "empty key": "a key of no bytes",
    "headers": "more headers: an empty one and one that is no text",
}
"""Records that are not plain."""


@frozen(kw_only=True)
class Sent:
    """A record as the application sends it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]

    def fields(self) -> dict[str, Any]:
        """As `append` has them."""
        return {
            "key": encoded(self.key),
            "value": encoded(self.value),
            "headers": [[name, encoded(value)] for name, value in self.headers],
        }


def record(identity: str, shape: str, partition: int, *, alone: bool = False) -> Sent:
    """The record of this name.

    Args:
        identity: its name.
        shape: one of SHAPES, or plain.
        partition: it is sent to this one, whose records share a key.
        alone: whether it has a key of its own instead, unless its shape says which.

    Returns:
        what the application sends.
    """
    name = identity.encode()
    value: bytes | None = name
    key: bytes | None = name if alone else b"%d" % partition
    headers = [(ID, name)]
    match shape:
        case "null value":
            value = None
        case "empty value":
            value = b""
        case "large value":
            value = (name + b" ") * (LARGE_BYTES // (len(name) + 1))
        case "null key":
            key = None
        case "empty key":
            key = b""
        case "headers":
            headers += [("empty", b""), ("bytes", b"\xff\x00\xfe")]
    return Sent(key=key, value=value, headers=tuple(headers))


def most_records(shapes: Iterable[str]) -> int:
    """Most records of one poll of records of these shapes."""
    return MOST_POLLED_BYTES // (LARGE_BYTES + 1_000) if "large value" in shapes else 500


def identity(headers: Iterable[Iterable[Any]]) -> bytes:
    """Which record this is; empty if its header is not there. headers: of a command or a delivery."""
    return next((decoded(value) or b"" for name, value in headers if name == ID), b"")


def identity_of(entry: Entry) -> bytes:
    """Which record of the log this is; empty if its header is not there."""
    return next((value or b"" for name, value in entry.headers if name == ID), b"")


def differs(entry: Entry, fields: Mapping[str, Any]) -> str:
    """How a record of the log differs from one in `fields` (of an append or of a delivery); empty: it does
    not."""
    headers = tuple(sorted((name, decoded(value) or b"") for name, value in fields.get("headers") or ()))
    for what, seen, wanted in (
        ("key", entry.key or b"", decoded(fields.get("key")) or b""),
        ("value", entry.value or b"", decoded(fields.get("value")) or b""),
        ("headers", tuple(sorted((name, value or b"") for name, value in entry.headers)), headers),
    ):
        if seen != wanted:
            return f"{what} {seen!r:.80} in the log, {wanted!r:.80} on the application's side"
    return ""


def place_of(fields: Mapping[str, Any]) -> str:
    """The partition of a command or a delivery, as `t-0`."""
    return f"{fields['topic']}-{fields['partition']}"
