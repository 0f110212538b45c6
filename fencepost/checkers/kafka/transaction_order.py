"""Transactions: a transaction must not read its own records before it commits, and its records must be in
order.

Owns precommitted_read, int_nonmonotonic_send and the count of int_send_skip. The order of polls within a
transaction is in `consumers`.
"""

from collections import defaultdict
from itertools import pairwise

import numpy as np

from fencepost.checkers.kafka.kafka_findings import Found, finding, op
from fencepost.checkers.kafka.placements import Placements, loss_allowed
from fencepost.checkers.kafka.relations import FAIL, KafkaColumns
from fencepost.checkers.operation_columns import NONE, Array


def transaction_findings(columns: KafkaColumns, placements: Placements) -> Found:
    """Find transactions that read their own records, and records of a transaction that are out of order.

    Args:
        columns: the relations of the traces.
        placements: the known places of records.

    Returns:
        at most one finding for each log and anomaly.
    """
    if (columns.txn >= 0).any():
        yield from _precommitted(columns)
        yield from _nonmonotonic(columns, placements)


def _precommitted(columns: KafkaColumns) -> Found:
    sent, shown = columns.sent, columns.shown
    parts = np.flatnonzero(columns.txn[sent.row] >= 0)
    own: dict[tuple[int, int, int], int] = {}
    for txn, g, value, row in zip(
        columns.txn[sent.row[parts]].tolist(),
        sent.log[parts].tolist(),
        sent.value[parts].tolist(),
        sent.row[parts].tolist(),
        strict=True,
    ):
        own.setdefault((txn, g, value), row)
    done: set[int] = set()
    for i in np.flatnonzero(columns.txn[shown.row] >= 0).tolist():
        txn, g, value = int(columns.txn[shown.row[i]]), int(shown.log[i]), int(shown.value[i])
        sender = own.get((txn, g, value))
        if sender is None or g in done:
            continue
        done.add(g)
        poll = int(shown.row[i])
        yield finding(
            columns,
            "precommitted_read",
            g,
            offset=int(shown.offset[i]),
            rows=(poll, sender, txn),
            expected=f"nothing of {op(columns, sender)} before its transaction, {op(columns, txn)}, has "
            f"committed",
            seen=f"{op(columns, poll)} of the same transaction read value {value} at offset "
            f"{shown.offset[i]}",
        )


def _sent_together(columns: KafkaColumns, placements: Placements) -> list[tuple[int, list[int]]]:
    """(log, the records that one transaction sent there, by row in `sent` and in the order of sending). Every
    record has a known place."""
    sent, operations = columns.sent, columns.operations
    txn = columns.txn[sent.row]
    offset = placements.offset
    usable = (txn >= 0) & (operations.outcome[sent.row] != FAIL) & (offset >= 0)
    usable &= ~loss_allowed(columns, sent.log, offset)
    by_txn: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i in np.flatnonzero(usable).tolist():
        by_txn[int(txn[i]), int(sent.log[i])].append(i)
    return [(g, members) for (_, g), members in by_txn.items()]


def _nonmonotonic(columns: KafkaColumns, placements: Placements) -> Found:
    sent, offset, done = columns.sent, placements.offset, set()
    for g, members in _sent_together(columns, placements):
        i, j = (NONE, NONE) if g in done else _at_or_below_earlier(sent.row, offset, members)
        if j == NONE:
            continue
        done.add(g)
        earlier, later = int(sent.row[i]), int(sent.row[j])
        yield finding(
            columns,
            "int_nonmonotonic_send",
            g,
            offset=int(offset[j]),
            rows=(later, earlier, int(columns.txn[later])),
            expected=f"offsets above {offset[i]}, the offset of {op(columns, earlier)} of the same "
            f"transaction",
            seen=f"{op(columns, later)}, sent after it, is at offset {offset[j]}",
        )


def _at_or_below_earlier(row: Array, offset: Array, members: list[int]) -> tuple[int, int]:
    """(i, j): the first of these records, j, that is at or below a record of an earlier append, and the
    highest such record, i. NONE twice if there is none."""
    before = here = NONE  # the highest record of earlier appends, and of the current append so far
    for j in members:
        if here != NONE and row[here] != row[j]:
            before = here if before == NONE or offset[here] > offset[before] else before
            here = NONE
        if before != NONE and offset[j] <= offset[before]:
            return before, j
        if here == NONE or offset[j] > offset[here]:
            here = j
    return NONE, NONE


def skipped_sends(columns: KafkaColumns, placements: Placements) -> list[int]:
    """Count the pairs of records of a transaction with a foreign record between them (int_send_skip).

    Args:
        columns: the relations of the traces.
        placements: the known places of records.

    Returns:
        the log of each such pair.
    """
    together = _sent_together(columns, placements) if (columns.txn >= 0).any() else []
    pairs = [(g, i, j) for g, members in together for i, j in pairwise(members)]
    if not pairs:
        return []
    log, i, j = (np.array(column) for column in zip(*pairs, strict=True))
    between = placements.occupied.between(log, placements.offset[i], placements.offset[j])
    skipped: list[int] = log[between >= 0].tolist()
    return skipped
