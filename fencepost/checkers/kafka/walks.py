"""Compiled loops: for each turn of a consumer and each send of a producer, the one before it.

Owns the loops over turns in the order of processes. Must not know which records are at which offsets, claims
or findings.
"""

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.operation_columns import Array

POLLED, ASSIGNED, SUBSCRIBED, KEPT, JOINED, CRASHED = range(6)
"""Kinds of turns. KEPT follows an assignment, once for each log that it names."""
FIRST, NEXT, NEXT_SUBSCRIBED, WITHIN = range(4)
"""What a poll follows. FIRST: nothing that it must continue. NEXT: the last poll. NEXT_SUBSCRIBED: the last
poll, but rebalances in between are not recorded. WITHIN: a poll of the same transaction."""


@compiled
def consumer_walk(
    kind: Array,
    process: Array,
    pair: Array,
    last_offset: Array,
    txn: Array,
    committed: Array,
    generation: Array,
    invoke: Array,
    completion: Array,
    overlapping: Array,
    fresh: Array,
    processes: int,
    pairs: int,
) -> tuple[Array, Array]:
    """For each turn, in the order of processes: what it follows, and which turn that was (-1: none).

    pair: the index of (process, log). committed: whether the poll moves the consumer. fresh: whether the
    assignment starts over. A consumer keeps its position in a log while each assignment names that log. A
    join, a crash or another generation discards it.
    """
    follows = np.zeros(len(kind), np.int8)
    before = np.full(len(kind), -1, np.int64)
    stamp = np.zeros(processes, np.int64)
    subscribed = np.zeros(processes, np.bool_)
    pair_stamp = np.full(pairs, -1, np.int64)
    at = np.full(pairs, -1, np.int64)  # the turn that last moved the consumer
    inner = np.full(pairs, -1, np.int64)  # the last turn, whether or not it counts
    for n in range(len(kind)):
        p, q = process[n], pair[n]
        if kind[n] == ASSIGNED or kind[n] == SUBSCRIBED:
            stamp[p] += 1
            subscribed[p] = kind[n] == SUBSCRIBED
        elif kind[n] == KEPT:
            if pair_stamp[q] == stamp[p] - 1 and not fresh[n]:
                pair_stamp[q] = stamp[p]
        elif kind[n] == JOINED or kind[n] == CRASHED:
            stamp[p] += 2  # a stamp that no KEPT refers to
        else:
            known = pair_stamp[q] == stamp[p]
            earlier = inner[q]
            if txn[n] >= 0 and known and earlier >= 0 and txn[earlier] == txn[n]:
                follows[n], before[n] = WITHIN, earlier
            elif known and at[q] >= 0:
                earlier = at[q]
                if generation[earlier] == generation[n] and (
                    not overlapping[n] or completion[earlier] < invoke[n]
                ):
                    loose = subscribed[p] and generation[n] < 0
                    follows[n], before[n] = NEXT_SUBSCRIBED if loose else NEXT, earlier
            if not known:
                pair_stamp[q], at[q] = stamp[p], -1
            inner[q] = n
            if committed[n]:
                at[q] = n
    return follows, before


@compiled
def producer_walk(
    key: Array,
    offset_first: Array,
    offset_last: Array,
    counts: Array,
    invoke: Array,
    completion: Array,
    overlapping: Array,
    ending: Array,
) -> Array:
    """For each send, in the order of `key` (producer and log) and time: an earlier send at or above its
    offset, -1 if there is none.

    counts: whether a send may be the earlier one. ending: the sends in the order of key and completion. If
    sends of a process overlap, only a send that completed before counts as earlier.
    """
    before = np.full(len(key), -1, np.int64)
    best, ended = -1, 0
    for n in range(len(key)):
        if n == 0 or key[n] != key[n - 1]:
            best, ended = -1, n
        while ended < n:  # what completed before is among those that began before
            m = ending[ended] if overlapping[n] else ended
            if overlapping[n] and completion[m] >= invoke[n]:
                break
            if counts[m] and (best < 0 or offset_last[m] > offset_last[best]):
                best = m
            ended += 1
        if best >= 0 and offset_last[best] >= offset_first[n]:
            before[n] = best
    return before
