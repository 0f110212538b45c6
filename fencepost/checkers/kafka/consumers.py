"""Consumers: each poll continues where the previous one ended, within one assignment; within a transaction
always.

Owns poll_skip, position_regressed, and what the polls of one transaction add to skipped_offset and
unordered_read. Must not know the order of records within one poll (the log check covers it). The rules apply
to consumers only: to polls that do not say where they began, to polls of members, and to polls of processes
that assigned, subscribed or joined. A member whose join is cooperative goes on in what it keeps. A client
that names the offset itself may read anywhere.

A consumer may go back without a new assignment if the log was truncated meanwhile (Kafka's
OFFSET_OUT_OF_RANGE, and truncation detection, KIP-320):

    1. it reads up to offset 3: its position is 4
    2. the leader dies; the next one has lost what it had from offset 1 on: the log ends at 1
    3. it asks for offset 4, which is out of range, and begins anew: at the log's first record (earliest), or
       at the log's end (latest, KIP-320)
"""

import numpy as np
from attrs import frozen

from fencepost.checkers.kafka.kafka_findings import Found, finding, op
from fencepost.checkers.kafka.placements import Placements, excused
from fencepost.checkers.kafka.relations import ASSIGN, CRASH, FAIL, JOIN, OK, SUBSCRIBE, KafkaColumns
from fencepost.checkers.kafka.walks import (
    ASSIGNED,
    CRASHED,
    JOINED,
    KEPT,
    NEXT,
    NEXT_SUBSCRIBED,
    POLLED,
    SUBSCRIBED,
    WITHIN,
    consumer_walk,
)
from fencepost.checkers.log.log_rules import loss_in
from fencepost.checkers.operation_columns import NONE, Array, OperationColumns


@frozen(kw_only=True, eq=False)
class ConsumerSteps:
    """The steps from one poll of a consumer to its next poll of the same log, one entry per step."""

    # Index of the log.
    log: Array
    # Row of the later poll.
    row: Array
    # Row of the earlier poll.
    before: Array
    # First offset that the later poll returned.
    first: Array
    # Last offset that the earlier poll returned.
    last: Array
    # What the later poll follows, as FIRST to WITHIN of `walks`.
    how: Array
    # An occupied row between the two polls (-1: none).
    skipped: Array
    # Whether the later poll began at or below `last`.
    back: Array


def steps_of(columns: KafkaColumns, placements: Placements) -> ConsumerSteps:
    """Find all steps of all consumers.

    Args:
        columns: the relations of the traces.
        placements: the known places of records.

    Returns:
        the steps, in no particular order.
    """
    turns = _turns(columns)
    order = np.lexsort((turns.sub, turns.row, turns.invoke, turns.process))
    pair = np.zeros(len(order), np.int64)
    if len(order):
        _, pair = np.unique(turns.process * (columns.logs + 1) + turns.log, return_inverse=True)
        pair = pair.reshape(-1)
    operations, overlapping = columns.operations, _overlapping(columns)
    row = turns.row[order]
    txn = columns.txn[row]
    kept = np.isin(columns.process, columns.process[columns.extras.cooperative])
    generation = np.where(kept, NONE, columns.extras.generation)
    committed = (txn < 0) | (operations.outcome[txn] == OK)
    how, earlier = consumer_walk(
        turns.kind[order],
        turns.process[order],
        pair[order],
        turns.last[order],
        txn,
        committed,
        generation[row],
        operations.invoke_time[row],
        operations.completion_time[row],
        overlapping[operations.trace[row]],
        columns.extras.seeks[row],
        int(columns.process.max(initial=0)) + 1,
        int(pair.max(initial=0)) + 1,
    )
    at = np.flatnonzero(earlier >= 0)
    log, before, first = turns.log[order][at], earlier[at], turns.first[order][at]
    last = turns.last[order][before]
    outside = ~((how[at] == WITHIN) & _rebalanced(columns, txn[at], log))
    return ConsumerSteps(
        log=log[outside],
        row=row[at][outside],
        before=row[before][outside],
        first=first[outside],
        last=last[outside],
        how=how[at][outside],
        skipped=placements.occupied.between(log[outside], last[outside], first[outside]),
        back=first[outside] <= last[outside],
    )


@frozen(kw_only=True, eq=False)
class _Turns:
    """One row per turn. A turn is an event that moves a consumer, or the records of one log that it was
    shown."""

    # POLLED to CRASHED of `walks`.
    kind: Array
    # Row of the operation.
    row: Array
    # Order within the operation: an operation can have several turns.
    sub: Array
    # Index of the log; -1 if the turn is about none.
    log: Array
    # First offset of a poll.
    first: Array
    # Last offset of a poll.
    last: Array
    # Index of the process.
    process: Array
    # Invocation time in nanoseconds.
    invoke: Array


def _turns(columns: KafkaColumns) -> _Turns:
    operations, shown = columns.operations, columns.shown
    kinds = {ASSIGN: ASSIGNED, SUBSCRIBE: SUBSCRIBED, JOIN: JOINED, CRASH: CRASHED}
    moves = np.flatnonzero(
        np.isin(operations.function, list(kinds))
        & ((operations.outcome != FAIL) | (operations.function == CRASH))
    )
    kind = np.array([kinds[int(f)] for f in operations.function[moves].tolist()], np.int64)
    keeps = columns.extras.cooperative & (operations.function == JOIN)
    kind[keeps[moves]] = ASSIGNED
    assigning = moves[(kind == ASSIGNED) | (kind == SUBSCRIBED)]
    start = operations.positions.start
    of_position = np.repeat(np.arange(len(start) - 1), np.diff(start))
    named = np.flatnonzero((columns.log_of_position >= 0) & np.isin(of_position, assigning))
    in_poll = np.flatnonzero(_by_consumer(columns, moves)[shown.row])
    order = in_poll[np.lexsort((in_poll, shown.log[in_poll], shown.row[in_poll]))]
    same = (np.diff(shown.row[order]) == 0) & (np.diff(shown.log[order]) == 0)
    heads = np.flatnonzero(np.concatenate((np.ones(min(len(order), 1), np.bool_), ~same)))
    tails = np.append(heads[1:], len(order))[: len(heads)] - 1
    polled = order[heads]
    row = np.concatenate((moves, of_position[named], shown.row[polled]))
    nothing = np.full(len(moves) + len(named), NONE)
    return _Turns(
        kind=np.concatenate((kind, np.full(len(named), KEPT), np.full(len(polled), POLLED))),
        row=row,
        sub=np.concatenate((np.zeros(len(moves), np.int64), named + 1, np.arange(len(polled)))),
        log=np.concatenate(
            (np.full(len(moves), columns.logs), columns.log_of_position[named], shown.log[polled])
        ),
        first=np.concatenate((nothing, shown.offset[polled])),
        last=np.concatenate((nothing, shown.offset[order[tails]])),
        process=columns.process[row],
        invoke=np.where(keeps, operations.completion_time, operations.invoke_time)[row],
    )


def positioned(operations: OperationColumns) -> Array:
    """Which rows say where they began to read."""
    positions = operations.positions
    with_position = np.concatenate(([0], np.cumsum(positions.offset >= 0)))
    some: Array = (operations.offset >= 0) | (np.diff(with_position[positions.start]) > 0)
    return some


def _by_consumer(columns: KafkaColumns, moves: Array) -> Array:
    consumers = np.zeros(int(columns.process.max(initial=0)) + 1, np.bool_)
    consumers[columns.process[moves]] = True
    some: Array = consumers[columns.process] | columns.extras.member | ~positioned(columns.operations)
    return some


def _overlapping(columns: KafkaColumns) -> Array:
    return np.array([trace.concurrent_processes for trace in columns.traces], np.bool_)


def _rebalanced(columns: KafkaColumns, txn: Array, log: Array) -> Array:
    """Which (transaction, log) had a rebalance within the transaction that names the log, or that names no
    log."""
    joins = np.flatnonzero((columns.operations.function == JOIN) & (columns.txn >= 0))
    excused_pairs: set[tuple[int, int]] = set()
    whole: set[int] = set()
    start = columns.operations.positions.start
    for row in joins.tolist():
        logs = columns.log_of_position[start[row] : start[row + 1]].tolist()
        excused_pairs.update((int(columns.txn[row]), g) for g in logs)
        if not logs:
            whole.add(int(columns.txn[row]))
    pairs = zip(txn.tolist(), log.tolist(), strict=True)
    return np.array([pair in excused_pairs or pair[0] in whole for pair in pairs], np.bool_)


def consumer_findings(columns: KafkaColumns, placements: Placements, steps: ConsumerSteps) -> Found:
    """Find skips and regressions of positions.

    Args:
        columns: the relations of the traces.
        placements: the known places of records.
        steps: the steps, from `steps_of`.

    Returns:
        at most one finding for each log and anomaly.
    """
    for how, skip, back in (
        (NEXT, "poll_skip", "position_regressed"),
        (WITHIN, "skipped_offset", "unordered_read"),
    ):
        asked = steps.how == how
        yield from _skips(columns, placements, steps, np.flatnonzero(asked & (steps.skipped >= 0)), skip)
        behind = np.array(
            [
                i
                for i in np.flatnonzero(asked & steps.back).tolist()
                if not _began_anew(columns, placements, steps, i)
            ],
            np.int64,
        )
        for i in behind[np.unique(steps.log[behind], return_index=True)[1]].tolist():
            yield finding(
                columns,
                back,
                int(steps.log[i]),
                offset=int(steps.first[i]),
                rows=(int(steps.row[i]), int(steps.before[i])),
                expected=f"records beyond offset {steps.last[i]}, where the consumer was after "
                f"{op(columns, int(steps.before[i]))}",
                seen=f"{op(columns, int(steps.row[i]))} began at offset {steps.first[i]}",
            )


def _skips(
    columns: KafkaColumns, placements: Placements, steps: ConsumerSteps, rows: Array, anomaly: str
) -> Found:
    occupied, done = placements.occupied, set()
    for i in rows.tolist():
        g = int(steps.log[i])
        if g in done:
            continue
        missing = _unexcused(columns, placements, g, int(steps.skipped[i]), int(steps.first[i]))
        if missing < 0:
            continue
        done.add(g)
        offset, witness = int(occupied.offset[missing]), int(occupied.witness[missing])
        yield finding(
            columns,
            anomaly,
            g,
            offset=offset,
            rows=(int(steps.row[i]), int(steps.before[i]), witness),
            expected=f"offset {offset}, which {op(columns, witness)} proves to hold a record, after offset "
            f"{steps.last[i]} of "
            f"{op(columns, int(steps.before[i]))}",
            seen=f"{op(columns, int(steps.row[i]))} began at offset {steps.first[i]}",
        )


def _unexcused(columns: KafkaColumns, placements: Placements, g: int, row: int, before: int) -> int:
    """The first occupied row of log `g`, from `row` on and below the offset `before`, that no claim excuses;
    -1 if there is none."""
    occupied = placements.occupied
    while row < len(occupied.log) and occupied.log[row] == g and occupied.offset[row] < before:
        if not excused(columns, placements, g, int(occupied.offset[row])):
            return row
        row += 1
    return -1


def _began_anew(columns: KafkaColumns, placements: Placements, steps: ConsumerSteps, i: int) -> bool:
    """Whether step `i` went back because the last record that the consumer had read may be lost. Its position
    was then beyond the end of the log.

    In that case it may begin at or above the end that the loss left, or at the log's first record. Any
    position between these is wrong.
    """
    g, first, last = int(steps.log[i]), int(steps.first[i]), int(steps.last[i])
    claims = columns.traces[columns.log_trace[g]].claims
    topic = columns.operations.topics[columns.log_topic[g]]
    starts = [
        start for start, end in loss_in(claims, topic, int(columns.log_partition[g])) if start <= last < end
    ]
    if not starts or starts[0] <= first:
        return bool(starts)
    lowest = int(np.searchsorted(placements.occupied.log, g))
    return _unexcused(columns, placements, g, lowest, first) < 0


def allowed_steps(steps: ConsumerSteps) -> tuple[Array, Array]:
    """The logs in which a subscribed consumer skipped, and those in which it went back, between polls.
    Rebalances may explain both, so they are only counted."""
    loose = steps.how == NEXT_SUBSCRIBED
    return steps.log[loose & (steps.skipped >= 0)], steps.log[loose & steps.back]
