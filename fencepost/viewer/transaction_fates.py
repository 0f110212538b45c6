"""Transactions as clients know them: when each began and ended, how it ended, and its records.

Owns the fate of a transaction by step. Must not know drawing. Which operations are parts of a transaction is
the log judge's rule (checkers/log/log_transactions).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

from attrs import frozen

from fencepost.checkers.log.log_transactions import transactions_of
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace
from fencepost.viewer.columns import columns, exact, values_as_run
from fencepost.viewer.moments import Kind, Moments
from fencepost.viewer.replica_logs import Partition
from fencepost.viewer.tracks import Window

READ_COMMITTED = "read_committed"
COLUMNS = ("id", "operation", "lane", "producer", "began", "ended", "fate", "parts", "records")


class Fate(IntEnum):
    """How a transaction ended. OPEN: no end of it is known."""

    OPEN = 0
    COMMITTED = 1
    ABORTED = 2


@frozen(kw_only=True)
class Transaction:
    """One transaction of the trace."""

    # Index of its `txn` row.
    operation: int
    # Id and epoch, from its first numbered append; None if it has none.
    producer: tuple[int, int] | None
    # The step of its begin.
    began: int
    # The step of its end; None while no end is known.
    ended: int | None
    fate: Fate
    # Indices of its other rows.
    parts: tuple[int, ...]


def found_transactions(trace: Trace, moments: Moments) -> list[Transaction]:
    """Every transaction of a trace, by begin."""
    if not any(one.function is Function.TXN for one in trace.operations):
        return []
    judged = transactions_of(columns_of_traces([trace]))
    assert judged is not None, "a row that is a transaction"
    parts: dict[int, list[int]] = defaultdict(list)
    for index, owner in enumerate(judged.of.tolist()):
        if owner >= 0 and owner != index:
            parts[owner].append(index)
    shown = _first_shown(trace, moments, parts)
    found = []
    for index, one in enumerate(trace.operations):
        if one.function is not Function.TXN:
            continue
        fate, ended = _end(one, moments.answer[index], shown.get(index))
        found.append(
            Transaction(
                operation=index,
                producer=_producer(trace, [index, *parts[index]]),
                began=moments.invoke[index],
                ended=ended,
                fate=fate,
                parts=tuple(parts[index]),
            )
        )
    return sorted(found, key=lambda one: one.began)


def _end(row: Operation, answer: int, shown: int | None) -> tuple[Fate, int | None]:
    """How and when a transaction ended. answer: the step of its end's answer; shown: the step at which a
    read_committed read had one of its records."""
    if row.outcome is Outcome.UNKNOWN:
        return (Fate.OPEN, None) if shown is None else (Fate.COMMITTED, shown)
    return Fate.COMMITTED if row.outcome is Outcome.OK else Fate.ABORTED, answer if answer >= 0 else None


def _producer(trace: Trace, rows: list[int]) -> tuple[int, int] | None:
    for index in rows:
        one = trace.operations[index]
        if one.producer_id is not None:
            return one.producer_id, -1 if one.producer_epoch is None else one.producer_epoch
    return None


def _first_shown(trace: Trace, moments: Moments, parts: Mapping[int, list[int]]) -> dict[int, int]:
    """By row of each transaction: the first step at which a read_committed read returned a record of it."""
    owner = {
        (record.topic, record.partition, record.value): transaction
        for transaction, rows in parts.items()
        for index in rows
        if trace.operations[index].function is Function.APPEND
        for record in trace.operations[index].records
    }
    found: dict[int, int] = {}
    for step, moment in enumerate(moments.all):
        if moment.kind is not Kind.ANSWER:
            continue
        one = trace.operations[moment.index]
        if one.function is Function.POLL and one.isolation == READ_COMMITTED and one.outcome is Outcome.OK:
            for record in one.records:
                transaction = owner.get((record.topic, record.partition, record.value))
                if transaction is not None:
                    found.setdefault(transaction, step)
    return found


@frozen(kw_only=True)
class TransactionRows:
    """transactions: by begin. operations: of the trace. partitions, lanes: numbers on the page, by name."""

    transactions: list[Transaction]
    operations: tuple[Operation, ...]
    partitions: Mapping[Partition, int]
    lanes: Mapping[str, int]

    def within(self, window: Window, numbers: Mapping[int, int]) -> dict[str, list[Any]]:
        """A row for each transaction that matters in the window: one that committed before it marks nothing.

        Parameters: numbers: of operations on the page, by index.
        """
        rows = [
            self._row(one, window, numbers)
            for one in self.transactions
            if one.began < window.end
            and (one.fate is not Fate.COMMITTED or one.ended is None or one.ended >= window.first)
        ]
        return columns(COLUMNS, rows)

    def _row(self, one: Transaction, window: Window, numbers: Mapping[int, int]) -> tuple[Any, ...]:
        row = self.operations[one.operation]
        return (
            exact(row.op_id),
            numbers.get(one.operation, -1),
            self.lanes[f"c{row.process}"],
            None if one.producer is None else [exact(one.producer[0]), one.producer[1]],
            window.inside(one.began),
            -2 if one.ended is None else window.inside(one.ended),
            int(one.fate),
            [numbers[index] for index in one.parts if index in numbers],
            list(self._records(one)),
        )

    def _records(self, one: Transaction) -> Iterator[list[Any]]:
        """[partition, first offset or -1, values] of each append."""
        for index in one.parts:
            part = self.operations[index]
            if part.function is not Function.APPEND:
                continue
            by_partition: dict[int, list[Any]] = {}
            for record in part.records:
                number = self.partitions.get((record.topic, record.partition), -1)
                by_partition.setdefault(number, []).append(record)
            for number, records in by_partition.items():
                answered = -1 if part.offset is None else part.offset
                first = records[0].offset if records[0].offset >= 0 else answered
                yield [number, first, values_as_run([record.value for record in records])]
