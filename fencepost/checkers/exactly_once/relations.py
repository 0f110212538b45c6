"""What traces say of transactions and of readers of committed records, as arrays, for many traces together.

Owns which record a transaction sent, which poll showed it, what was passed over, and which offsets
transactions committed. Must not know the rules.

A record is visible once any reader of committed records was shown it. It is passed over if one poll of such a
reader began at or below its offset and showed a later one without it: readers of committed records stop at
the last stable offset, so that what they pass is decided. Records between two polls prove nothing, because a
reader may seek; nor do those of a compacted topic, because compaction may have removed them.

A log is one partition in one trace, as a number that orders by trace, topic and partition.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from attrs import Factory, frozen

from fencepost.checkers.arrow_arrays import Arrow, arrow, integer_array, object_integers, table_column
from fencepost.checkers.exactly_once.log_places import Logs, Named, Places, places_of, sources_of
from fencepost.checkers.log.log_transactions import transactions_of
from fencepost.checkers.operation_columns import (
    FUNCTIONS,
    NONE,
    OUTCOMES,
    Array,
    OperationColumns,
    PositionColumns,
    RecordColumns,
)
from fencepost.checkers.sorting import ascends, first_of_each, numbered, order_by, stable_order
from fencepost.checkers.statements import READ_COMMITTED
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.trace import Trace

APPEND, COMMIT, POLL = (FUNCTIONS.index(f) for f in (Function.APPEND, Function.COMMIT, Function.POLL))
OK, FAIL = OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.FAIL)
IN_TRANSACTION = "txn"
"""The argument of a commit that a transaction makes."""


@frozen(kw_only=True, eq=False)
class Details:
    """Columns that only this check reads, one entry per operation."""

    # The producer id; -1 if none.
    producer_id: Array
    # The producer epoch; -1 if none.
    producer_epoch: Array
    # Whether the operation commits offsets in a transaction.
    commits: Array
    # The column `result`: of an append in a transaction, what each record was made from. Strings.
    made_from: Arrow


def details_of_traces(traces: Sequence[Trace]) -> Details:
    """The details of the operations of traces, in order."""
    operations = [operation for trace in traces for operation in trace.operations]
    return Details(
        producer_id=object_integers(operations, "producer_id"),
        producer_epoch=object_integers(operations, "producer_epoch"),
        commits=np.array([each.argument == IN_TRANSACTION for each in operations], np.bool_),
        made_from=pa.array([each.result for each in operations], pa.string()),
    )


def details_of_table(table: pa.Table) -> Details:
    """The details of the rows of an `operations` table, in order. Raises TraceError if a column is
    missing."""
    commits = arrow.equal(table_column(table, "argument").cast(pa.string()), IN_TRANSACTION)
    return Details(
        producer_id=integer_array(table_column(table, "producer_id")),
        producer_epoch=integer_array(table_column(table, "producer_epoch")),
        commits=np.asarray(arrow.fill_null(commits, False)).astype(np.bool_),
        made_from=table_column(table, "result").cast(pa.string()),
    )


@frozen(kw_only=True, eq=False)
class Sent:
    """One row per record that a transaction appended, in the order in which the appends began."""

    # The append.
    row: Array
    # The transaction.
    txn: Array
    # Where it was appended; the offset is -1 if the producer did not learn it.
    place: Places
    # The value id.
    value: Array
    # What it was made from; the log is -1 if the row does not say.
    source: Places
    # The first poll that showed it to a reader of committed records; -1 if none did.
    poll: Array
    # Whether a reader of committed records was not shown it, and went past its offset.
    passed: Array


@frozen(kw_only=True, eq=False)
class Shown:
    """One row per place that any reader of committed records was shown, in the order of places."""

    # The place.
    place: Places
    # What its first poll showed there.
    value: Array
    # That poll.
    row: Array


@frozen(kw_only=True, eq=False)
class Commits:
    """One row per offset that a transaction committed, in the order in which the commits began."""

    # The commit.
    row: Array
    # The partition and the offset after what was consumed.
    place: Places


@frozen(kw_only=True, eq=False)
class Relations:
    """The relations of some traces."""

    # The operations.
    operations: OperationColumns
    # More columns of them.
    details: Details
    # The meaning of the numbers of logs.
    logs: Logs
    # Records of transactions.
    sent: Sent
    # What readers of committed records were shown.
    shown: Shown
    # Offsets that transactions committed.
    commits: Commits
    # By topic and partition of input: what was consumed below this offset needs no output among these rows,
    # because older rows have it. Only for a part of a trace.
    settled: Mapping[tuple[str, int], int] = Factory(dict)

    @property
    def excusing(self) -> Array:
        """For each sent record whether it is an output of its source that is visible, or may yet be."""
        sent = self.sent
        pending = (self.operations.outcome[sent.row] != FAIL) & ~sent.passed
        excusing: Array = (sent.source.log >= 0) & ((sent.poll >= 0) | pending)
        return excusing


def relations_of(operations: OperationColumns, details: Details, asked: Array) -> Relations:
    """The relations of these rows.

    Args:
        operations: the rows.
        details: more columns of them.
        asked: for each trace whether it is asked for; of the others there is nothing.

    Returns:
        the relations.
    """
    flat = _Flat.of(operations, asked)
    transactions = transactions_of(operations)
    txn = np.full(len(flat.rank), NONE) if transactions is None else transactions.of
    sent = flat.records(flat.ours & (operations.function == APPEND) & (txn >= 0))
    polled = flat.ours & (operations.function == POLL) & (operations.outcome == OK)
    if operations.statements is not None:
        polled &= operations.statements.isolation == READ_COMMITTED
    shown = flat.records(polled)
    began = np.flatnonzero(polled & (operations.topic >= 0) & (operations.offset >= 0))
    begun = flat.positions(polled)
    begun = begun[operations.positions.offset[begun] >= 0]
    commits = flat.positions(flat.ours & (operations.function == COMMIT) & details.commits)
    logs, places = places_of(
        (
            flat.named_records(sent),
            flat.named_records(shown),
            flat.named_positions(begun),
            flat.named_rows(began),
            flat.named_positions(commits),
            _made_from(operations, details, flat.of_record[sent]),
        )
    )
    to, at, several, single, committed, source = places
    visible = _first_shown(at, operations.records.value[shown], flat.of_record[shown])
    poll = _polls_of(visible, to, operations.records.value[sent])
    passed = _passed(
        to,
        flat.of_record[shown],
        at,
        np.concatenate((flat.of_position[begun], began)),
        np.concatenate((several.log, single.log)),
        np.concatenate((several.key, single.key)),
    )
    passed &= (poll < 0) & (to.offset >= 0) & ~compacted(logs, operations.traces, to.log)
    row = flat.of_record[sent]
    return Relations(
        operations=operations,
        details=details,
        logs=logs,
        sent=Sent(
            row=row,
            txn=txn[row],
            place=to,
            source=source,
            poll=poll,
            passed=passed,
            value=operations.records.value[sent],
        ),
        shown=visible,
        commits=Commits(row=flat.of_position[commits], place=committed),
    )


@frozen(kw_only=True, eq=False)
class _Flat:
    """The flat records and positions of the rows."""

    operations: OperationColumns
    # Place of each row in the order in which the operations of its trace began.
    rank: Array
    # Whether the trace of each row is asked for.
    ours: Array
    # Rows of the records and positions.
    of_record: Array
    of_position: Array

    @classmethod
    def of(cls, operations: OperationColumns, asked: Array) -> "_Flat":
        order = order_by((operations.op_id, operations.invoke_time, operations.trace))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return cls(
            operations=operations,
            rank=rank,
            ours=asked[operations.trace],
            of_record=np.repeat(np.arange(len(order)), np.diff(operations.records.start)),
            of_position=np.repeat(np.arange(len(order)), np.diff(operations.positions.start)),
        )

    def records(self, rows: Array) -> Array:
        """The records of these rows, in the order in which the rows began."""
        return self._ordered(np.flatnonzero(rows[self.of_record]), self.of_record)

    def positions(self, rows: Array) -> Array:
        """As `records`."""
        return self._ordered(np.flatnonzero(rows[self.of_position]), self.of_position)

    def _ordered(self, flat: Array, of: Array) -> Array:
        rank = self.rank[of[flat]]
        return flat if ascends(rank) else flat[stable_order(rank)]

    def named_records(self, flat: Array) -> Named:
        """Where these records are."""
        return self._named(self.operations.records, flat, self.of_record[flat])

    def named_positions(self, flat: Array) -> Named:
        """What these positions are."""
        return self._named(self.operations.positions, flat, self.of_position[flat])

    def named_rows(self, rows: Array) -> Named:
        """The partition and the offset that these rows name themselves; no partition means the first."""
        of = self.operations
        return Named(
            trace=of.trace[rows],
            topic=of.topic[rows],
            partition=np.maximum(of.partition[rows], 0),
            offset=of.offset[rows],
            topics=of.topics,
        )

    def _named(self, columns: RecordColumns | PositionColumns, flat: Array, rows: Array) -> Named:
        return Named(
            trace=self.operations.trace[rows],
            topic=columns.topic[flat],
            partition=columns.partition[flat],
            offset=columns.offset[flat],
            topics=self.operations.topics,
        )


def _made_from(operations: OperationColumns, details: Details, rows: Array) -> Named:
    """What the records of these appends were made from. rows: the append of each record."""
    first = np.ones(len(rows), np.bool_)
    first[1:] = rows[1:] != rows[:-1]
    appends = rows[first]
    counts = np.diff(operations.records.start)[appends]
    topic, partition, offset, topics = sources_of(details.made_from, appends, counts)
    return Named(trace=operations.trace[rows], topic=topic, partition=partition, offset=offset, topics=topics)


def _first_shown(at: Places, value: Array, row: Array) -> Shown:
    """at, value, row: of each shown record, in the order in which the polls began."""
    good = np.flatnonzero((at.log >= 0) & (at.offset >= 0))
    kept = good[first_of_each(at.key[good])[1]]
    return Shown(place=at.taken(kept), value=value[kept], row=row[kept])


def _polls_of(shown: Shown, to: Places, value: Array) -> Array:
    """For each sent record the first poll that showed its place, if it showed this value; -1 otherwise."""
    if not len(shown.row):
        return np.full(len(value), NONE)
    at = np.minimum(np.searchsorted(shown.place.key, to.key), len(shown.row) - 1)
    same = (shown.place.key[at] == to.key) & (shown.value[at] == value) & (to.offset >= 0) & (to.log >= 0)
    return np.where(same, shown.row[at], NONE)


def _passed(to: Places, row: Array, at: Places, began_row: Array, began_log: Array, began: Array) -> Array:
    """Which places lie between the beginning of a poll and the last record that it showed of that log. Where
    two begin in one poll and log, the later one counts."""
    if not len(row) or not len(began_row):
        return np.zeros(len(to.log), np.bool_)
    logs, log = numbered(at.log)
    of = row * len(logs) + log
    last = _last_of(of)
    rank = np.minimum(np.searchsorted(logs, began_log), len(logs) - 1)
    mine = began_row * len(logs) + rank
    kept = _last_of(mine)
    kept = kept[logs[rank[kept]] == began_log[kept]]
    found = np.minimum(np.searchsorted(of[last], mine[kept]), len(last) - 1)
    end = at.key[last[found]]
    good = (of[last[found]] == mine[kept]) & (began[kept] <= end) & (began_log[kept] >= 0)
    begin, end = began[kept][good], end[good]
    if not len(begin):
        return np.zeros(len(to.log), np.bool_)
    order = stable_order(begin)
    begin, reach = begin[order], np.maximum.accumulate(end[order])  # a later log has larger numbers
    before = np.searchsorted(begin, to.key, side="right") - 1
    return (before >= 0) & (reach[before] >= to.key)


def _last_of(of: Array) -> Array:
    """The index of the last entry of each number, by number."""
    order = stable_order(of)
    last = np.ones(len(of), np.bool_)
    last[:-1] = of[order][1:] != of[order][:-1]
    return order[last]


def compacted(logs: Logs, traces: Sequence[Trace], log: Array) -> Array:
    """Which of these logs their traces claim to be compacted."""
    if not any(trace.claims.compacted for trace in traces):
        return np.zeros(len(log), np.bool_)
    distinct, of = numbered(log)
    claimed = np.zeros(len(distinct), np.bool_)
    for number, each in enumerate(distinct.tolist()):
        if each >= 0:
            trace, topic, _ = logs.named(each)
            claimed[number] = topic in traces[trace].claims.compacted
    found: Array = claimed[of]
    return found
