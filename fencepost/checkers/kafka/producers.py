"""Producers: what a process sends later stands higher, as far as Kafka promises it to this producer.

Owns nonmonotonic_send. What stands below an earlier record that was acknowledged with acks=all is the log judge's (append_inversion); what remains
are earlier records with acks=1 that were read, and unknown outcomes of an idempotent producer: the sequence numbers leave them no later moment. An unknown
outcome without idempotence may happen at any later time; acks=0 says nothing; retries without idempotence (the claim `duplicates`) may place
a record again.
"""

import numpy as np

from fencepost.checkers.columns import Array, OperationColumns
from fencepost.checkers.kafka.columns import APPEND, FAIL, OK, KafkaColumns
from fencepost.checkers.kafka.extras import Extras
from fencepost.checkers.kafka.findings import Found, finding, op
from fencepost.checkers.kafka.placements import Placements, loss_allowed
from fencepost.checkers.kafka.walks import producer_walk
from fencepost.traces.operations import ACKS_ALL, ACKS_NONE


def producer_findings(columns: KafkaColumns, placements: Placements) -> Found:
    """At most one finding for each log."""
    first, last = _spans(columns, placements)
    sent = columns.sent
    rows = np.flatnonzero(_asked(columns, placements))
    if not may_be_first(columns.operations, columns.extras)[sent.row[rows]].any():
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
    concurrent = np.array([trace.concurrent_processes for trace in columns.traces], np.bool_)
    before = producer_walk(
        key.reshape(-1)[order],
        low[order],
        high[order],
        may_be_first(operations, extras)[row][order],
        operations.invoke_time[row][order],
        operations.completion_time[row][order],
        concurrent[operations.trace[row]][order],
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
            expected=f"offsets above {high[earlier]}, where {op(columns, int(row[earlier]))} of the same process stands",
            seen=f"{op(columns, int(row[later]))}, sent after it, stands at offset {low[later]}",
        )


def may_be_first(operations: OperationColumns, extras: Extras) -> Array:
    """Which rows are appends that cannot happen after they ended, and that the log judge does not bound."""
    acknowledged = operations.outcome == OK
    firm = acknowledged & (operations.acks == ACKS_ALL) & (operations.offset >= 0)
    settled = acknowledged | ((extras.producer_id >= 0) & (operations.outcome != FAIL))
    some: Array = (operations.function == APPEND) & settled & ~firm & (operations.acks != ACKS_NONE)
    return some


def _spans(columns: KafkaColumns, placements: Placements) -> tuple[Array, Array]:
    """For each record sent, the first and the last record of its append."""
    row = columns.sent.row
    heads = np.flatnonzero(np.diff(row, prepend=-1))
    lengths = np.diff(np.append(heads, len(row)))
    return np.repeat(heads, lengths), np.repeat(heads + lengths - 1, lengths)


def _asked(columns: KafkaColumns, placements: Placements) -> Array:
    """Which records have a place that the rule may use: whole appends only."""
    sent, operations = columns.sent, columns.operations
    first, last = _spans(columns, placements)
    placed = (placements.offset >= 0) & (placements.read | sent.firm)
    placed &= (operations.acks[sent.row] != ACKS_NONE) & (operations.outcome[sent.row] != FAIL)
    placed &= ~loss_allowed(columns, sent.log, placements.offset)
    retried = np.array([trace.claims.duplicates for trace in columns.traces], np.bool_)
    placed &= ~retried[operations.trace[sent.row]] | (columns.extras.producer_id[sent.row] >= 0)
    whole: Array = placed[first] & placed[last] if len(placed) else placed
    return whole
