"""The fields of the conformance screen, their initial values, and look-ups by leader epoch.

Owns names, initial values and the lists by leader epoch (model/refinement/state.py, compiled). Must not know
guards. `-1` means none or never.
"""

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels.logs import END, copy
from fencepost.checkers.events.kernels.state import (
    FIRST_FREE,
    ITEM,
    NEXT,
    NOTHING,
    TraceState,
    forget,
    item_of,
    log_of,
    new_item,
    new_partition,
    partition_of,
)

STOPPED, LOST_POWER = 1, 2
"""Faults: one that at most stops a process, and one that loses what was not synced. Power loss has
precedence."""

ASKS_PLAN = FIRST_FREE
"""Of the run: whether the answer depends on a topic's unclean leader election."""
RUN_NEW = (-1, 0, 1, 0, -1, 0)
FAULT = 0
"""Of a broker: the last fault of its host."""
HOST_NEW = (0,)
TOPIC_NEW = (-1,)

EPOCH, ZK_VERSION, EPOCHS, COMPACTED, EXPOSED = range(1, 6)
"""Of a partition: ZooKeeper's leader epoch and version of its node; the list of leader epochs, see below;
whether its logs may have gaps; the highest high watermark that any leader showed."""
KEY_NEW = (-1, -1, -1, -1, 0, 0)

LOG, HAS_ROLE, ROLE_EPOCH, FOLLOWED, SHOWN, LOG_START, INTERRUPTED, HAD_ROLE, EPOCH_BEFORE, LEADER_BEFORE = (
    range(10)
)
"""Of a replica (ReplicaView): its log; whether it took a role in this incarnation, in which leader epoch and
with which leader; its high watermark and log start; the fault of its host since it recovered; the role of the
incarnation before."""
REPLICA_NEW = (-1, 0, -1, -1, 0, 0, 0, 0, -1, -1)

(STATED, ZK_LEADER, ISRS, LED, LEADER, BEGAN, HIGHEST, LEADER_START, TERM_LOGS, LAST_LOG) = range(2, 12)
"""Of a leader epoch. STATED to ISRS (QuorumState): whether ZooKeeper had it, its leader, and the ISRs, newest
first. LED to LAST_LOG (Term): whether a leader took over, which broker, its log end then, the highest high
watermark shown, its log start, its logs from the oldest to the newest, and the newest."""
ITEM_NEW = (-1, -1, 0, -1, -1, 0, -1, 0, 0, 0, -1, -1)

SETTLED, NOW, CARRIED = range(3)
"""Of a follower in a leader epoch (Reach): the offset that its fetches reported before its last restart, and
since then; and what its leader knew before this epoch."""


@compiled_within
def epoch_of(state: TraceState, key: int, epoch: int) -> int:
    """The item of a leader epoch; NOTHING if it is not known."""
    return item_of(state, state.key[key, EPOCHS], epoch)


@compiled_within
def new_epoch(state: TraceState, key: int, epoch: int) -> int:
    """As `epoch_of` for `epoch` of the partition `key`; makes the item if it is missing."""
    item = epoch_of(state, key, epoch)
    if item == NOTHING:
        item = new_item(state, state.key[key, EPOCHS], epoch)
        state.key[key, EPOCHS] = item
        for node in range(state.reach.shape[1]):
            for field in range(state.reach.shape[2]):
                state.reach[item, node, field] = -1
    return item


@compiled_within
def term_of(state: TraceState, key: int, epoch: int) -> int:
    """The item of a leader epoch in which a leader took over; NOTHING if none did."""
    item = epoch_of(state, key, epoch)
    return item if item != NOTHING and state.item[item, LED] else NOTHING


@compiled_within
def followed(state: TraceState, key: int, node: int) -> int:
    """The term of the leader that `node` follows; NOTHING if it follows none, or if its leader never took
    over."""
    leader = state.replica[key, node, FOLLOWED]
    if not state.replica[key, node, HAS_ROLE] or leader in (node, NOTHING):
        return NOTHING
    return term_of(state, key, state.replica[key, node, ROLE_EPOCH])


@compiled_within
def leads(state: TraceState, key: int, node: int, epoch: int) -> bool:
    """Whether the replica leads in this leader epoch, in this incarnation."""
    view = state.replica[key, node]
    return bool(view[HAS_ROLE] and view[ROLE_EPOCH] == epoch and view[FOLLOWED] == node)


@compiled_within
def reach_of(state: TraceState, item: int, node: int) -> int:
    """The highest offset that the fetches of a follower may have reported in the epoch of `item`."""
    return int(max(state.reach[item, node, SETTLED], state.reach[item, node, NOW]))


@compiled_within
def known_end(state: TraceState, item: int, member: int) -> int:
    """The highest log end that the leader of a term may know of a member; -1 for none."""
    if member == state.item[item, LEADER]:
        return int(state.logs.size[state.item[item, LAST_LOG], END])
    return int(max(state.reach[item, member, CARRIED], reach_of(state, item, member)))


@compiled_within
def held(state: TraceState, item: int, isr: int) -> bool:
    """Whether ZooKeeper had this ISR in the epoch of `item`."""
    return item_of(state, state.item[item, ISRS], isr) != NOTHING


@compiled_within
def keep_log(state: TraceState, item: int, row: int) -> None:
    """Append a copy of the log `row` to the logs of the term `item`."""
    made = copy(state.logs, row)
    link = new_item(state, NOTHING, made)
    state.item[item, LAST_LOG] = made
    last = state.item[item, TERM_LOGS]
    if last == NOTHING:
        state.item[item, TERM_LOGS] = link
        return
    while state.item[last, NEXT] != NOTHING:
        last = state.item[last, NEXT]
    state.item[last, NEXT] = link


@compiled_within
def shown_partition(state: TraceState, code: int, compacted: bool) -> int:
    """The partition with this code in the row group. A new one starts with the faults of its hosts."""
    key = partition_of(state, code)
    if key == NOTHING:
        key = new_partition(state, code)
        state.key[key, COMPACTED] = compacted
        for node in range(len(state.host)):
            state.replica[key, node, INTERRUPTED] = state.host[node, FAULT]
    return key


@compiled_within
def deleted(state: TraceState, code: int, node: int) -> None:
    """Handle the deletion of the replica of partition `code` on `node`; a later replica there is a new
    one."""
    key = partition_of(state, code)
    if key != NOTHING:
        forget(state, key, node)


@compiled_within
def log_at(state: TraceState, key: int, node: int) -> int:
    """The log of the replica of partition `key` on `node`."""
    return log_of(state, key, node, LOG)


@compiled_within
def log_in(state: TraceState, link: int) -> int:
    """The log of a link of TERM_LOGS."""
    return int(state.item[link, ITEM])
