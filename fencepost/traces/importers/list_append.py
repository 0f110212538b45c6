"""Elle's list-append histories as logs: transactions that append to lists and read them become operations of
ours.

Owns: what `append` and `r` mean. Must not know: how entries are paired, files, judges.

A key is a partition, as in Jepsen's Kafka workload (kafka.py). An append is an append with an unknown offset.
A read of a list is a poll from offset 0: the element at index i is the record at offset i. So who read from
whom, and the order of writes, are what Elle infers from the lists (Kingsbury and Alvaro, "Elle", VLDB 2020).
A read that shows an element of its own transaction is kept; Kafka would not show it.
"""

from collections.abc import Iterable
from typing import Any

from attrs import define

from fencepost.traces.importers.conventions import Conventions, Tell
from fencepost.traces.importers.kafka import KafkaHistory
from fencepost.traces.importers.kafka_rows import Expansion
from fencepost.traces.operations import ACKS_NONE, Function, Operation, Outcome, Record

FUNCTIONS = ("txn",)


@define
class ListExpansion(Expansion):
    """One transaction as rows of ours."""

    def part(self, sent: Any, heard: Any) -> Operation:
        """The row of one micro-operation. sent: in the invocation; heard: in the completion."""
        lists = isinstance(sent, list) and isinstance(heard, list)
        if not lists or len(heard) != 3 or sent[:2] != heard[:2] or heard[0] not in ("append", "r"):
            raise self.refuse("[:append KEY VALUE] or [:r KEY VALUES] as micro-operation", repr(heard))
        topic, partition = self.partition_of(heard[1])
        if heard[0] == "append":
            if sent != heard:
                raise self.refuse(f"the value {sent[2]!r} that was appended", repr(heard[2]))
            value = self.integer(heard[2], "value")
            record = Record(topic=topic, partition=partition, offset=-1, value=value)
            return self.row(
                Function.APPEND, topic=topic, partition=partition, acks=ACKS_NONE, records=(record,)
            )
        values = [] if heard[2] is None else heard[2]
        if not isinstance(values, list):
            raise self.refuse("a list of values, or nil", repr(values))
        shown = tuple(
            Record(topic=topic, partition=partition, offset=at, value=self.integer(value, "value"))
            for at, value in enumerate(values)
        )
        known = self.asked.outcome is Outcome.OK or bool(values)
        outcome = Outcome.OK if known else self.asked.outcome
        return self.row(Function.POLL, outcome, topic=topic, partition=partition, offset=0, records=shown)


def _named(row: Any) -> Any:
    """Elle needs no function: its own samples, and those of elle-cli, have none."""
    return {**row, "f": "txn"} if isinstance(row, dict) and row.get("f") is None else row


def list_operations(
    rows: Iterable[tuple[Any, int]], where: str, conventions: Conventions, tell: Tell
) -> tuple[Operation, ...]:
    """The operations of a list-append history. Raises TraceError with `where` and the line."""
    history = KafkaHistory(where, functions=FUNCTIONS, expansion=ListExpansion)
    for row, line in rows:
        history.add(_named(row), line)
    return history.operations(conventions, tell)
