"""Operations and events as JSON lines, made without objects: a batch of 1,000 records is one call.

Owns the form of a line. A test holds it against the reader of JSON lines.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import msgspec
from attrs import define, field

MOST_IN_ROW = 100_000
"""Records of one row, 2 MB of text: its readers take lines of 16 MiB. A batch, or what a fetch brings of a
partition, becomes several rows beyond that."""
_encode = msgspec.json.Encoder().encode


@define(eq=False)
class Lines:
    """emit: takes each line, with its line feed."""

    emit: Callable[[bytes], None]
    # Rows of operations so far.
    operations: int = 0
    events: int = 0
    _numbers: "count[int]" = field(factory=lambda: count(1))

    def number(self) -> int:
        """The next op id."""
        return next(self._numbers)

    def operation(self, values: dict[str, Any]) -> None:
        """A row of an operation: fields that have their default are not in `values`."""
        self.operations += 1
        self.emit(_encode({"type": "operation", **values}) + b"\n")

    def event(
        self, time: int, name: str, detail: dict[str, Any] | None = None, text: str = "", **values: Any
    ) -> None:
        """Write the row of an event.

        Args:
            time: nanoseconds.
            name: of the event.
            detail: further values.
            text: the detail, if it is no JSON.
            values: columns of the row.
        """
        self.events += 1
        row = {"type": "event", "time": time, "name": name, **values}
        if detail is not None:
            text = _encode(detail).decode()
        if text:
            row["detail"] = text
        self.emit(_encode(row) + b"\n")


def rows_of(texts: Iterable[bytes]) -> msgspec.Raw:
    """What a row says in its field `runs` (traces/runs.py); texts: of `run_text`."""
    return msgspec.Raw(b"[" + b",".join(texts) + b"]")


def run_text(topic: str, partition: int, base: int, ids: Sequence[int], leader_epoch: int = -1) -> bytes:
    """Records at neighbouring offsets from `base` as JSON; -1: they have no offsets yet."""
    epoch = b"" if base < 0 or leader_epoch < 0 else b',"leader_epoch":%d' % leader_epoch
    start = b'{"topic":%b,"partition":%d,"offset":%d,"values":' % (_encode(topic), partition, max(base, -1))
    return b"".join((start, _encode(ids), epoch, b"}"))
