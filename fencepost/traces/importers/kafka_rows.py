"""One entry of Jepsen's Kafka workload as rows of ours: partitions, micro-operations, assignments,
rebalances.

Owns: what keys, sends, polls and their answers mean. Must not know: how entries are paired, files.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from attrs import define, field

from fencepost.traces.errors import TraceError
from fencepost.traces.importers.entry_places import is_integer
from fencepost.traces.operations import ACKS_ALL, ACKS_NONE, Function, Operation, Outcome, Position, Record

TOPIC = "jepsen"
SEEK = "seek_to_beginning"
"""The argument of an assign that starts over."""
_BIGGEST = 2**63 - 1


@define(kw_only=True)
class Asked:
    """One invocation and, later, its completion."""

    # Line of the invocation.
    line: int
    process: int
    function: str
    # The value of the invocation, or of the completion if that says more.
    value: Any
    # Whether an assignment also seeks the beginning.
    seek: bool
    # (position, time).
    invoke: tuple[int, int]
    completion: tuple[int, int] | None = None
    outcome: Outcome = Outcome.UNKNOWN
    # Value of the completion.
    answer: Any = None
    error: Any = None
    # Its rebalance-log.
    rebalances: list[Any] = field(factory=list)


@define
class Expansion:
    """One entry of the history as rows of ours."""

    asked: Asked
    # The file's name.
    where: str
    # Whether the rows bear times or positions.
    timed: bool

    def refuse(self, expected: str, seen: str) -> TraceError:
        """The error for this entry. expected, seen: for the message."""
        return TraceError(expected=expected, seen=seen, where=f"{self.where}:{self.asked.line}")

    def rows(self) -> Iterator[Operation]:
        """The rows; op ids are given later."""
        asked = self.asked
        if asked.function == "crash":
            yield self.row(Function.CRASH)
        elif asked.function in ("assign", "subscribe"):
            positions = self.positions(asked.value)
            yield self.row(
                Function(asked.function), positions=positions, argument=SEEK if asked.seek else None
            )
        else:
            yield from self.transaction()

    def rebalances(self) -> Iterator[Operation]:
        """The changes of assignment during the operation."""
        for event in self.asked.rebalances:
            yield self.row(Function.JOIN, Outcome.OK, positions=self.positions(event.get("keys") or []))

    def row(self, function: Function, outcome: Outcome | None = None, **columns: Any) -> Operation:
        """A row with the times of the entry. function: of the row; outcome: None for the entry's; columns:
        others of the row."""
        asked, which = self.asked, int(self.timed)
        outcome = asked.outcome if outcome is None else outcome
        error = None if outcome is Outcome.OK else asked.error
        return Operation(
            op_id=0,
            process=asked.process,
            function=function,
            invoke_time=asked.invoke[which],
            completion_time=None if asked.completion is None else asked.completion[which],
            outcome=outcome,
            error=error if error is None or isinstance(error, str) else msgspec.json.encode(error).decode(),
            **columns,
        )

    def positions(self, keys: Any) -> tuple[Position, ...]:
        """The partitions that a list of keys means, each once."""
        if not isinstance(keys, list):
            raise self.refuse("a list of keys", repr(keys))
        return tuple(
            Position(topic=topic, partition=partition, offset=-1)
            for topic, partition in dict.fromkeys(self.partition_of(key) for key in keys)
        )

    def partition_of(self, key: Any) -> tuple[str, int]:
        """Topic and partition of a key. Keys of maps are texts, so a text of digits is the integer."""
        if isinstance(key, str) and key.isdecimal() and key.isascii():
            key = int(key)
        if is_integer(key) and key >= 0:
            return TOPIC, key
        if isinstance(key, str) and key:
            return key, 0
        raise self.refuse("an integer from 0 or a name as key", repr(key))

    def transaction(self) -> Iterator[Operation]:
        """A send, a poll or a txn: a row for each micro-operation, below a row for the whole unless that
        would say nothing more."""
        asked = self.asked
        answered = isinstance(asked.answer, list)
        sent, heard = asked.value, asked.answer if answered else asked.value
        if not isinstance(sent, list) or not isinstance(heard, list) or len(heard) != len(sent):
            raise self.refuse("as many micro-operations in the completion as in the invocation", repr(heard))
        parts = [self.part(was, now) for was, now in zip(sent, heard, strict=True)]
        told_though_failed = asked.outcome is not Outcome.OK and any(
            part.outcome is Outcome.OK for part in parts
        )
        if asked.function == "txn" or len(parts) != 1 or told_though_failed:
            yield self.row(Function.TXN)
        yield from self.rebalances()
        yield from parts

    def part(self, sent: Any, heard: Any) -> Operation:
        """The row of one micro-operation. sent: in the invocation; heard: in the completion."""
        kind = sent[0] if isinstance(sent, list) and sent else None
        if not isinstance(heard, list) or not heard or heard[0] != kind or kind not in ("send", "poll"):
            raise self.refuse("[:send KEY VALUE] or [:poll] as micro-operation", repr(heard))
        if self.asked.function not in ("txn", kind):
            raise self.refuse(f"only micro-operations {self.asked.function}", repr(heard))
        return self.send(sent, heard) if kind == "send" else self.poll(heard)

    def send(self, sent: list[Any], heard: list[Any]) -> Operation:
        """[:send KEY VALUE], answered by [:send KEY [OFFSET VALUE]]. sent, heard: as of `part`."""
        if len(sent) != 3 or len(heard) != 3 or sent[1] != heard[1]:
            raise self.refuse("[:send KEY VALUE] and its answer", repr(heard))
        value, answer = self.integer(sent[2], "value"), heard[2]
        offset: int | None = None
        if isinstance(answer, list):
            if len(answer) != 2 or answer[1] != value:
                raise self.refuse(f"[OFFSET {value}] as answer of the send", repr(answer))
            offset = None if answer[0] is None else self.offset(answer[0])
        elif answer != value:
            raise self.refuse(f"the value {value} that was sent", repr(answer))
        topic, partition = self.partition_of(sent[1])
        nowhere = offset is None and self.asked.outcome is Outcome.OK
        record = Record(
            topic=topic, partition=partition, offset=-1 if offset is None else offset, value=value
        )
        return self.row(
            Function.APPEND,
            topic=topic,
            partition=partition,
            offset=offset,
            acks=ACKS_NONE if nowhere else ACKS_ALL,
            records=(record,),
        )

    def poll(self, heard: list[Any]) -> Operation:
        """[:poll], answered by [:poll {KEY [[OFFSET VALUE] ...]}]: what it got is true even if the whole
        failed."""
        if len(heard) not in (1, 2) or (len(heard) == 2 and not isinstance(heard[1], dict)):
            raise self.refuse("[:poll {KEY [[OFFSET VALUE] ...]}]", repr(heard))
        got: dict[Any, Any] = heard[1] if len(heard) == 2 else {}
        records = tuple(record for key, pairs in got.items() for record in self.records(key, pairs))
        return self.row(Function.POLL, Outcome.OK if len(heard) == 2 else None, records=records)

    def records(self, key: Any, pairs: Any) -> Iterator[Record]:
        """The records of one partition in a poll's answer. key: of the partition; pairs: [offset, value]
        each."""
        topic, partition = self.partition_of(key)
        if not isinstance(pairs, list) or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in pairs
        ):
            raise self.refuse("a list of [OFFSET VALUE]", repr(pairs))
        for offset, value in pairs:
            yield Record(
                topic=topic,
                partition=partition,
                offset=self.offset(offset),
                value=self.integer(value, "value"),
            )

    def offset(self, value: Any) -> int:
        """An offset."""
        if not is_integer(value) or not 0 <= value <= _BIGGEST:
            raise self.refuse("an integer from 0 as offset", repr(value))
        return int(value)

    def integer(self, value: Any, what: str) -> int:
        """A value of a record."""
        if not is_integer(value) or abs(value) > _BIGGEST:
            raise self.refuse(f"a 64-bit integer as {what}", repr(value))
        return int(value)
