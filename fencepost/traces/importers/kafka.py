"""Histories of Jepsen's Kafka workload: sends, polls, assignments, crashes and transactions of them become
operations of ours.

Owns: what a row of that workload means, and its pairing. Must not know: files, judges.

A key is a partition: an integer k is partition k of the topic `jepsen`, a text is partition 0 of the topic of
that name. A `send` or `poll` of one micro-operation is one row. Several of them, a `txn`, and a failed poll
that reports what it got, become a row `txn` and a row for each part, all with the times of the whole
(docs/reference/traces.md). Times are those of the history if every row has one (order.py),
otherwise positions. Jepsen does not record acks: an ok send without an offset is assumed to have acks=0, the
only setting without an offset in the answer; every other send is assumed to have acks=all.
"""

from collections.abc import Iterable
from typing import Any

from attrs import define, evolve, field, frozen

from fencepost.traces.errors import TraceError
from fencepost.traces.importers.conventions import Conventions, Tell
from fencepost.traces.importers.edn import readable
from fencepost.traces.importers.entry_places import Entry, Process, numbers_of, place_of
from fencepost.traces.importers.kafka_rows import Asked, Expansion
from fencepost.traces.importers.order import in_order
from fencepost.traces.operations import Function, Operation, Outcome

FUNCTIONS = ("assign", "crash", "poll", "send", "subscribe", "txn")
IGNORED = "debug-topic-partitions"
"""A question to the administration: it says nothing of the log."""
OUTCOMES = {"ok": Outcome.OK, "fail": Outcome.FAIL, "info": Outcome.UNKNOWN}


@frozen(kw_only=True)
class KafkaEntry(Entry):
    """One entry of this workload."""

    row: dict[str, Any]


@define
class KafkaHistory:
    """Turns rows into operations."""

    # The file, for errors.
    where: str
    # What the functions of entries may be.
    functions: tuple[str, ...] = FUNCTIONS
    # Makes the rows of one entry.
    expansion: type[Expansion] = Expansion
    # The entries of clients.
    entries: list[KafkaEntry] = field(factory=list)
    # What each process has in flight.
    open: dict[Process, Asked] = field(factory=dict)
    # All invocations in order.
    asked: list[Asked] = field(factory=list)
    # What to add to an error about pairing.
    hint: str = ""

    def refuse(self, expected: str, seen: str, line: int) -> TraceError:
        """The error for a line. expected, seen: for the message."""
        return TraceError(expected=expected, seen=seen, where=f"{self.where}:{line}", hint=self.hint)

    def add(self, row: Any, line: int) -> None:
        """The next row of the file. Raises TraceError for what it does not understand."""
        place = place_of(row, line, self.where)
        if place is None or place["function"] == IGNORED:
            return
        if place["function"] not in self.functions:
            raise self.refuse(f"a function out of {', '.join(self.functions)}", repr(row.get("f")), line)
        self.entries.append(KafkaEntry(**place, row=row))

    def _invoke(self, entry: KafkaEntry, number: int, position: int) -> None:
        process, line, row = entry.process, entry.line, entry.row
        if process in self.open:
            before = self.open[process].line
            raise self.refuse(
                f"the completion of what process {process} invoked in line {before}",
                "another invocation",
                line,
            )
        asked = Asked(
            line=line,
            process=number,
            function=entry.function,
            value=row.get("value"),
            seek=row.get("seek-to-beginning?") is True,
            invoke=(position, entry.time or 0),
        )
        self.open[process] = asked
        self.asked.append(asked)

    def _complete(self, entry: KafkaEntry, position: int) -> None:
        process, line, row = entry.process, entry.line, entry.row
        asked = self.open.pop(process, None)
        if asked is None:
            raise self.refuse(f"an invocation of process {process} first", entry.type, line)
        if entry.function != asked.function:
            raise self.refuse(
                f"the completion of {asked.function}, invoked in line {asked.line}", entry.function, line
            )
        asked.outcome, asked.answer = OUTCOMES[entry.type], row.get("value")
        asked.completion = (position, entry.time or 0)
        asked.error, asked.line = readable(row.get("error")), line
        rebalances = row.get("rebalance-log") or []
        if not isinstance(rebalances, list) or not all(isinstance(event, dict) for event in rebalances):
            raise self.refuse("a list of maps as rebalance-log", repr(rebalances), line)
        asked.rebalances = rebalances

    def operations(self, conventions: Conventions, tell: Tell) -> tuple[Operation, ...]:
        """All operations, in the order of their invocations. tell: is called with what was taken. Raises
        TraceError for entries that cannot be paired, and micro-operations that it does not understand."""
        ordered = in_order(self.entries, conventions, self.where, tell)
        numbers = numbers_of(self.entries, self.where, tell)
        self.hint = ordered.hint
        for entry, position in ordered.entries:
            if entry.type == "invoke":
                self._invoke(entry, numbers[entry.process], position)
            else:
                self._complete(entry, position)
        rows = (
            row for asked in self.asked for row in self.expansion(asked, self.where, ordered.by_time).rows()
        )
        return tuple(evolve(row, op_id=op_id) for op_id, row in enumerate(rows))


def kafka_operations(
    rows: Iterable[tuple[Any, int]], where: str, conventions: Conventions, tell: Tell
) -> tuple[Operation, ...]:
    """The operations of a history of this workload. Raises TraceError with `where` and the line."""
    history = KafkaHistory(where)
    for row, line in rows:
        history.add(row, line)
    return history.operations(conventions, tell)


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
