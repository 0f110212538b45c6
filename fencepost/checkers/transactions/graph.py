"""The dependency graph of transactions as arrays, for many traces together.

Owns nodes and edges. Must not know which cycles are violations, or how cycles are found.

A node is a transaction (a `txn` row with its parts), or an append or poll outside of transactions. Nodes are
named by their rows in the operations. Edges, with Adya's and Elle's names:

    wr   from the writer of a record to its reader
    ww   from the writer of a record to the writer of the next known record of that log, in offset order
    rw   from a reader to the writer of the first known record at or above the position that it had reached
    time from an operation that ended to one that began later: in one process, or anywhere

Every wr edge exists, not only the one to the writer of the highest offset, so that a cycle of wr alone is
found without ww. There are as many as records read. rw edges use positions, not ranks of records: markers and
aborted records take offsets.

Time takes O(n) edges through moments: node -> the moment of its end -> the next moment -> ... -> node.
Moments are additional nodes after the rows, so that the closure of these edges is exactly "ended before it
began".
"""

import numpy as np
from attrs import frozen

from fencepost.checkers.kafka.placements import Placements, loss_allowed, placements_of
from fencepost.checkers.kafka.relations import APPEND, FAIL, OK, POLL, TXN, RecordRelations, record_relations
from fencepost.checkers.operation_columns import NEVER, NONE, Array, OperationColumns
from fencepost.checkers.sorting import order_by, packed, stable_order
from fencepost.checkers.statements import READ_UNCOMMITTED
from fencepost.checkers.transactions.suspects import clock_errors, may_be_cyclic


@frozen(kw_only=True, eq=False)
class Edges:
    """Edges as two arrays of nodes, with the record or position of each."""

    # nodes.
    source: Array
    target: Array
    # Where the two meet (-1 for time).
    log: Array
    offset: Array
    # The row of the poll that read (wr, rw), of the append that came second (ww), -1 for time.
    part: Array

    def __len__(self) -> int:
        return len(self.source)

    def kept(self, mask: Array) -> "Edges":
        """Only the edges in the mask."""
        if mask.all():
            return self
        source, target, log = self.source[mask], self.target[mask], self.log[mask]
        return Edges(source=source, target=target, log=log, offset=self.offset[mask], part=self.part[mask])


@frozen(kw_only=True, eq=False)
class Graph:
    """The graph of some traces."""

    # The relations of the traces.
    columns: RecordRelations
    # The number of operations.
    rows: int
    # Rows and moments together; a node of at least `rows` is a moment.
    nodes: int
    # For each row the index of its trace.
    trace: Array
    # For each row its node: that of its transaction if it is part of one.
    node: Array
    # Write-read edges.
    wr: Edges
    # The order of each process.
    process: Edges
    # The order of real time.
    realtime: Edges


def graph_of(operations: OperationColumns, *, suspects_only: bool = False) -> Graph:
    """Build the graph of these rows.

    Args:
        operations: the operations of some traces, in row order.
        suspects_only: leave edges out that are in no cycle of reads and of time.

    Returns:
        the graph. Traces with repeated values have no edges, because the writer of a record is not known
        there.
    """
    columns = record_relations(operations)
    rows = len(columns.txn)
    node = np.where(columns.txn >= 0, columns.txn, np.arange(rows))
    whole, wr = columns.txn < 0, _read(columns, node)
    if suspects_only:
        suspects = may_be_cyclic(operations, wr.source, wr.target)
        whole &= suspects
        wr = wr.kept(suspects[wr.source] & suspects[wr.target])
    process, moments = _time(operations, whole, columns.process, rows)
    realtime, nodes = _time(operations, whole, operations.trace.astype(np.int64), moments)
    return Graph(
        columns=columns,
        rows=rows,
        nodes=nodes,
        trace=operations.trace,
        node=node,
        wr=wr,
        process=process,
        realtime=realtime,
    )


def write_edges(graph: Graph) -> tuple[Edges, Edges]:
    """The edges that convict nobody, ww and rw: only who counts the cycles that Kafka allows needs them.

    Args:
        graph: the graph of some traces.

    Returns:
        write-write edges, and read-write edges (anti-dependencies).
    """
    columns, node = graph.columns, graph.node
    writers = _writers(columns, placements_of(columns))
    return _written_next(node, writers), _not_read(columns, node, writers)


@frozen(kw_only=True, eq=False)
class _Writers:
    """Records with a known offset that may count, in the order of log and offset."""

    log: Array
    offset: Array
    # Of their appends.
    row: Array


def _writers(columns: RecordRelations, placements: Placements) -> _Writers:
    """Appends acknowledged with acks=all, records of committed transactions, and all records that were
    read."""
    sent, operations = columns.sent, columns.operations
    alone = columns.txn[sent.row] < 0
    head = np.where(alone, sent.row, columns.txn[sent.row])
    kept = (
        (placements.offset >= 0) & (operations.outcome[sent.row] != FAIL) & (operations.outcome[head] != FAIL)
    )
    kept &= (sent.firm & (alone | (operations.outcome[head] == OK))) | ~placements.unread
    kept &= _unique(columns, sent.log) & ~loss_allowed(columns, sent.log, placements.offset)
    at = np.flatnonzero(kept)
    order = at[np.lexsort((placements.offset[at], sent.log[at]))]
    return _Writers(log=sent.log[order], offset=placements.offset[order], row=sent.row[order])


def _unique(columns: RecordRelations, log: Array) -> Array:
    unique = np.array([trace.unique_values for trace in columns.traces], np.bool_)
    of: Array = unique[columns.log_trace[log]] if len(log) else np.zeros(0, np.bool_)
    return of


def _read(columns: RecordRelations, node: Array) -> Edges:
    """wr: each read record, from its sender. Reads that asked for uncommitted records prove nothing."""
    sent, shown, operations = columns.sent, columns.shown, columns.operations
    sender = _sender_of(columns)
    kept = np.flatnonzero((sender >= 0) & _believed(columns) & _unique(columns, shown.log))
    source, target = node[sent.row[sender[kept]]], node[shown.row[kept]]
    failed = (operations.outcome[source] == FAIL) | (operations.outcome[sent.row[sender[kept]]] == FAIL)
    good = (source != target) & ~failed
    kept, source, target = kept[good], source[good], target[good]
    return Edges(
        source=source, target=target, log=shown.log[kept], offset=shown.offset[kept], part=shown.row[kept]
    )


def _believed(columns: RecordRelations) -> Array:
    """Which shown records were not asked for as uncommitted ones."""
    statements, row = columns.operations.statements, columns.shown.row
    if statements is None:
        return np.ones(len(row), np.bool_)
    believed: Array = statements.isolation[row] != READ_UNCOMMITTED
    return believed


def _sender_of(columns: RecordRelations) -> Array:
    """For each shown record, the row in `sent` with its log and value; -1 if there is none."""
    sent, shown = columns.sent, columns.shown
    if not len(sent.log) or not len(shown.log):
        return np.full(len(shown.log), NONE)
    mine, asked = _keys(columns)
    order = stable_order(mine)
    at = np.minimum(np.searchsorted(mine[order], asked), len(order) - 1)
    found: Array = np.where(mine[order][at] == asked, order[at], NONE)
    return found


def _keys(columns: RecordRelations) -> tuple[Array, Array]:
    """A number for log and value of each sent and each shown record."""
    sent, shown = columns.sent, columns.shown
    key = packed((np.concatenate((sent.log, shown.log)), np.concatenate((sent.value, shown.value))))
    return key[: len(sent.log)], key[len(sent.log) :]


def _written_next(node: Array, writers: _Writers) -> Edges:
    """ww: neighbours in the offset order of a log."""
    first, second = np.arange(max(len(writers.log) - 1, 0)), np.arange(1, max(len(writers.log), 1))
    source, target = node[writers.row[first]], node[writers.row[second]]
    kept = np.flatnonzero((writers.log[first] == writers.log[second]) & (source != target))
    second = second[kept]
    return Edges(
        source=source[kept],
        target=target[kept],
        log=writers.log[second],
        offset=writers.offset[second],
        part=writers.row[second],
    )


def _not_read(columns: RecordRelations, node: Array, writers: _Writers) -> Edges:
    """rw: from a reader to the writer of the first known record at or above its position, if it read none
    there itself.

    The position is the one after the last record that a node's polls returned of a log, or the start of an
    empty poll. Compacted logs have no such edges: a record that was not returned may have been removed.
    """
    shown, operations = columns.shown, columns.operations
    poll = (operations.function == POLL) & (operations.outcome == OK) & (operations.offset >= 0)
    nothing = np.empty(0, np.int64)
    none = Edges(source=nothing, target=nothing, log=nothing, offset=nothing, part=nothing)
    if not len(writers.log):
        return none
    empty = np.flatnonzero(poll & (np.diff(operations.records.start) == 0))
    own = _log_of_rows(columns, empty)
    reader = np.concatenate((node[shown.row], node[empty]))
    log = np.concatenate((shown.log, own))
    reached = np.concatenate((shown.offset + 1, operations.offset[empty]))
    part = np.concatenate((shown.row, empty))
    known = np.flatnonzero((log >= 0) & ~_compacted(columns)[log])
    order = known[np.lexsort((reached[known], log[known], reader[known]))]
    last = np.ones(len(order), np.bool_)
    last[:-1] = (reader[order][1:] != reader[order][:-1]) | (log[order][1:] != log[order][:-1])
    order = order[last]
    if not len(order):
        return none
    place = packed(
        (np.concatenate((writers.log, log[order])), np.concatenate((writers.offset, reached[order])))
    )
    at = np.searchsorted(place[: len(writers.log)], place[len(writers.log) :])
    inside = np.minimum(at, len(writers.log) - 1)
    found = (at < len(writers.log)) & (writers.log[inside] == log[order])
    found &= node[writers.row[inside]] != reader[order]
    kept = np.flatnonzero(found)
    return Edges(
        source=reader[order][kept],
        target=node[writers.row[inside[kept]]],
        log=log[order][kept],
        offset=writers.offset[inside[kept]],
        part=part[order][kept],
    )


def _log_of_rows(columns: RecordRelations, rows: Array) -> Array:
    """The log that each of these rows names by topic and partition; -1 for a log without records."""
    operations = columns.operations
    names = columns.logs_by_name
    asked = zip(
        operations.trace[rows].tolist(),
        operations.topic[rows].tolist(),
        operations.partition[rows].tolist(),
        strict=True,
    )
    return np.array([names.get(key, NONE) for key in asked], np.int64)


def _compacted(columns: RecordRelations) -> Array:
    """For each log whether its trace claims that it is compacted."""
    topics = columns.operations.topics
    return np.array(
        [
            topics[topic] in columns.traces[trace].claims.compacted
            for trace, topic in zip(columns.log_trace.tolist(), columns.log_topic.tolist(), strict=True)
        ],
        np.bool_,
    )


def _time(operations: OperationColumns, whole: Array, group: Array, first_moment: int) -> tuple[Edges, int]:
    """Edges for "ended before it began" among the whole rows of each group, through moments that are numbered
    from the first, and the number after the last. An operation without a certain end gives no order."""
    counted = np.isin(operations.function, (APPEND, POLL, TXN)) & whole
    slack = clock_errors(operations)
    ended = np.flatnonzero(counted & (operations.outcome == OK) & (operations.completion_time != NEVER))
    begun = np.flatnonzero(counted)
    node = np.concatenate((ended, begun))
    time = np.concatenate((operations.completion_time[ended] + slack[ended], operations.invoke_time[begun]))
    begins = np.concatenate((np.zeros(len(ended), np.bool_), np.ones(len(begun), np.bool_)))
    of = group[node]
    # at equal times beginnings come first: equal times are concurrent
    order = order_by((~begins, time, of))
    node, begins, of = node[order], begins[order], of[order]
    moment = first_moment + np.arange(len(node))
    new = np.ones(len(node), np.bool_)
    new[1:] = of[1:] != of[:-1]
    chained = np.flatnonzero(~new)
    ends, starts = np.flatnonzero(~begins), np.flatnonzero(begins & ~new)
    source = np.concatenate((node[ends], moment[chained - 1], moment[starts - 1]))
    target = np.concatenate((moment[ends], moment[chained], node[starts]))
    none = np.full(len(source), NONE)
    return Edges(source=source, target=target, log=none, offset=none, part=none), first_moment + len(node)
