"""Coverage: an acknowledged record is read by some consumer, if consumers read beyond it.

Owns lost_write for polls that do not say where they began, and unseen. The check assumes that such polls
start at the beginning of the log (auto.offset.reset=earliest). Then together they have passed every offset up
to the highest one that they returned. A record is also lost if another value replaced it at its offset. The
log check reports that the offset had two values (inconsistent_offsets), and covers polls that say where they
began.
"""

import numpy as np

from fencepost.checkers.kafka.consumers import positioned
from fencepost.checkers.kafka.kafka_findings import Found, finding, op
from fencepost.checkers.kafka.placements import Placements, excused, loss_allowed
from fencepost.checkers.kafka.relations import ASSIGN, OK, POLL, KafkaColumns
from fencepost.checkers.operation_columns import NONE, Array


def coverage_findings(columns: KafkaColumns, placements: Placements) -> Found:
    """Find acknowledged records that were not read.

    Args:
        columns: the relations of the traces.
        placements: the known places of records.

    Returns:
        at most one finding for each log and anomaly.
    """
    sent, shown = columns.sent, columns.shown
    passing = ~(positioned(columns.operations) | columns.extras.member)[shown.row]
    highest = _highest(columns.logs, shown.log[passing], shown.offset[passing], np.flatnonzero(passing))
    missing = np.flatnonzero(sent.firm & placements.unread)
    if not len(missing):
        return
    missing = missing[~loss_allowed(columns, sent.log[missing], sent.offset_sent[missing])]
    bound = np.where(highest >= 0, shown.offset[highest] if len(shown.offset) else NONE, NONE)
    below = sent.offset_sent[missing] <= bound[sent.log[missing]]
    yield from _lost(columns, placements, missing[below], highest)
    above = missing[~below]
    yield from _unseen(columns, placements, above[~_replaced(columns, above)])


def _highest(logs: int, log: Array, offset: Array, index: Array) -> Array:
    """For each log, the index of a row with the highest offset; -1 for a log without rows."""
    highest = np.full(logs, NONE)
    order = np.lexsort((offset, log))
    highest[log[order]] = index[order]  # the last assignment to a log wins, and it has the highest offset
    return highest


def _replaced(columns: KafkaColumns, missing: Array) -> Array:
    """Which of the records have an offset at which a poll showed another value. The log check reports that
    (inconsistent_offsets)."""
    sent, shown = columns.sent, columns.shown
    offset_sent = {
        (g, o) for g, o in zip(sent.log[missing].tolist(), sent.offset_sent[missing].tolist(), strict=True)
    }
    taken = {
        pair for pair in zip(shown.log.tolist(), shown.offset.tolist(), strict=True) if pair in offset_sent
    }
    pairs = zip(sent.log[missing].tolist(), sent.offset_sent[missing].tolist(), strict=True)
    return np.array([pair in taken for pair in pairs], np.bool_)


def _lost(columns: KafkaColumns, placements: Placements, lost: Array, highest: Array) -> Found:
    sent, shown, done = columns.sent, columns.shown, set()
    for i in lost.tolist():
        g, offset = int(sent.log[i]), int(sent.offset_sent[i])
        if g in done or excused(columns, placements, g, offset):
            continue
        done.add(g)
        append, poll = int(sent.row[i]), int(shown.row[highest[g]])
        yield finding(
            columns,
            "lost_write",
            g,
            offset=offset,
            rows=(append, poll),
            expected=f"value {sent.value[i]} at offset {offset}, acknowledged to {op(columns, append)}, in "
            f"some read",
            seen=f"no read has it, though {op(columns, poll)} was at offset {shown.offset[highest[g]]}",
        )


def _unseen(columns: KafkaColumns, placements: Placements, missing: Array) -> Found:
    """Records that a consumer missed. It sought the beginning after their acknowledgement, read until it
    found nothing more, and did not get them."""
    sent, operations, done = columns.sent, columns.operations, set()
    looks = _last_looks(columns, set(sent.log[missing].tolist()))
    for i in missing.tolist():
        g, append = int(sent.log[i]), int(sent.row[i])
        if g in done or g not in looks or excused(columns, placements, g, int(sent.offset_sent[i])):
            continue
        for began, poll in looks[g]:
            if operations.completion_time[append] < operations.invoke_time[began]:
                done.add(g)
                yield finding(
                    columns,
                    "unseen",
                    g,
                    offset=int(sent.offset_sent[i]),
                    rows=(append, poll, began),
                    expected=f"value {sent.value[i]} at offset {sent.offset_sent[i]}, acknowledged to "
                    f"{op(columns, append)}, in some read",
                    seen=f"no read has it; {op(columns, began)} sought the beginning after that, and "
                    f"{op(columns, poll)} found nothing more",
                )
                break


def _last_looks(columns: KafkaColumns, logs: set[int]) -> dict[int, list[tuple[int, int]]]:
    """For each log: the assign that sought its beginning, and the last poll of that consumer, if that poll
    returned nothing of the log."""
    operations, shown = columns.operations, columns.shown
    start = operations.positions.start
    looks: dict[int, list[tuple[int, int]]] = {}
    assigns = np.flatnonzero((operations.function == ASSIGN) & (operations.outcome == OK))
    last_assign = {int(columns.process[row]): row for row in assigns.tolist()}
    polls = np.flatnonzero((operations.function == POLL) & (operations.outcome == OK))
    last_poll = {int(columns.process[row]): row for row in polls.tolist()}
    for process, began in last_assign.items():
        poll = last_poll.get(process, -1)
        if not columns.extras.seeks[began] or poll < 0:
            continue
        if operations.invoke_time[poll] < operations.completion_time[began]:
            continue
        brought = set(shown.log[shown.row == poll].tolist())
        named = set(columns.log_of_position[start[began] : start[began + 1]].tolist()) & logs
        for g in sorted(named - brought):
            looks.setdefault(g, []).append((began, poll))
    return looks
