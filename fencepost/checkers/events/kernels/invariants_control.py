"""EPOCH-MONO of ZooKeeper, CTRL-FENCE, INCARNATION and the invariants of the ISR over columns: the writes of
controllers, and the state of brokers.

Owns the effect of these events and whether they may break a rule. Must not know logs.
"""

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels import column, words
from fencepost.checkers.events.kernels.column import Events
from fencepost.checkers.events.kernels.invariants_deletion import (
    deletion_of_wanted,
    is_deleting,
    isr_outside,
    refused,
    reign_began,
)
from fencepost.checkers.events.kernels.invariants_fields import (
    ALIVE,
    BELIEVED,
    BROKER_EPOCH,
    CONTROLLER_EPOCH,
    FOUND_AT,
    ISR,
    KNOWN_EPOCH,
    LEAST,
    MEMBERS,
    OBEYED,
    OWNER,
    REGISTERED,
    STATED,
    STATED_AT,
    TOPIC,
    UNREGISTERED,
    VERSIONS,
    ZK_EPOCH,
    ZK_LEADER,
    within,
)
from fencepost.checkers.events.kernels.state import (
    KEYS,
    LIST,
    NOTHING,
    TraceState,
    item_of,
    listed,
    partition,
)


@compiled_within
def controller_epoch(state: TraceState, events: Events, i: int) -> None:
    """CONTROLLER_EPOCH: event `i` of `events`."""
    state.run[CONTROLLER_EPOCH] = events.of[column.CONTROLLER_EPOCH, i]
    state.run[OWNER] = events.of[column.NODE, i]
    reign_began(state)


@compiled_within
def fenced(state: TraceState, events: Events, i: int) -> bool:
    """Whether event `i` of `events`, which raises the leader epoch, was possibly not written by the
    controller that /controller_epoch names."""
    epoch, owner = state.run[CONTROLLER_EPOCH], state.run[OWNER]
    if events.of[column.CONTROLLER_EPOCH, i] < epoch:
        return True
    named = (
        events.of[column.CONTROLLER_EPOCH, i] == epoch
        and owner != NOTHING
        and events.of[column.NODE, i] != NOTHING
    )
    return bool(named and events.of[column.NODE, i] != owner)


@compiled_within
def partition_state(state: TraceState, events: Events, i: int, key: int) -> bool:
    """PARTITION_STATE: event `i` of partition `key`."""
    epoch, leader = events.of[column.LEADER_EPOCH, i], events.of[column.LEADER, i]
    before, leader_before = state.key[key, ZK_EPOCH], state.key[key, ZK_LEADER]
    if epoch < before or (epoch > before and fenced(state, events, i)):
        return True
    if epoch == before and leader != leader_before and NOTHING not in (leader, leader_before):
        return True
    if not state.key[key, STATED] or epoch != before:
        state.key[key, VERSIONS] = NOTHING
    state.key[key, STATED] = 1
    state.key[key, TOPIC] = events.of[column.TOPIC, i]
    state.key[key, ZK_EPOCH] = epoch
    state.key[key, ZK_LEADER] = leader
    state.key[key, ISR] = events.of[column.ISR, i]
    state.key[key, STATED_AT] = i
    state.item[listed(state, key, VERSIONS, events.of[column.ZK_VERSION, i]), MEMBERS] = events.of[
        column.ISR, i
    ]
    return events.of[column.ISR, i] == 0 or isr_outside(state, events, key)


@compiled_within
def believes(state: TraceState, events: Events, i: int, key: int) -> bool:
    """BECAME_LEADER, ISR_UPDATED: event `i` of partition `key`. Returns whether the leader's ISR may lack a
    member of ZooKeeper's ISR."""
    state.replica[key, events.of[column.NODE, i], BELIEVED] = events.of[column.ISR, i]
    if (
        not state.key[key, STATED]
        or state.key[key, ZK_EPOCH] != events.of[column.LEADER_EPOCH, i]
        or not events.of[column.ISR, i]
    ):
        return False
    if events.of[column.NAME, i] == words.BECAME_LEADER:
        return not within(state.key[key, ISR], events.of[column.ISR, i])
    version = item_of(state, state.key[key, VERSIONS], events.of[column.ZK_VERSION, i])
    return version != NOTHING and not within(state.item[version, MEMBERS], events.of[column.ISR, i])


@compiled_within
def proposed(state: TraceState, events: Events, i: int, key: int) -> bool:
    """ISR_PROPOSED: event `i` of partition `key`. Returns whether a broker may join that the leader does not
    know to be alive."""
    before = state.replica[key, events.of[column.NODE, i], BELIEVED]
    if before == NOTHING:
        before = events.of[column.ISR, i]
    stays = before | state.host[events.of[column.NODE, i], ALIVE]
    return events.of[column.CAUSE, i] == words.EXPAND and not within(events.of[column.ISR, i], stays)


@compiled_within
def request_applied(state: TraceState, events: Events, i: int) -> bool:
    """CONTROL_REQUEST_APPLIED: event `i` of `events`."""
    node, epoch = events.of[column.NODE, i], events.of[column.CONTROLLER_EPOCH, i]
    if (
        epoch < state.host[node, OBEYED]
        or 0 <= events.of[column.BROKER_EPOCH, i] < state.host[node, BROKER_EPOCH]
    ):
        return True
    state.host[node, OBEYED] = epoch
    return False


@compiled_within
def broker_started(state: TraceState, node: int) -> None:
    """BROKER_STARTED: `node` has forgotten what it knew."""
    state.host[node, OBEYED] = -1
    state.host[node, ALIVE] = 0
    for key in range(state.run[KEYS]):
        state.replica[key, node, KNOWN_EPOCH] = -1


@compiled_within
def broker_znode(state: TraceState, events: Events, i: int) -> None:
    """BROKER_ZNODE: event `i` of `events`."""
    node, gone = events.of[column.NODE, i], events.of[column.BROKER_EPOCH, i] < 0
    state.host[node, REGISTERED] = NOTHING if gone else i
    state.host[node, UNREGISTERED] = i if gone else NOTHING


@compiled_within
def mark(state: TraceState, events: Events, i: int) -> bool:
    """MARK: event `i` of `events`."""
    cause = events.of[column.CAUSE, i]
    if cause == words.SHUTDOWN:
        return bool(events.of[column.BROKER_EPOCH, i] < events.of[column.KNOWN_BROKER_EPOCH, i])
    if cause == words.FAILED_OVER:
        return events.of[column.CONTROLLER_EPOCH, i] == state.run[CONTROLLER_EPOCH] and failed_over(
            state, events, i
        )
    if cause not in (words.REFUSED, words.REPLICA_DELETED):
        return False
    if events.of[column.TOPIC, i] < 0 or events.of[column.NODE, i] < 0:
        return True
    key = partition(state, events.of[column.KEY, i])
    return refused(state, events, i, key) if cause == words.REFUSED else deleted(state, events, i, key)


@compiled_within
def deleted(state: TraceState, events: Events, i: int, key: int) -> bool:
    """The mark `i` of a broker that deleted its replica of partition `key`: is it in the ISR, or still
    assigned?"""
    state.replica[key, events.of[column.NODE, i], KNOWN_EPOCH] = -1
    state.replica[key, events.of[column.NODE, i], LEAST] = 0
    if is_deleting(state, events.of[column.TOPIC, i]):
        return False
    in_isr = state.key[key, STATED] and state.key[key, ISR] >> events.of[column.NODE, i] & 1
    return bool(in_isr) or deletion_of_wanted(state, events, i, key)


@compiled_within
def failed_over(state: TraceState, events: Events, i: int) -> bool:
    """The mark `i` of a controller that has taken over: is a member that was gone by its election still in an
    ISR that has not changed since?"""
    election = item_of(state, state.run[LIST], events.of[column.CONTROLLER_EPOCH, i])
    if election == NOTHING:
        return False
    since = state.item[election, FOUND_AT]
    for key in range(state.run[KEYS]):
        leader = state.key[key, ZK_LEADER]
        if not state.key[key, STATED] or state.key[key, STATED_AT] >= since or leader == NOTHING:
            continue
        if not 0 <= state.host[leader, REGISTERED] < since or is_deleting(state, state.key[key, TOPIC]):
            continue
        for node in range(len(state.host)):
            dead = 0 <= state.host[node, UNREGISTERED] < since
            if dead and state.key[key, ISR] >> node & 1:
                return True
    return False
