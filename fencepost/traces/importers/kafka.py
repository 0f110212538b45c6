"""Histories of Jepsen's Kafka workload: sends, polls, assignments, crashes and transactions of them become
operations of ours.

Owns: what a row of that workload means, and its pairing. Must not know: files, judges.

A key is a partition: an integer k is partition k of the topic `jepsen`, a text is partition 0 of the topic of
that name. A `send` or `poll` of one micro-operation is one row. Several of them, a `txn`, and a failed poll
that reports what it got, become a row `txn` and a row for each part, all with the times of the whole
(docs/reference/traces.md). Times are those of the history if every row has one and they do not go back,
otherwise positions. Jepsen does not record acks: an ok send without an offset is assumed to have acks=0, the
only setting without an offset in the answer; every other send is assumed to have acks=all.
"""

from collections.abc import Iterable
from typing import Any

from attrs import define, evolve, field

from fencepost.traces.errors import TraceError
from fencepost.traces.importers.kafka_rows import Asked, Expansion, is_integer
from fencepost.traces.operations import Function, Operation, Outcome

FUNCTIONS = ("assign", "crash", "poll", "send", "subscribe", "txn")
IGNORED = "debug-topic-partitions"
"""A question to the administration: it says nothing of the log."""
TYPES = {"ok": Outcome.OK, "fail": Outcome.FAIL, "info": Outcome.UNKNOWN}
UNDERSTOOD = frozenset(
    {"type", "f", "value", "process", "time", "error", "rebalance-log", "seek-to-beginning?"}
)
BESIDE = frozenset(
    {"index", "op-index", "exception", "node", "debug", "link", "latency", "sub-via"}
    | {"poll-ms", "unseen", "keys", "end-process?", "body-results", "final?"}
)
"""Fields that say nothing about what was asked or answered."""


@define
class KafkaHistory:
    """Turns rows into operations."""

    # The file, for errors.
    where: str
    # What the functions of entries may be.
    functions: tuple[str, ...] = FUNCTIONS
    # Makes the rows of one entry.
    expansion: type[Expansion] = Expansion
    # What each process has in flight.
    open: dict[int, Asked] = field(factory=dict)
    # All invocations in order.
    asked: list[Asked] = field(factory=list)
    # Rows so far.
    position: int = 0
    # Whether all times so far are usable: present, and never going back.
    timed: bool = True
    # The last row's.
    time: int = 0

    def refuse(self, expected: str, seen: str, line: int) -> TraceError:
        """The error for a line. expected, seen: for the message."""
        return TraceError(expected=expected, seen=seen, where=f"{self.where}:{line}")

    def add(self, row: Any, line: int) -> None:
        """The next row. Raises TraceError for what it does not understand."""
        if not isinstance(row, dict):
            raise self.refuse("a map for each entry", type(row).__name__, line)
        if row.get("process") == "nemesis" or row.get("f") == IGNORED:
            return
        unknown = sorted(set(row) - UNDERSTOOD - BESIDE)
        if unknown:
            raise self.refuse("fields of Jepsen's Kafka workload", f"the unknown field {unknown[0]}", line)
        if row.get("f") not in self.functions:
            raise self.refuse(f"a function out of {', '.join(self.functions)}", repr(row.get("f")), line)
        process: Any = row.get("process")
        if not is_integer(process):
            raise self.refuse("an integer as process", repr(process), line)
        stamp = (self.position, self._time(row.get("time")))
        if row.get("type") == "invoke":
            self._invoke(row, process, stamp, line)
        elif row.get("type") in TYPES:
            self._complete(row, process, stamp, line)
        else:
            raise self.refuse(f"a type of invoke, {', '.join(TYPES)}", repr(row.get("type")), line)
        self.position += 1

    def _time(self, time: Any) -> int:
        """The time of a row; from the first one that is missing or goes back, times are not used."""
        self.timed = self.timed and is_integer(time) and time >= self.time
        if self.timed:
            self.time = time
        return self.time

    def _invoke(self, row: dict[str, Any], process: int, stamp: tuple[int, int], line: int) -> None:
        if process in self.open:
            before = self.open[process].line
            raise self.refuse(
                f"the completion of what process {process} invoked in line {before}",
                "another invocation",
                line,
            )
        asked = Asked(
            line=line,
            process=process,
            function=row["f"],
            value=row.get("value"),
            seek=row.get("seek-to-beginning?") is True,
            invoke=stamp,
        )
        self.open[process] = asked
        self.asked.append(asked)

    def _complete(self, row: dict[str, Any], process: int, stamp: tuple[int, int], line: int) -> None:
        asked = self.open.pop(process, None)
        if asked is None:
            raise self.refuse(f"an invocation of process {process} first", str(row["type"]), line)
        if row["f"] != asked.function:
            raise self.refuse(
                f"the completion of {asked.function}, invoked in line {asked.line}", str(row["f"]), line
            )
        asked.outcome, asked.completion, asked.answer = TYPES[row["type"]], stamp, row.get("value")
        asked.error, asked.line = row.get("error"), line
        rebalances = row.get("rebalance-log") or []
        if not isinstance(rebalances, list) or not all(isinstance(event, dict) for event in rebalances):
            raise self.refuse("a list of maps as rebalance-log", repr(rebalances), line)
        asked.rebalances = rebalances

    def operations(self) -> tuple[Operation, ...]:
        """All operations, in the order of their invocations. Raises TraceError for micro-operations that it
        does not understand."""
        rows = (row for asked in self.asked for row in self.expansion(asked, self.where, self.timed).rows())
        return tuple(evolve(row, op_id=op_id) for op_id, row in enumerate(rows))


def kafka_operations(rows: Iterable[tuple[Any, int]], where: str) -> tuple[Operation, ...]:
    """The operations of a history of this workload. Raises TraceError with `where` and the line."""
    history = KafkaHistory(where)
    for row, line in rows:
        history.add(row, line)
    return history.operations()


def sends_unique(operations: Iterable[Operation]) -> bool:
    """Whether no value was sent twice to one partition."""
    sent = [
        (r.topic, r.partition, r.value)
        for o in operations
        if o.function is Function.APPEND
        for r in o.records
    ]
    return len(set(sent)) == len(sent)


def overlaps_itself(operations: tuple[Operation, ...]) -> bool:
    """Whether some entry became several rows, which are in flight together."""
    return any(o.function in (Function.TXN, Function.JOIN) for o in operations)
