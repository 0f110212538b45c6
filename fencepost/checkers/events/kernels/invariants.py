"""The event invariants over columns: may this trace break one? (checkers/invariants, one function for each
name of events.)

Owns the order in which an event is looked at. A kernel answers only *whether* a trace is suspicious; the
plain code then decides and names. So it may suspect too much, but never too little. Always suspicious are
runs whose liveness phase failed, in which a process ended by a mistake of its own, or that compacted away
what was committed.
"""

from fencepost.checkers.compiled import compiled, compiled_within
from fencepost.checkers.events.kernels import column, words
from fencepost.checkers.events.kernels.column import Events, steps_of
from fencepost.checkers.events.kernels.invariants_control import (
    believes,
    broker_started,
    broker_znode,
    controller_epoch,
    mark,
    partition_state,
    proposed,
    request_applied,
)
from fencepost.checkers.events.kernels.invariants_deletion import assignment, reassignment, topic_deletion
from fencepost.checkers.events.kernels.invariants_fields import ALIVE, BROKER_EPOCH, FOUND_AT
from fencepost.checkers.events.kernels.invariants_logs import (
    at_the_end,
    became,
    dumped,
    exposed,
    holds_log,
    recovered,
    started_at,
    truncated,
)
from fencepost.checkers.events.kernels.state import LIST, TraceState, begin, given_up, new_item, partition
from fencepost.checkers.operation_columns import Array


@compiled_within
def step_of_replica(state: TraceState, events: Events, i: int) -> bool:
    """Handle event `i` of `events`, which is about a replica's log, role or high watermark. Returns whether
    it is suspicious."""
    name, key = events.of[column.NAME, i], partition(state, events.of[column.KEY, i])
    if name == words.APPENDED:
        return holds_log(state, events, i, key)
    if name == words.HIGH_WATERMARK:
        return exposed(state, events, i, key)
    if name == words.REPLICA_LOG:
        return dumped(state, events, i, key)
    if name == words.LOG_RECOVERED:
        return recovered(state, events, i, key)
    if name == words.LOG_START:
        return started_at(state, events, i, key)
    if name == words.TRUNCATED:
        return truncated(state, events, i, key)
    if name == words.ISR_PROPOSED:
        return proposed(state, events, i, key)
    if name == words.ISR_UPDATED:
        return believes(state, events, i, key)
    return became(state, events, i, key) or (name == words.BECAME_LEADER and believes(state, events, i, key))


@compiled_within
def step_of_zookeeper(state: TraceState, events: Events, i: int) -> bool:
    """Handle event `i` of `events`, which is ZooKeeper's state of a topic. Returns whether it is
    suspicious."""
    name = events.of[column.NAME, i]
    if name == words.TOPIC_DELETION:
        return topic_deletion(state, events, i)
    key = partition(state, events.of[column.KEY, i])
    if name == words.PARTITION_STATE:
        return partition_state(state, events, i, key)
    if name == words.ASSIGNMENT:
        return assignment(state, events, i, key)
    return reassignment(state, events, i, key)


@compiled_within
def step_of_broker(state: TraceState, events: Events, i: int) -> bool:
    """Handle event `i` of `events`: a request to a broker, its registration, or a controller. Returns whether
    it is suspicious."""
    name, node = events.of[column.NAME, i], events.of[column.NODE, i]
    if name == words.CONTROL_REQUEST_APPLIED:
        return request_applied(state, events, i)
    if name == words.LIVE_BROKERS:
        state.host[node, ALIVE] = events.of[column.REPLICAS, i]
    elif name == words.BROKER_ZNODE:
        broker_znode(state, events, i)
    elif name == words.BROKER_REGISTERED:
        state.host[node, BROKER_EPOCH] = events.of[column.BROKER_EPOCH, i]
    else:
        broker_started(state, node)
    return False


@compiled_within
def step(state: TraceState, events: Events, i: int) -> bool:
    """Handle event `i`. Returns whether it may break an invariant."""
    name = events.of[column.NAME, i]
    if name == words.CONTROLLER_EPOCH:
        controller_epoch(state, events, i)
    elif name == words.CONTROLLER_ELECTED:
        state.run[LIST] = new_item(state, state.run[LIST], events.of[column.CONTROLLER_EPOCH, i])
        state.item[state.run[LIST], FOUND_AT] = i
    elif name == words.MARK:
        return mark(state, events, i)
    elif name in (words.LIVENESS_FAILED, words.IMPLEMENTATION_ERROR):
        return True
    elif name in (words.PHASE, words.FAULT_BEGAN, words.LOG_DIRECTORY_FAILED, words.OTHER):
        return False
    elif name in (words.TOPIC_DELETION, words.PARTITION_STATE, words.ASSIGNMENT, words.REASSIGNMENT):
        return events.of[column.TOPIC, i] < 0 or step_of_zookeeper(state, events, i)
    elif events.of[column.NODE, i] < 0:
        return True
    elif name in (
        words.CONTROL_REQUEST_APPLIED,
        words.LIVE_BROKERS,
        words.BROKER_ZNODE,
        words.BROKER_REGISTERED,
        words.BROKER_STARTED,
    ):
        return step_of_broker(state, events, i)
    else:
        return events.of[column.TOPIC, i] < 0 or step_of_replica(state, events, i)
    return False


@compiled(steps=steps_of)
def screen(state: TraceState, events: Events, start: Array, capacity: Array, suspicious: Array) -> None:
    """Mark the traces that may break an invariant. Trace t has the events from start[t] to start[t + 1], and
    offsets up to capacity[t]."""
    for trace in range(len(suspicious)):
        if suspicious[trace]:
            continue
        begin(state, trace, capacity[trace])
        wrong = given_up(state)
        for i in range(start[trace], start[trace + 1]):
            if wrong:
                break
            wrong = step(state, events, i) or given_up(state)
        suspicious[trace] = wrong or at_the_end(state, events) or given_up(state)
