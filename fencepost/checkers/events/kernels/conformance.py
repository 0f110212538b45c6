"""Conformance over columns: may there be an event that no action of the model explains? (model/refinement,
one function for each name of events.)

Owns the order of the checks of an event. As in invariants.py, a kernel may suspect a correct trace, but must
never miss a wrong one.
"""

from fencepost.checkers.compiled import compiled, compiled_within
from fencepost.checkers.events.kernels import column, words
from fencepost.checkers.events.kernels.column import Events, is_compacted, steps_of
from fencepost.checkers.events.kernels.conformance_fields import ASKS_PLAN, deleted, shown_partition
from fencepost.checkers.events.kernels.conformance_logs import (
    appended,
    dumped,
    high_watermark,
    log_start,
    recovered,
    truncated,
)
from fencepost.checkers.events.kernels.conformance_roles import (
    became_follower,
    became_leader,
    broker_started,
    interrupted,
    isr_updated,
    partition_state,
)
from fencepost.checkers.events.kernels.state import TRACE, TraceState, begin, given_up
from fencepost.checkers.operation_columns import Array


@compiled_within
def step_of_partition(state: TraceState, events: Events, i: int, key: int) -> bool:
    """Handle event `i` of `events`, which is about the partition `key`: ZooKeeper's state, a role or a
    restart. Returns whether possibly no action explains it."""
    name = events.of[column.NAME, i]
    if name == words.PARTITION_STATE:
        return partition_state(state, events, i, key)
    if events.of[column.NODE, i] < 0:
        return True
    if name == words.BECAME_LEADER:
        return became_leader(state, events, i, key)
    if name == words.BECAME_FOLLOWER:
        return became_follower(state, events, i, key)
    if name == words.ISR_UPDATED:
        return isr_updated(state, events, i, key)
    if name == words.APPENDED:
        return appended(state, events, i, key)
    if name == words.HIGH_WATERMARK:
        return high_watermark(state, events, i, key)
    if name == words.TRUNCATED:
        return truncated(state, events, i, key)
    if name == words.LOG_RECOVERED:
        return recovered(state, events, i, key)
    if name == words.LOG_START:
        return log_start(state, events, i, key)
    return dumped(state, events, i, key)


@compiled_within
def step(state: TraceState, events: Events, i: int) -> bool:
    """Handle event `i`. Returns whether possibly no action explains it."""
    name, node = events.of[column.NAME, i], events.of[column.NODE, i]
    if name == words.BROKER_STARTED:
        if node >= 0:
            broker_started(state, node)
        return False
    if name in (words.FAULT_BEGAN, words.LOG_DIRECTORY_FAILED, words.IMPLEMENTATION_ERROR):
        if node >= 0:
            interrupted(state, events, i)
        return False
    if name == words.MARK:
        if events.of[column.CAUSE, i] == words.REPLICA_DELETED:
            if node < 0 or events.of[column.TOPIC, i] < 0:
                return True
            deleted(state, events.of[column.KEY, i], node)
        return False
    if name not in (
        words.PARTITION_STATE, words.BECAME_LEADER, words.BECAME_FOLLOWER, words.APPENDED, words.TRUNCATED,
        words.HIGH_WATERMARK, words.ISR_UPDATED, words.LOG_RECOVERED, words.LOG_START, words.REPLICA_LOG,
    ):  # fmt: skip
        return False
    if events.of[column.TOPIC, i] < 0:
        return True
    compacted = is_compacted(events, state.run[TRACE], events.of[column.TOPIC, i])
    return step_of_partition(state, events, i, shown_partition(state, events.of[column.KEY, i], compacted))


@compiled(steps=steps_of)
def screen(
    state: TraceState, events: Events, start: Array, capacity: Array, suspicious: Array, asks: Array
) -> None:
    """Mark the traces that may have an event without an action.

    Trace t has the events from start[t] to start[t + 1], and offsets up to capacity[t]. asks: traces for
    which the plan would have to be read.
    """
    for trace in range(len(suspicious)):
        if suspicious[trace]:
            continue
        begin(state, trace, capacity[trace])
        wrong = given_up(state)
        for i in range(start[trace], start[trace + 1]):
            if wrong:
                break
            wrong = step(state, events, i) or given_up(state)
        suspicious[trace] = wrong
        asks[trace] = state.run[ASKS_PLAN]
