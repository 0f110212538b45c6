"""Operations and events as JSON lines, made without objects: a batch of 1,000 records is one call.

Owns the form of a line. A test holds it against the reader of JSON lines.
"""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import msgspec
import numpy as np
from attrs import define, field

from fencepost.proxy.record.kernels import KERNELS, TEXT_WORTH_IT, Ids

_encode = msgspec.json.Encoder().encode


@define(eq=False)
class Lines:
    """emit: takes each line, with its line feed."""

    emit: Callable[[bytes], None]
    operations: int = 0
    """Rows of operations so far."""
    events: int = 0
    _numbers: "count[int]" = field(factory=lambda: count(1))

    def number(self) -> int:
        """The next op id."""
        return next(self._numbers)

    def operation(self, values: dict[str, Any]) -> None:
        """A row of an operation: fields that have their default are not in `values`."""
        self.operations += 1
        self.emit(_encode({"type": "operation", **values}) + b"\n")

    def event(self, time: int, name: str, detail: dict[str, Any] | None = None, **values: Any) -> None:
        """A row of an event."""
        self.events += 1
        row = {"type": "event", "time": time, "name": name, **values}
        if detail is not None:
            row["detail"] = _encode(detail).decode()
        self.emit(_encode(row) + b"\n")


def rows_of(texts: Iterable[bytes]) -> msgspec.Raw:
    """What a row says in its field `records`; texts: of `records_text`."""
    return msgspec.Raw(b"[" + b",".join(texts) + b"]")


def records_text(topic: str, partition: int, base: int, ids: Ids, leader_epoch: int = -1) -> bytes:
    """Records at neighbouring offsets from `base` as JSON with commas between them; -1: they have no offsets
    yet."""
    if not isinstance(ids, np.ndarray) or len(ids) < TEXT_WORTH_IT:
        plain = ids.tolist() if isinstance(ids, np.ndarray) else ids
        return _encode(records(topic, partition, base, plain, leader_epoch))[1:-1]
    before = b'{"topic":%b,"partition":%d,"offset":' % (_encode(topic), partition)
    after = b"}" if base < 0 or leader_epoch < 0 else b',"leader_epoch":%d}' % leader_epoch
    return KERNELS.text(ids, max(base, -1), before, b',"value":', after)


def records(
    topic: str, partition: int, base: int, ids: Iterable[int], leader_epoch: int = -1
) -> list[dict[str, Any]]:
    """The records of a row at neighbouring offsets from `base`; -1: they have none yet."""
    if base < 0:
        return [{"topic": topic, "partition": partition, "offset": -1, "value": value} for value in ids]
    epoch = {} if leader_epoch < 0 else {"leader_epoch": leader_epoch}
    return [
        {"topic": topic, "partition": partition, "offset": offset, "value": value, **epoch}
        for offset, value in enumerate(ids, base)
    ]
