"""Producers: a later send of a process has a higher offset, as far as Kafka promises it.

Owns nonmonotonic_send. If the earlier record was acknowledged with acks=all, the log check covers it
(append_inversion). This module covers two other cases: earlier records with acks=1 that were read, and
unknown outcomes of an idempotent producer, because sequence numbers rule out a later append. An unknown
outcome without idempotence may take effect at any later time; acks=0 gives no information. The rule does not
apply if the claim `duplicates` says that records may occur twice. Then retries without idempotence append a
record again, or a log that lost its producer state accepts late retries.

If a process has several sends in flight, a send is earlier only if it ended before the other began. The sends
of an idempotent producer keep their order in any case (KAFKA-5494). That includes acknowledged ones, which
the log check treats as concurrent.
"""

import numpy as np

from fencepost.checkers.kafka.extras import Extras
from fencepost.checkers.kafka.kafka_findings import Found, finding, op
from fencepost.checkers.kafka.placements import Placements, loss_allowed
from fencepost.checkers.kafka.relations import APPEND, FAIL, OK, KafkaColumns
from fencepost.checkers.kafka.walks import producer_walk
from fencepost.checkers.operation_columns import Array, OperationColumns
from fencepost.traces.operations import ACKS_ALL, ACKS_NONE


def producer_findings(columns: KafkaColumns, placements: Placements) -> Found:
    """Find sends below an earlier send of the same producer.

    Args:
        columns: the relations of the traces.
        placements: the known places of records.

    Returns:
        at most one finding for each log.
    """
    first, last = _spans(columns)
    sent = columns.sent
    rows = np.flatnonzero(_asked(columns, placements))
    ordered = _in_order_of_sending(columns)
    counts = may_be_first(columns.operations, columns.extras) | (ordered & (columns.operations.outcome == OK))
    if not counts[sent.row[rows]].any():
        return
    heads, tails = first[rows], last[rows]
    rows, low, high = (
        rows[heads == rows],
        placements.offset[rows[heads == rows]],
        placements.offset[tails[heads == rows]],
    )
    operations, extras = columns.operations, columns.extras
    row, log = sent.row[rows], sent.log[rows]
    identity = np.array((columns.process[row], log, extras.producer_id[row], extras.producer_epoch[row]))
    _, key = np.unique(identity, axis=1, return_inverse=True)
    order = np.lexsort((row, operations.invoke_time[row], key.reshape(-1)))
    # numbered as soon as it is sent
    over = np.where(ordered, operations.invoke_time, operations.completion_time)
    key = key.reshape(-1)[order]
    before = producer_walk(
        key,
        low[order],
        high[order],
        counts[row][order],
        operations.invoke_time[row][order],
        over[row][order],
        _overlapping(columns)[row][order],
        np.lexsort((over[row][order], key)),
    )
    bad = np.flatnonzero(before >= 0)
    for n in bad[np.unique(log[order][bad], return_index=True)[1]].tolist():
        later, earlier = order[n], order[before[n]]
        yield finding(
            columns,
            "nonmonotonic_send",
            int(log[later]),
            offset=int(low[later]),
            rows=(int(row[later]), int(row[earlier])),
            expected=f"offsets above {high[earlier]}, the offset of {op(columns, int(row[earlier]))} of the "
            f"same process",
            seen=f"{op(columns, int(row[later]))}, sent after it, is at offset {low[later]}",
        )


def _overlapping(columns: KafkaColumns) -> Array:
    """Which rows belong to processes that may have several operations in flight."""
    concurrent = np.array([trace.concurrent_processes for trace in columns.traces], np.bool_)
    return concurrent[columns.operations.trace]


def _in_order_of_sending(columns: KafkaColumns) -> Array:
    """Which rows are appends of an idempotent producer that has several in flight."""
    numbered: Array = (columns.operations.function == APPEND) & (columns.extras.producer_id >= 0)
    return numbered & _overlapping(columns)


def may_be_first(operations: OperationColumns, extras: Extras) -> Array:
    """Which rows are appends that cannot take effect after they ended, and that the log check does not order.

    Args:
        operations: the rows.
        extras: more columns of the same rows.

    Returns:
        one boolean per row.
    """
    acknowledged = operations.outcome == OK
    firm = acknowledged & (operations.acks == ACKS_ALL) & (operations.offset >= 0)
    settled = acknowledged | ((extras.producer_id >= 0) & (operations.outcome != FAIL))
    some: Array = (operations.function == APPEND) & settled & ~firm & (operations.acks != ACKS_NONE)
    return some


def _spans(columns: KafkaColumns) -> tuple[Array, Array]:
    """For each sent record, the first and the last record of its append."""
    row = columns.sent.row
    heads = np.flatnonzero(np.diff(row, prepend=-1))
    lengths = np.diff(np.append(heads, len(row)))
    return np.repeat(heads, lengths), np.repeat(heads + lengths - 1, lengths)


def _asked(columns: KafkaColumns, placements: Placements) -> Array:
    """Which records have a place that the rule may use: only those of complete appends."""
    sent, operations = columns.sent, columns.operations
    first, last = _spans(columns)
    placed = placements.offset >= 0
    placed &= (operations.acks[sent.row] != ACKS_NONE) & (operations.outcome[sent.row] != FAIL)
    placed &= ~loss_allowed(columns, sent.log, placements.offset)
    retried = np.array([trace.claims.duplicates for trace in columns.traces], np.bool_)
    placed &= ~retried[operations.trace[sent.row]]
    whole: Array = placed[first] & placed[last] if len(placed) else placed
    return whole
