"""Conformance over columns: ZooKeeper's states, roles, restarts (model/refinement/quorum.py and roles.py,
compiled).

Owns whether an action may explain such an event. Must not know logs beyond their ends.
"""

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels import column, words
from fencepost.checkers.events.kernels.column import Events, is_unclean
from fencepost.checkers.events.kernels.conformance_fields import (
    ASKS_PLAN,
    BEGAN,
    CARRIED,
    EPOCH,
    EPOCH_BEFORE,
    EPOCHS,
    EXPOSED,
    FAULT,
    FOLLOWED,
    HAD_ROLE,
    HAS_ROLE,
    HIGHEST,
    INTERRUPTED,
    ISRS,
    LAST_LOG,
    LEADER,
    LEADER_BEFORE,
    LEADER_START,
    LED,
    LOG_START,
    LOST_POWER,
    NOW,
    ROLE_EPOCH,
    SETTLED,
    SHOWN,
    STATED,
    STOPPED,
    TERM_LOGS,
    ZK_LEADER,
    ZK_VERSION,
    epoch_of,
    held,
    keep_log,
    known_end,
    leads,
    log_at,
    new_epoch,
    reach_of,
    term_of,
)
from fencepost.checkers.events.kernels.logs import END
from fencepost.checkers.events.kernels.state import ITEM, KEYS, NEXT, NOTHING, TRACE, TraceState, new_item


@compiled_within
def partition_state(state: TraceState, events: Events, i: int, key: int) -> bool:
    """PARTITION_STATE, event `i` of partition `key`: elect or shrink_by_controller (the epoch grows), or
    shrink_isr or expand_isr (it does not)."""
    epoch, isr = events.of[column.LEADER_EPOCH, i], events.of[column.ISR, i]
    before = epoch_of(state, key, state.key[key, EPOCH])
    if before != NOTHING and not state.item[before, STATED]:
        before = NOTHING
    if before != NOTHING:
        previous = state.item[state.item[before, ISRS], ITEM]
        if epoch == state.key[key, EPOCH]:
            if not leader_may_write(state, events, i, key, before, previous):
                return True
            state.item[before, ISRS] = new_item(state, state.item[before, ISRS], isr)
            state.key[key, ZK_VERSION] = events.of[column.ZK_VERSION, i]
            return False
        if epoch != state.key[key, EPOCH] + 1 or not controller_may_write(state, events, i, previous):
            return True
    item = new_epoch(state, key, epoch)
    state.item[item, STATED] = 1
    state.item[item, ZK_LEADER] = events.of[column.LEADER, i]
    state.item[item, ISRS] = new_item(state, NOTHING, isr)
    state.key[key, EPOCH] = epoch
    state.key[key, ZK_VERSION] = events.of[column.ZK_VERSION, i]
    return False


@compiled_within
def controller_may_write(state: TraceState, events: Events, i: int, previous: int) -> bool:
    """Whether event `i` may be an election after the state `previous`: a clean one, or any if the topic
    allows unclean ones. If only that decides, it is noted."""
    leader, isr = events.of[column.LEADER, i], events.of[column.ISR, i]
    if may_elect(leader, previous, isr):
        return True
    if leader == NOTHING or isr != 1 << leader:
        return False
    if is_unclean(events, state.run[TRACE], events.of[column.TOPIC, i]):
        return True
    state.run[ASKS_PLAN] = 1
    return False


@compiled_within
def may_elect(leader: int, before: int, after: int) -> bool:
    """Whether a clean election is possible: the leader is in the old ISR and no broker joins it. There may be
    no leader while the last member is kept."""
    if after == 0 or (leader != NOTHING and not after >> leader & 1):
        return False
    return bool(after & ~before == 0)


@compiled_within
def leader_may_write(state: TraceState, events: Events, i: int, key: int, before: int, previous: int) -> bool:
    """Whether a leader may write the state of event `i`: within its leader epoch, by compare-and-set, and a
    broker that joins has caught up. A write with leader -1 is not allowed.

    Args:
        state: the state of the screen.
        events: the events.
        i: the event.
        key: the partition.
        before: the item of the leader epoch.
        previous: the ISR before.

    Returns:
        whether an action explains it.
    """
    leader, isr = state.item[before, ZK_LEADER], events.of[column.ISR, i]
    if (
        events.of[column.LEADER, i] != leader
        or events.of[column.NODE, i] != leader
        or leader == NOTHING
        or not isr >> leader & 1
    ):
        return False
    version = state.key[key, ZK_VERSION]
    if version >= 0 and events.of[column.ZK_VERSION, i] not in (-1, version + 1):
        return False
    if not state.item[before, LED]:
        return False
    least = max(state.item[before, HIGHEST], state.item[before, BEGAN])
    caught_up = True
    for member in range(state.replica.shape[1]):
        joins = isr & ~previous & (1 << member)
        caught_up = caught_up and not (joins and known_end(state, before, member) < least)
    return caught_up


@compiled_within
def isr_updated(state: TraceState, events: Events, i: int, key: int) -> bool:
    """ISR_UPDATED, event `i` of partition `key`: ZooKeeper has, or had, this ISR in that epoch."""
    epoch = events.of[column.LEADER_EPOCH, i]
    item = epoch_of(state, key, epoch)
    if (
        not leads(state, key, events.of[column.NODE, i], epoch)
        or item == NOTHING
        or not state.item[item, STATED]
    ):
        return True
    return not held(state, item, events.of[column.ISR, i])


@compiled_within
def may_take_role(state: TraceState, events: Events, i: int, key: int, item: int, leader: int) -> bool:
    """Whether a broker may take this role: ZooKeeper named the leader, the leader epoch is not fenced, and
    the log is unchanged."""
    node = events.of[column.NODE, i]
    if item == NOTHING or not state.item[item, STATED] or state.item[item, ZK_LEADER] != leader:
        return False
    if (
        state.replica[key, node, HAS_ROLE]
        and events.of[column.LEADER_EPOCH, i] <= state.replica[key, node, ROLE_EPOCH]
    ):
        return False
    end = state.logs.size[log_at(state, key, node), END]
    return bool(events.of[column.HIGH_WATERMARK, i] <= end and events.of[column.OFFSET, i] in (end, -1))


@compiled_within
def became_leader(state: TraceState, events: Events, i: int, key: int) -> bool:
    """BECAME_LEADER, event `i` of partition `key`: its epoch grows, and it starts at the end of its log."""
    node, epoch = events.of[column.NODE, i], events.of[column.LEADER_EPOCH, i]
    item = epoch_of(state, key, epoch)
    if not may_take_role(state, events, i, key, item, node):
        return True
    if events.of[column.ISR, i] and not held(state, item, events.of[column.ISR, i]):
        return True
    enter_term(state, events, i, key, item)
    take_role(state, events, i, key, node)
    return False


@compiled_within
def take_role(state: TraceState, events: Events, i: int, key: int, leader: int) -> None:
    """Set the role of the replica of event `i` and partition `key`. leader: the broker that leads."""
    view = state.replica[key, events.of[column.NODE, i]]
    view[HAS_ROLE] = 1
    view[ROLE_EPOCH] = events.of[column.LEADER_EPOCH, i]
    view[FOLLOWED] = leader
    view[SHOWN] = events.of[column.HIGH_WATERMARK, i]


@compiled_within
def enter_term(state: TraceState, events: Events, i: int, key: int, item: int) -> None:
    """A leader takes over the partition `key` in event `i`, or does so again after a restart. item: its
    leader epoch."""
    node, term = events.of[column.NODE, i], state.item[item]
    log, log_start = log_at(state, key, node), state.replica[key, node, LOG_START]
    end = state.logs.size[log, END]
    if term[LED] and term[LEADER] == node:
        term[BEGAN] = min(term[BEGAN], end)
        term[LEADER_START] = max(term[LEADER_START], log_start)
        if state.logs.size[term[LAST_LOG], END] != end:
            keep_log(state, item, log)
        return
    term[LED] = 1
    term[LEADER] = node
    term[BEGAN] = end
    term[HIGHEST] = events.of[column.HIGH_WATERMARK, i]
    state.key[key, EXPOSED] = max(state.key[key, EXPOSED], term[HIGHEST])
    term[LEADER_START] = log_start
    term[TERM_LOGS] = NOTHING
    keep_log(state, item, log)
    carry(state, key, node, item)


@compiled_within
def carry(state: TraceState, key: int, node: int, item: int) -> None:
    """A leader `node` of partition `key` that gets a new epoch keeps its knowledge of its followers, if no
    other broker led in between. item: the new epoch."""
    previous = NOTHING
    if state.replica[key, node, HAS_ROLE] and state.replica[key, node, FOLLOWED] == node:
        previous = term_of(state, key, state.replica[key, node, ROLE_EPOCH])
    kept = previous != NOTHING and state.item[previous, LEADER] == node
    between = state.key[key, EPOCHS] if kept else NOTHING
    while between != NOTHING:
        stated = state.item[between, STATED] and state.item[between, ZK_LEADER] != node
        if stated and state.item[previous, ITEM] <= state.item[between, ITEM] < state.item[item, ITEM]:
            kept = False
        between = state.item[between, NEXT]
    for member in range(state.replica.shape[1]):
        carried = -1
        if kept:
            carried = max(state.reach[previous, member, CARRIED], reach_of(state, previous, member))
        state.reach[item, member, CARRIED] = carried


@compiled_within
def became_follower(state: TraceState, events: Events, i: int, key: int) -> bool:
    """BECAME_FOLLOWER, event `i` of partition `key`: at a leader epoch above its own."""
    node, leader = events.of[column.NODE, i], events.of[column.LEADER, i]
    item = epoch_of(state, key, events.of[column.LEADER_EPOCH, i])
    if leader == node or not may_take_role(state, events, i, key, item, leader):
        return True
    take_role(state, events, i, key, leader)
    state.reach[item, node, SETTLED] = reach_of(state, item, node)
    state.reach[item, node, NOW] = state.logs.size[log_at(state, key, node), END]
    return False


@compiled_within
def broker_started(state: TraceState, node: int) -> None:
    """BROKER_STARTED of `node`: a new incarnation has no role."""
    for key in range(state.run[KEYS]):
        view = state.replica[key, node]
        if view[HAS_ROLE]:
            view[HAD_ROLE] = 1
            view[EPOCH_BEFORE] = view[ROLE_EPOCH]
            view[LEADER_BEFORE] = view[FOLLOWED]
        view[HAS_ROLE] = 0
        view[FOLLOWED] = NOTHING


@compiled_within
def interrupted(state: TraceState, events: Events, i: int) -> None:
    """FAULT_BEGAN, LOG_DIRECTORY_FAILED, IMPLEMENTATION_ERROR: what hits a host hits all its replicas."""
    node = events.of[column.NODE, i]
    fault = LOST_POWER if words.is_losing(events.of[column.CAUSE, i]) else STOPPED
    state.host[node, FAULT] = fault
    for key in range(state.run[KEYS]):
        if state.replica[key, node, INTERRUPTED] != LOST_POWER:
            state.replica[key, node, INTERRUPTED] = fault
