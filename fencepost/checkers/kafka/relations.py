"""The relations of the kafka check, for many traces together: logs, sent records, shown records, and the rows
that move consumers.

Owns the conversion of operations into these relations. Must not know the rules. A log is one partition in one
trace. A process is one incarnation (process, session) in one trace. Memory is proportional to records and
operations, never to offsets.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from attrs import asdict, frozen

from fencepost.checkers.kafka.extras import Extras, extras_of_table, extras_of_traces
from fencepost.checkers.log.log_transactions import shown_transactions
from fencepost.checkers.operation_columns import (
    FUNCTIONS,
    NEVER,
    NONE,
    OUTCOMES,
    Array,
    OperationColumns,
    columns_of_table,
    columns_of_traces,
    incarnations,
    is_place,
)
from fencepost.checkers.sorting import heads_of, numbered, order_by, packed, place_of
from fencepost.traces.operations import ACKS_ALL, Function, Outcome
from fencepost.traces.trace import Trace

APPEND, POLL, TXN, JOIN = (
    FUNCTIONS.index(f) for f in (Function.APPEND, Function.POLL, Function.TXN, Function.JOIN)
)
ASSIGN, SUBSCRIBE, CRASH = (FUNCTIONS.index(f) for f in (Function.ASSIGN, Function.SUBSCRIBE, Function.CRASH))
OK, FAIL = OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.FAIL)


@frozen(kw_only=True, eq=False)
class Sent:
    """One row per record of an append, in the order of operations.

    Attributes:
        row: its operation.
        offset_sent: the offset in its acknowledgement (-1: none).
        firm: acknowledged with acks=all and an offset, or part of an unknown transaction that is known to
            have committed.
    """

    row: Array
    log: Array
    value: Array
    offset_sent: Array
    firm: Array


@frozen(kw_only=True, eq=False)
class ShownRecords:
    """One row per record that an answered poll returned, in the order of operations."""

    # Its operation.
    row: Array
    log: Array
    offset: Array
    value: Array


@frozen(kw_only=True, eq=False)
class RecordRelations:
    """The operations of some traces with their logs, processes and transactions."""

    # The rows.
    operations: OperationColumns
    # For each log the index of its trace.
    log_trace: Array
    # For each log the index of its topic.
    log_topic: Array
    # For each log its partition.
    log_partition: Array
    # For each row the index of its process, without gaps.
    process: Array
    # For each row the row of its transaction (-1: none).
    txn: Array
    # The records of appends.
    sent: Sent
    # The records that polls returned.
    shown: ShownRecords

    @property
    def logs_by_name(self) -> dict[tuple[int, int, int], int]:
        """Trace, topic and partition of each log -> its number."""
        columns = (self.log_trace, self.log_topic, self.log_partition)
        names = zip(*(column.tolist() for column in columns), strict=True)
        return {name: log for log, name in enumerate(names)}

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The traces, by index."""
        return self.operations.traces

    @property
    def logs(self) -> int:
        """The number of logs."""
        return len(self.log_trace)


@frozen(kw_only=True, eq=False)
class KafkaColumns(RecordRelations):
    """The same, with what only the kafka check asks for."""

    # More columns of the same rows.
    extras: Extras
    # For each flat position its log (-1: a log without records).
    log_of_position: Array


def kafka_columns_of_traces(traces: Sequence[Trace]) -> KafkaColumns:
    """The relations of traces in memory."""
    return kafka_columns(columns_of_traces(traces), extras_of_traces(traces))


def kafka_columns_of_table(table: pa.Table, traces: Iterable[Trace] = ()) -> KafkaColumns:
    """The relations of the rows of an `operations` table.

    Args:
        table: the rows.
        traces: the headers of their traces.

    Returns:
        the relations.

    Raises:
        TraceError: if a column is missing.
    """
    return kafka_columns(columns_of_table(table, traces), extras_of_table(table))


def kafka_columns(operations: OperationColumns, extras: Extras) -> KafkaColumns:
    """Build the relations of these rows.

    Args:
        operations: the rows.
        extras: more columns of the same rows.

    Returns:
        the relations.
    """
    relations, positions = record_relations(operations), operations.positions
    row = np.repeat(operations.trace, np.diff(positions.start))
    codes = packed((
        np.concatenate((relations.log_trace, row)),
        np.concatenate((relations.log_topic, positions.topic)),
        np.concatenate((relations.log_partition, positions.partition)),
    ))  # fmt: skip
    return KafkaColumns(
        **asdict(relations, recurse=False),
        extras=extras,
        log_of_position=place_of(codes[: relations.logs], codes[relations.logs :]),
    )


def record_relations(operations: OperationColumns) -> RecordRelations:
    """The relations of these rows that need no further columns.

    Args:
        operations: the rows.

    Returns:
        the relations.
    """
    records, rows = operations.records, np.arange(len(operations.op_id))
    of_record = np.repeat(rows, np.diff(records.start))
    answered = (operations.function == POLL) & (operations.outcome == OK)
    answered &= operations.completion_time != NEVER
    placed = is_place(records.topic, records.partition)
    is_sent = (operations.function == APPEND)[of_record] & placed
    is_shown = answered[of_record] & (records.offset >= 0) & placed
    used = slice(None) if (is_sent | is_shown).all() else np.flatnonzero(is_sent | is_shown)
    place = (operations.trace[of_record[used]], records.topic[used], records.partition[used])
    log = np.full(len(of_record), NONE)
    logs, log[used] = numbered(packed(place))
    head = heads_of(log[used], len(logs))
    log_trace, log_topic, log_partition = (column[head] for column in place)
    process = _processes(operations)
    txn = _transactions(operations, process)
    return RecordRelations(
        operations=operations,
        log_trace=log_trace,
        log_topic=log_topic,
        log_partition=log_partition,
        process=process,
        txn=txn,
        sent=_sent(operations, of_record, np.flatnonzero(is_sent), log, txn),
        shown=ShownRecords(
            row=of_record[is_shown],
            log=log[is_shown],
            offset=records.offset[is_shown],
            value=records.value[is_shown],
        ),
    )


def _processes(operations: OperationColumns) -> Array:
    """The index of the incarnation of each row, without gaps, in the order of traces."""
    return numbered(incarnations(operations))[1]


def _transactions(operations: OperationColumns, process: Array) -> Array:
    """The row of the transaction of each row: the last transaction of its process that began before it, if it
    ended after it."""
    heads = operations.function == TXN
    if not heads.any():
        return np.full(len(process), NONE)
    order = order_by((operations.invoke_time, process))
    last = np.where(heads[order], np.arange(len(order)), NONE)
    np.maximum.accumulate(last, out=last)
    inside = last >= 0
    candidate = order[last]
    inside &= (process[candidate] == process[order]) & (candidate != order)
    inside &= operations.completion_time[order] <= operations.completion_time[candidate]
    txn = np.empty(len(order), np.int64)
    txn[order] = np.where(inside, candidate, NONE)
    return txn


def _sent(operations: OperationColumns, of_record: Array, flat: Array, log: Array, txn: Array) -> Sent:
    row = of_record[flat]
    nth = flat - operations.records.start[row]
    base = operations.offset[row]
    offset_sent = np.where(base >= 0, base + nth, NONE)
    acknowledged = (operations.outcome[row] == OK) & (operations.acks[row] == ACKS_ALL)
    value = operations.records.value[flat]
    _, proven = shown_transactions(operations, txn)
    committed = (txn[row] >= 0) & (operations.outcome[row] != FAIL) & proven[txn[row]]
    return Sent(
        row=row,
        log=log[flat],
        value=value,
        offset_sent=offset_sent,
        firm=(acknowledged | committed) & (offset_sent >= 0),
    )
