"""COMMIT-SAFE, LOG-MATCH, HW-BOUNDS, HW-KEPT and EPOCH-MONO of brokers over columns: the events of a
replica's log, and the end of the trace.

Owns the effect of these events and whether they may break one of the five. Must not know ZooKeeper's state
beyond the ISR.
"""

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels import column, words
from fencepost.checkers.events.kernels.column import Events, claims_compaction, end_of_loss
from fencepost.checkers.events.kernels.invariants_compaction import compacted_away
from fencepost.checkers.events.kernels.invariants_deletion import gone_from
from fencepost.checkers.events.kernels.invariants_fields import (
    BOUND,
    COMMITTED,
    EPOCHS,
    EXPOSED,
    FINAL,
    FINAL_HIGH_WATERMARK,
    FINAL_START,
    HIGHEST,
    ISR,
    KNOWN_EPOCH,
    LEAST,
    LED,
    LOG,
    NAMED,
    START,
)
from fencepost.checkers.events.kernels.logs import (
    END,
    append,
    extend,
    first_difference,
    names_another,
    new_log,
    resize,
)
from fencepost.checkers.events.kernels.state import (
    CODE,
    ITEM,
    KEYS,
    NEXT,
    NOTHING,
    TRACE,
    TraceState,
    listed,
    log_of,
)


@compiled_within
def log_written(state: TraceState, events: Events, i: int, row: int) -> bool:
    """Write an append or a run of a dump into the log `row`. Values without an offset or an epoch are
    suspicious."""
    start, stop = events.of[column.VALUES_AT, i], events.of[column.VALUES_TO, i]
    if stop > start and (events.of[column.OFFSET, i] < 0 or events.of[column.LEADER_EPOCH, i] < 0):
        return True
    append(
        state.logs,
        row,
        events.of[column.OFFSET, i],
        events.of[column.LEADER_EPOCH, i],
        events.value,
        start,
        stop,
    )
    return False


@compiled_within
def names(state: TraceState, events: Events, i: int, key: int) -> bool:
    """LOG-MATCH, first half, event `i` of partition `key`: (offset, leader epoch) names one record for
    ever."""
    start, stop = events.of[column.VALUES_AT, i], events.of[column.VALUES_TO, i]
    if stop == start:
        return False
    epoch = listed(state, key, EPOCHS, events.of[column.LEADER_EPOCH, i])
    row = state.item[epoch, NAMED]
    if row == NOTHING:
        row = new_log(state.logs)
        state.item[epoch, NAMED] = row
    return names_another(state.logs, row, events.of[column.OFFSET, i], events.value, start, stop)


@compiled_within
def holds_log(state: TraceState, events: Events, i: int, key: int) -> bool:
    """APPENDED: event `i` of partition `key`."""
    row = log_of(state, key, events.of[column.NODE, i], LOG)
    if log_written(state, events, i, row):
        return True
    if events.of[column.END_OFFSET, i] > state.logs.size[row, END]:
        resize(state.logs, row, events.of[column.END_OFFSET, i])
    return names(state, events, i, key)


@compiled_within
def dumped(state: TraceState, events: Events, i: int, key: int) -> bool:
    """REPLICA_LOG: event `i` of partition `key`. Also DEL-COMPLETE: a deleted topic leaves no replica."""
    node = events.of[column.NODE, i]
    row = log_of(state, key, node, FINAL)
    some = events.of[column.VALUES_TO, i] > events.of[column.VALUES_AT, i]
    if (some and log_written(state, events, i, row)) or gone_from(state, events, i, key):
        return True
    if events.of[column.END_OFFSET, i] > state.logs.size[row, END]:
        resize(state.logs, row, events.of[column.END_OFFSET, i])
    state.replica[key, node, FINAL_START] = events.of[column.LOG_START_OFFSET, i]
    state.replica[key, node, FINAL_HIGH_WATERMARK] = events.of[column.HIGH_WATERMARK, i]
    return names(state, events, i, key)


@compiled_within
def bounded(state: TraceState, events: Events, i: int, key: int, end: int) -> bool:
    """HW-BOUNDS: log start offset <= high watermark <= log end offset."""
    high_watermark = events.of[column.HIGH_WATERMARK, i]
    return bool(
        state.replica[key, events.of[column.NODE, i], BOUND] <= high_watermark
        and (end < 0 or high_watermark <= end)
    )


@compiled_within
def started_at(state: TraceState, events: Events, i: int, key: int) -> bool:
    """LOG_START: event `i` of partition `key`."""
    start = events.of[column.LOG_START_OFFSET, i]
    if start < 0:
        return True
    state.replica[key, events.of[column.NODE, i], START] = start
    state.replica[key, events.of[column.NODE, i], BOUND] = start
    return not bounded(state, events, i, key, events.of[column.END_OFFSET, i])


@compiled_within
def recovered(state: TraceState, events: Events, i: int, key: int) -> bool:
    """LOG_RECOVERED: event `i` of partition `key`."""
    node, start = events.of[column.NODE, i], events.of[column.LOG_START_OFFSET, i]
    if start >= 0:
        state.replica[key, node, START] = start
        state.replica[key, node, BOUND] = start
    resize(state.logs, log_of(state, key, node, LOG), events.of[column.OFFSET, i])
    kept = keeps(state, events, i, key)
    return not (kept and bounded(state, events, i, key, events.of[column.OFFSET, i]))


@compiled_within
def keeps(state: TraceState, events: Events, i: int, key: int) -> bool:
    """HW-KEPT, event `i` of partition `key`: a start recovers what the checkpoint had, or more. (The plain
    code decides what a lying disk may have lost.)"""
    node, high_watermark = events.of[column.NODE, i], events.of[column.HIGH_WATERMARK, i]
    least = state.replica[key, node, LEAST]
    state.replica[key, node, LEAST] = (
        high_watermark if high_watermark > events.of[column.LOG_START_OFFSET, i] else 0
    )
    return bool(high_watermark >= min(least, events.of[column.OFFSET, i]))


@compiled_within
def truncated(state: TraceState, events: Events, i: int, key: int) -> bool:
    """TRUNCATED: the events after it report what it left."""
    row = log_of(state, key, events.of[column.NODE, i], LOG)
    if events.of[column.CAUSE, i] == words.FULL:
        resize(state.logs, row, 0)
    resize(state.logs, row, events.of[column.OFFSET, i])
    state.replica[key, events.of[column.NODE, i], BOUND] = 0
    return False


@compiled_within
def lost(state: TraceState, events: Events, key: int, row: int, start: int, end: int) -> bool:
    """COMMIT-SAFE: whether log `row` lacks a record from `start` to `end` that was exposed and may not be
    lost."""
    while start < end:
        offset = first_difference(state.logs, row, state.key[key, COMMITTED], start, end)
        if offset < 0:
            return False
        start = end_of_loss(events.claims, events.allowed, state.run[TRACE], state.key[key, CODE], offset)
        if start == offset:
            return True
    return False


@compiled_within
def committed_log(state: TraceState, key: int) -> int:
    """The exposed log of partition `key`, from `state`; made if it is missing."""
    if state.key[key, COMMITTED] == NOTHING:
        state.key[key, COMMITTED] = new_log(state.logs)
    return int(state.key[key, COMMITTED])


@compiled_within
def exposed(state: TraceState, events: Events, i: int, key: int) -> bool:
    """HIGH_WATERMARK: event `i` of partition `key`."""
    replica = state.replica[key, events.of[column.NODE, i]]
    replica[LEAST] = min(replica[LEAST], events.of[column.HIGH_WATERMARK, i])
    if not bounded(state, events, i, key, events.of[column.OFFSET, i]):
        return True
    if events.of[column.CAUSE, i] != words.LEADER:
        return False
    node, epoch, end = (
        events.of[column.NODE, i],
        events.of[column.LEADER_EPOCH, i],
        events.of[column.HIGH_WATERMARK, i],
    )
    committed, log = committed_log(state, key), log_of(state, key, node, LOG)
    before = state.logs.size[committed, END]
    if state.key[key, EXPOSED] > epoch and lost(
        state, events, key, log, state.replica[key, node, START], min(end, before)
    ):
        return True
    if end > before:
        extend(state.logs, committed, log, end)
    item = listed(state, key, EPOCHS, epoch)
    state.item[item, HIGHEST] = max(state.item[item, HIGHEST], end, 0)
    state.key[key, EXPOSED] = max(state.key[key, EXPOSED], epoch)
    return False


@compiled_within
def exposed_up_to(state: TraceState, key: int, epoch: int) -> int:
    """The highest high watermark that leaders of `epoch` and below exposed."""
    highest, item = 0, state.key[key, EPOCHS]
    while item != NOTHING:
        if state.item[item, ITEM] <= epoch:
            highest = max(highest, state.item[item, HIGHEST])
        item = state.item[item, NEXT]
    return highest


@compiled_within
def became(state: TraceState, events: Events, i: int, key: int) -> bool:
    """BECAME_LEADER, BECAME_FOLLOWER: event `i` of partition `key`."""
    node, epoch = events.of[column.NODE, i], events.of[column.LEADER_EPOCH, i]
    if epoch <= state.replica[key, node, KNOWN_EPOCH] or not bounded(
        state, events, i, key, events.of[column.OFFSET, i]
    ):
        return True
    state.replica[key, node, KNOWN_EPOCH] = epoch
    if events.of[column.NAME, i] != words.BECAME_LEADER:
        return False
    committed_log(state, key)
    log, start = log_of(state, key, node, LOG), state.replica[key, node, START]
    if lost(state, events, key, log, start, exposed_up_to(state, key, epoch)):
        return True
    item = listed(state, key, EPOCHS, epoch)
    if state.item[item, LED] == NOTHING:
        state.item[item, LED] = node
    return bool(state.item[item, LED] != node)


@compiled_within
def at_the_end(state: TraceState, events: Events) -> bool:
    """COMMIT-SAFE of the ISR members, and LOG-MATCH, second half, with the final `state` and the claims in
    `events`: replicas agree below the lower of their high watermarks."""
    wrong, compacted = False, claims_compaction(events, state.run[TRACE])
    for key in range(state.run[KEYS]):
        wrong = wrong or dumps_differ(state, events, key, compacted)
    return wrong


@compiled_within
def dumps_differ(state: TraceState, events: Events, key: int, compacted: bool) -> bool:
    """Whether the dumps of partition `key` may differ from what was exposed, or from each other. compacted:
    whether its topic is compacted."""
    logs, nodes = state.logs, state.replica.shape[1]
    for node in range(nodes):
        final, start = state.replica[key, node, FINAL], state.replica[key, node, FINAL_START]
        if final == NOTHING:
            continue
        if state.key[key, ISR] >> node & 1 and state.key[key, COMMITTED] != NOTHING:
            end = logs.size[state.key[key, COMMITTED], END]
            if lost(state, events, key, final, max(start, 0), end):
                return True
            if compacted and compacted_away(state, events, key, final, start):
                return True
        for other_node in range(node + 1, nodes):
            other = state.replica[key, other_node, FINAL]
            if other == NOTHING:
                continue
            shown = min(
                state.replica[key, node, FINAL_HIGH_WATERMARK],
                state.replica[key, other_node, FINAL_HIGH_WATERMARK],
            )
            first = max(start, state.replica[key, other_node, FINAL_START], 0)
            if first_difference(logs, final, other, first, min(shown, logs.size[final, END])) >= 0:
                return True
    return False
