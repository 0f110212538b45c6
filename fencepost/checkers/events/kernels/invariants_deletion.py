"""ASSIGN, ISR-IN-AR and DEL-COMPLETE over columns: the replicas in a topic's node, the requests of operators,
and deleted topics.

Owns the effect of assignments, reassignments and deletions, and whether they may break one of the three. Must
not know roles, logs or leader epochs.
"""

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels import column, words
from fencepost.checkers.events.kernels.column import Events, same_replicas
from fencepost.checkers.events.kernels.invariants_fields import (
    ASKED,
    ASKED_TO_GO,
    ASSIGNED,
    DELETING,
    GONE,
    HAS_REPLICAS,
    ISR,
    LAST_REPLICAS,
    PENDING,
    REFUSED,
)
from fencepost.checkers.events.kernels.state import (
    ITEM,
    KEYS,
    NEXT,
    NOTHING,
    TraceState,
    new_item,
    topic_of,
)


@compiled_within
def replicas_at(events: Events, row: int) -> int:
    """The replicas that a row names; none for NOTHING."""
    return int(events.of[column.REPLICAS, row]) if row != NOTHING else 0


@compiled_within
def reign_began(state: TraceState) -> None:
    """CONTROLLER_EPOCH: from now on only the pending entries count as requests."""
    for key in range(state.run[KEYS]):
        state.key[key, ASKED] = NOTHING
        if state.key[key, PENDING] != NOTHING:
            state.key[key, ASKED] = new_item(state, NOTHING, state.key[key, PENDING])


@compiled_within
def isr_outside(state: TraceState, events: Events, key: int) -> bool:
    """Whether the ISR of partition `key` has a broker that is not among the replicas of its last
    assignment."""
    replicas = replicas_at(events, state.key[key, ASSIGNED])
    return bool(replicas and state.key[key, ISR] & ~replicas)


@compiled_within
def asked_for(state: TraceState, events: Events, key: int, before: int, i: int) -> bool:
    """Whether the replicas of event `i` are the target of an entry, or a target plus the replicas of
    `before`."""
    item = state.key[key, ASKED]
    while item != NOTHING:
        target = state.item[item, ITEM]
        both = events.of[column.REPLICAS, before] | events.of[column.REPLICAS, target]
        if same_replicas(events, i, target) or events.of[column.REPLICAS, i] == both:
            return True
        item = state.item[item, NEXT]
    return False


@compiled_within
def assignment(state: TraceState, events: Events, i: int, key: int) -> bool:
    """ASSIGNMENT: event `i` of partition `key`."""
    before, topic = state.key[key, ASSIGNED], topic_of(state, events.of[column.TOPIC, i])
    state.key[key, ASSIGNED] = i
    if events.of[column.REPLICAS, i] == 0:
        if state.topic[topic, ASKED_TO_GO] and state.topic[topic, HAS_REPLICAS]:
            state.topic[topic, GONE] = 1
        return False
    state.topic[topic, HAS_REPLICAS] = 1
    state.topic[topic, GONE] = 0
    state.key[key, LAST_REPLICAS] = i
    if isr_outside(state, events, key):
        return True
    none_before = replicas_at(events, before) == 0
    return not (events.of[column.NODE, i] < 0 or none_before or asked_for(state, events, key, before, i))


@compiled_within
def reassignment(state: TraceState, events: Events, i: int, key: int) -> bool:
    """REASSIGNMENT, event `i` of partition `key`: an entry is written or removed."""
    target = state.key[key, PENDING]
    if events.of[column.REPLICAS, i]:
        state.key[key, PENDING] = i
        state.key[key, ASKED] = new_item(state, state.key[key, ASKED], i)
        state.key[key, REFUSED] = 0
        return False
    state.key[key, PENDING] = NOTHING
    replicas = state.key[key, ASSIGNED]
    if events.of[column.NODE, i] < 0 or replicas_at(events, replicas) == 0 or state.key[key, REFUSED]:
        return False
    return target == NOTHING or not same_replicas(events, replicas, target)


@compiled_within
def refused(state: TraceState, events: Events, i: int, key: int) -> bool:
    """The mark `i` of a controller that removes an entry of partition `key` because it is impossible."""
    state.key[key, REFUSED] = 1
    return False


@compiled_within
def deletion_of_wanted(state: TraceState, events: Events, i: int, key: int) -> bool:
    """The mark `i` of a broker that deleted its replica of partition `key`: is the replica still assigned?"""
    wanted = state.key[key, PENDING]
    if wanted == NOTHING:
        wanted = state.key[key, ASSIGNED]
    return bool(replicas_at(events, wanted) >> events.of[column.NODE, i] & 1)


@compiled_within
def topic_deletion(state: TraceState, events: Events, i: int) -> bool:
    """TOPIC_DELETION, event `i` of `events`: a request is written or removed."""
    topic = topic_of(state, events.of[column.TOPIC, i])
    state.topic[topic, DELETING] = 1
    if events.of[column.CAUSE, i] == words.REQUESTED:
        state.topic[topic, ASKED_TO_GO] = 1
        return False
    state.topic[topic, ASKED_TO_GO] = 0
    return bool(
        events.of[column.NODE, i] >= 0 and state.topic[topic, HAS_REPLICAS] and not state.topic[topic, GONE]
    )


@compiled_within
def gone_from(state: TraceState, events: Events, i: int, key: int) -> bool:
    """REPLICA_LOG, event `i` of partition `key`: is it a replica of a topic without a node?"""
    replicas = replicas_at(events, state.key[key, LAST_REPLICAS])
    gone = state.topic[topic_of(state, events.of[column.TOPIC, i]), GONE]
    return bool(gone and replicas >> events.of[column.NODE, i] & 1)


@compiled_within
def is_deleting(state: TraceState, code: int) -> bool:
    """Whether a request to delete the topic `code` was made, by `state`."""
    return bool(state.topic[topic_of(state, code), DELETING])
