"""Conformance over columns: appends, truncations, recoveries, dumps and high watermarks
(model/refinement/log.py and high_watermark.py, compiled).

Owns whether an action may explain such an event. Must not know elections.
"""

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels import column, words
from fencepost.checkers.events.kernels.column import Events
from fencepost.checkers.events.kernels.conformance_fields import (
    COMPACTED,
    EPOCH_BEFORE,
    EXPOSED,
    HAD_ROLE,
    HAS_ROLE,
    HIGHEST,
    INTERRUPTED,
    ISRS,
    LAST_LOG,
    LEADER,
    LEADER_BEFORE,
    LEADER_START,
    LOG_START,
    LOST_POWER,
    NOW,
    ROLE_EPOCH,
    SHOWN,
    STATED,
    TERM_LOGS,
    followed,
    known_end,
    leads,
    log_at,
    log_in,
    new_epoch,
    term_of,
)
from fencepost.checkers.events.kernels.logs import (
    CAPACITY,
    END,
    RECORD_EPOCH,
    UNKNOWN,
    append,
    first_difference,
    holds,
    learn,
    resize,
    shared_prefix,
)
from fencepost.checkers.events.kernels.state import ITEM, NEXT, NOTHING, TraceState


@compiled_within
def at_log_end(state: TraceState, events: Events, i: int, key: int, log: int) -> bool:
    """Whether records are appended at the log end with epochs that never decrease."""
    end, offset = state.logs.size[log, END], events.of[column.OFFSET, i]
    last = UNKNOWN
    if end:
        last = state.logs.record[log * state.logs.pool[CAPACITY] + end - 1, RECORD_EPOCH]
    if events.of[column.CAUSE, i] == words.FOLLOWER:
        if end == state.replica[key, events.of[column.NODE, i], LOG_START]:
            end = min(end, offset)  # the leader's log starts inside a batch
        if state.key[key, COMPACTED]:
            end = max(end, offset)
    return bool(offset == end and events.of[column.LEADER_EPOCH, i] >= last)


@compiled_within
def is_copy(state: TraceState, events: Events, i: int, key: int, log: int) -> bool:
    """Whether the follower appends in event `i` what its leader of partition `key` had at some time of the
    term, after the same record. log: the follower's log."""
    term = followed(state, key, events.of[column.NODE, i])
    if term == NOTHING:
        return False
    at, start, stop = (
        events.of[column.OFFSET, i],
        events.of[column.VALUES_AT, i],
        events.of[column.VALUES_TO, i],
    )
    epoch, before = events.of[column.LEADER_EPOCH, i], max(at - 1, 0)
    held_from = max(state.item[term, LEADER_START], state.replica[key, events.of[column.NODE, i], LOG_START])
    link = state.item[term, TERM_LOGS]
    while link != NOTHING:
        its = log_in(state, link)
        same = holds(state.logs, its, at, epoch, events.value, start, stop)
        if same and before >= held_from:
            same = first_difference(state.logs, its, log, before, at) < 0
        if same:
            learn(state.logs, its, at, epoch, events.value, start, stop)
            return True
        link = state.item[link, NEXT]
    return False


@compiled_within
def appended(state: TraceState, events: Events, i: int, key: int) -> bool:
    """APPENDED, event `i` of partition `key`: append (a leader, in its own epoch) or fetch (a follower)."""
    node, offset, epoch = (
        events.of[column.NODE, i],
        events.of[column.OFFSET, i],
        events.of[column.LEADER_EPOCH, i],
    )
    start, stop = events.of[column.VALUES_AT, i], events.of[column.VALUES_TO, i]
    log, leading = log_at(state, key, node), events.of[column.CAUSE, i] == words.LEADER
    if offset < 0 or epoch < 0 or not at_log_end(state, events, i, key, log):
        return True
    if leading:
        if not leads(state, key, node, epoch):
            return True
    elif not is_copy(state, events, i, key, log):
        return True
    append(state.logs, log, offset, epoch, events.value, start, stop)
    if events.of[column.END_OFFSET, i] > state.logs.size[log, END]:
        resize(state.logs, log, events.of[column.END_OFFSET, i])
    if leading:
        term = term_of(state, key, epoch)
        if term != NOTHING and state.item[term, LEADER] == node:
            append(state.logs, state.item[term, LAST_LOG], offset, epoch, events.value, start, stop)
    elif state.replica[key, node, HAS_ROLE]:
        item = new_epoch(state, key, state.replica[key, node, ROLE_EPOCH])
        state.reach[item, node, NOW] = max(state.reach[item, node, NOW], state.logs.size[log, END])
    return False


@compiled_within
def shared_with(state: TraceState, term: int, log: int) -> int:
    """How many records at the beginning of `log` are certainly the leader's, for all logs of the `term`."""
    link = state.item[term, TERM_LOGS]
    shared = state.logs.size[log, END]
    while link != NOTHING:
        shared = min(shared, shared_prefix(state.logs, log, log_in(state, link)))
        link = state.item[link, NEXT]
    return int(shared)


@compiled_within
def truncated(state: TraceState, events: Events, i: int, key: int) -> bool:
    """TRUNCATED, event `i` of partition `key`: by epoch, and never a record that the leader has too; cause
    full: out_of_range."""
    node, offset = events.of[column.NODE, i], events.of[column.OFFSET, i]
    log, term = log_at(state, key, node), followed(state, key, node)
    end = state.logs.size[log, END]
    if (
        events.of[column.CAUSE, i] == words.BY_HIGH_WATERMARK
        or term == NOTHING
        or events.of[column.END_OFFSET, i] != end
    ):
        return True
    if events.of[column.LEADER_EPOCH, i] != state.replica[key, node, ROLE_EPOCH]:
        return True
    if events.of[column.CAUSE, i] == words.FULL:
        if not end <= offset <= state.item[term, LEADER_START]:
            return True
        resize(state.logs, log, 0)
    else:
        shared = shared_with(state, term, log)
        if shared <= state.item[term, LEADER_START]:
            shared = 0
        if not shared <= offset < end:
            return True
    resize(state.logs, log, offset)
    state.replica[key, node, SHOWN] = min(state.replica[key, node, SHOWN], offset)
    state.reach[new_epoch(state, key, state.replica[key, node, ROLE_EPOCH]), node, NOW] = offset
    return False


@compiled_within
def log_start(state: TraceState, events: Events, i: int, key: int) -> bool:
    """LOG_START, event `i` of partition `key`: no action."""
    node, start = events.of[column.NODE, i], events.of[column.LOG_START_OFFSET, i]
    if start < 0:
        return True
    state.replica[key, node, LOG_START] = start
    term = term_of(state, key, events.of[column.LEADER_EPOCH, i])
    if term != NOTHING and state.item[term, LEADER] == node:
        state.item[term, LEADER_START] = max(state.item[term, LEADER_START], start)
    return False


@compiled_within
def may_recover(state: TraceState, events: Events, i: int, key: int, log: int) -> bool:
    """Whether the log is as before, apart from what a power loss removed, or from the step that a fault
    interrupted."""
    node, offset, end = events.of[column.NODE, i], events.of[column.OFFSET, i], state.logs.size[log, END]
    fault = state.replica[key, node, INTERRUPTED]
    if offset == end or fault == LOST_POWER:
        return True
    if not fault or offset > end:
        return bool(fault)
    if not state.replica[key, node, HAD_ROLE] or state.replica[key, node, LEADER_BEFORE] == node:
        return False
    term = term_of(state, key, state.replica[key, node, EPOCH_BEFORE])
    return term != NOTHING and shared_with(state, term, log) <= offset


@compiled_within
def may_begin(state: TraceState, events: Events, i: int, key: int) -> bool:
    """Whether the log of event `i` and partition `key` may begin there: at its old start or below, or where a
    step that a fault interrupted moved its start to. That is within what leaders had shown."""
    node, start = events.of[column.NODE, i], events.of[column.LOG_START_OFFSET, i]
    if start > events.of[column.OFFSET, i]:
        return False
    moved = state.replica[key, node, INTERRUPTED] and start <= state.key[key, EXPOSED]
    return bool(start <= state.replica[key, node, LOG_START] or moved)


@compiled_within
def recovered(state: TraceState, events: Events, i: int, key: int) -> bool:
    """LOG_RECOVERED, event `i` of partition `key`: restart."""
    node, offset = events.of[column.NODE, i], events.of[column.OFFSET, i]
    log = log_at(state, key, node)
    if offset < 0 or not may_recover(state, events, i, key, log) or not may_begin(state, events, i, key):
        return True
    resize(state.logs, log, offset)
    if events.of[column.LOG_START_OFFSET, i] >= 0:
        state.replica[key, node, LOG_START] = events.of[column.LOG_START_OFFSET, i]
    state.replica[key, node, INTERRUPTED] = 0
    state.replica[key, node, SHOWN] = min(max(events.of[column.HIGH_WATERMARK, i], 0), offset)
    return False


@compiled_within
def dumped(state: TraceState, events: Events, i: int, key: int) -> bool:
    """REPLICA_LOG, event `i` of partition `key`: the final dump is the result of the appends and
    truncations."""
    log, end = log_at(state, key, events.of[column.NODE, i]), events.of[column.END_OFFSET, i]
    start, stop = events.of[column.VALUES_AT, i], events.of[column.VALUES_TO, i]
    if stop > start and (events.of[column.OFFSET, i] < 0 or events.of[column.LEADER_EPOCH, i] < 0):
        return True
    if end > state.logs.size[log, END]:
        resize(state.logs, log, end)
    if end != state.logs.size[log, END]:
        return True
    return not holds(
        state.logs,
        log,
        events.of[column.OFFSET, i],
        events.of[column.LEADER_EPOCH, i],
        events.value,
        start,
        stop,
    )


@compiled_within
def high_watermark(state: TraceState, events: Events, i: int, key: int) -> bool:
    """HIGH_WATERMARK, event `i` of partition `key`: advance_high_watermark (leader), or the value in a fetch
    response (follower)."""
    node, after = events.of[column.NODE, i], events.of[column.HIGH_WATERMARK, i]
    view = state.replica[key, node]
    log = log_at(state, key, node)
    if (
        not view[HAS_ROLE]
        or view[ROLE_EPOCH] != events.of[column.LEADER_EPOCH, i]
        or after > state.logs.size[log, END]
    ):
        return True
    if events.of[column.CAUSE, i] == words.LEADER:
        wrong = not leader_may_advance(
            state, key, node, events.of[column.LEADER_EPOCH, i], view[SHOWN], after
        )
    else:
        wrong = bool(after > view[SHOWN]) and not follower_may_advance(
            state, key, node, log, view[SHOWN], after
        )
    view[SHOWN] = after
    return wrong


@compiled_within
def leader_may_advance(state: TraceState, key: int, node: int, epoch: int, before: int, after: int) -> bool:
    """Whether a leader may advance its high watermark: never down, and never beyond what the ISR is known to
    have.

    Args:
        state: the state of the screen.
        key: the partition.
        node: the leader.
        epoch: its leader epoch.
        before, after: the old and the new high watermark.

    Returns:
        whether an action explains it.
    """
    term = term_of(state, key, epoch)
    if term == NOTHING or state.item[term, LEADER] != node:
        return False
    state.item[term, HIGHEST] = max(state.item[term, HIGHEST], after)
    state.key[key, EXPOSED] = max(state.key[key, EXPOSED], after)
    isr = 1 << node
    if state.item[term, STATED]:
        isr = state.item[state.item[term, ISRS], ITEM]
    behind = bool(isr == 0 or after < before)
    for member in range(state.replica.shape[1]):
        behind = behind or bool(isr >> member & 1 and known_end(state, term, member) < after)
    return not behind


@compiled_within
def follower_may_advance(state: TraceState, key: int, node: int, log: int, before: int, after: int) -> bool:
    """Whether a follower may advance its high watermark. It gets it in a fetch response, so its log is a
    prefix of its leader's."""
    term = followed(state, key, node)
    if term == NOTHING or after > state.item[term, HIGHEST]:
        return False
    begin = max(before, state.item[term, LEADER_START], 0)
    link = state.item[term, TERM_LOGS]
    while link != NOTHING:
        if first_difference(state.logs, log_in(state, link), log, begin, state.logs.size[log, END]) < 0:
            return True
        link = state.item[link, NEXT]
    return False
