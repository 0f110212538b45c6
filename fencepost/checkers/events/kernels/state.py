"""The state of a screen for one trace: of the run, brokers, topics, partitions and replicas, and short lists
by epoch or version.

Owns the arrays, their reset at the beginning of a trace, and look-ups. Must not know the meaning of the
fields: invariants_fields.py and conformance_fields.py define them. Every array has a bound. A trace that
needs more sets `FULL` and is given up, that is, the plain code checks it.
"""

from typing import NamedTuple

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels.logs import POOL_FULL, Logs, clear_logs, new_log
from fencepost.checkers.operation_columns import Array

NOTHING = -1
TRACE, KEYS, ITEMS, FULL, LIST, FIRST_FREE = range(6)
"""Entries of `State.run`: the current trace, the number of its partitions and of its list items, whether a
bound was reached, the head of a list of the run. A screen's own fields begin at FIRST_FREE."""
OF_RUN, OF_HOST, OF_TOPIC, OF_KEY, OF_REPLICA, OF_ITEM = range(6)
"""Rows of `State.new`."""
STAMP = 0
"""Field of `State.topic` and `State.seen`: the trace that last used the entry. An entry with another trace
counts as new."""
CODE = 0
"""Field of `State.key`: the code of the partition in the row group."""
NEXT, ITEM = 0, 1
"""Fields of `State.item`: the next item, and the key of this one. A screen's own fields follow."""


class TraceState(NamedTuple):
    """The state of a screen."""

    # Scalars: TRACE to LIST, then the screen's own.
    run: Array
    # Fields by broker.
    host: Array
    # Fields by topic of the row group.
    topic: Array
    # (stamp, partition of the trace) by partition of the row group.
    seen: Array
    # Fields by partition of the trace.
    key: Array
    # Fields by partition and broker.
    replica: Array
    # Items of linked lists.
    item: Array
    # Fields by list item and broker.
    reach: Array
    # Initial values of each kind of entry, by OF_RUN to OF_ITEM.
    new: Array
    # The logs of replicas.
    logs: Logs


@compiled_within
def begin(state: TraceState, trace: int, capacity: int) -> None:
    """Begin a new trace with offsets below `capacity`."""
    for field in range(len(state.run)):
        state.run[field] = state.new[OF_RUN, field]
    state.run[TRACE] = trace
    state.run[ITEMS] = 1  # item 0 belongs to no list
    for node in range(len(state.host)):
        for field in range(state.host.shape[1]):
            state.host[node, field] = state.new[OF_HOST, field]
    clear_logs(state.logs, capacity)


@compiled_within
def given_up(state: TraceState) -> bool:
    """Whether a bound was reached."""
    return bool(state.run[FULL] or state.logs.pool[POOL_FULL])


@compiled_within
def partition_of(state: TraceState, code: int) -> int:
    """The partition of the trace with this code in the row group; NOTHING if it was not seen yet."""
    if state.seen[code, STAMP] != state.run[TRACE]:
        return NOTHING
    return int(state.seen[code, 1])


@compiled_within
def new_partition(state: TraceState, code: int) -> int:
    """Add to `state` the partition with this `code` in the row group."""
    key = state.run[KEYS]
    if key >= len(state.key):
        state.run[FULL] = 1
        return 0
    state.run[KEYS] = key + 1
    state.seen[code, STAMP] = state.run[TRACE]
    state.seen[code, 1] = key
    for field in range(state.key.shape[1]):
        state.key[key, field] = state.new[OF_KEY, field]
    state.key[key, CODE] = code
    for node in range(state.replica.shape[1]):
        forget(state, key, node)
    return int(key)


@compiled_within
def forget(state: TraceState, key: int, node: int) -> None:
    """Reset the replica of partition `key` on `node`: nothing is known about it."""
    for field in range(state.replica.shape[2]):
        state.replica[key, node, field] = state.new[OF_REPLICA, field]


@compiled_within
def partition(state: TraceState, code: int) -> int:
    """The partition of the trace with this code in the row group; added if it is new."""
    found = partition_of(state, code)
    return found if found != NOTHING else new_partition(state, code)


@compiled_within
def topic_of(state: TraceState, code: int) -> int:
    """The index of the topic `code`, with its fields in `state` valid for this trace."""
    if state.topic[code, STAMP] != state.run[TRACE]:
        for field in range(state.topic.shape[1]):
            state.topic[code, field] = state.new[OF_TOPIC, field]
        state.topic[code, STAMP] = state.run[TRACE]
    return code


@compiled_within
def item_of(state: TraceState, head: int, what: int) -> int:
    """The item with key `what` in the list that begins at `head`; NOTHING if there is none."""
    item = head
    while item != NOTHING and state.item[item, ITEM] != what:
        item = state.item[item, NEXT]
    return item


@compiled_within
def new_item(state: TraceState, head: int, what: int) -> int:
    """A new item in front of the list that begins at `head`."""
    item = state.run[ITEMS]
    if item >= len(state.item):
        state.run[FULL] = 1
        item = 0
    else:
        state.run[ITEMS] = item + 1
    for field in range(state.item.shape[1]):
        state.item[item, field] = state.new[OF_ITEM, field]
    state.item[item, NEXT] = head if item else NOTHING
    state.item[item, ITEM] = what
    return int(item)


@compiled_within
def listed(state: TraceState, key: int, field: int, what: int) -> int:
    """The item `what` of the list in a field of a partition; made if it is missing."""
    item = item_of(state, state.key[key, field], what)
    if item == NOTHING:
        item = new_item(state, state.key[key, field], what)
        state.key[key, field] = item
    return item


@compiled_within
def log_of(state: TraceState, key: int, node: int, field: int) -> int:
    """The log in a field of a replica; made if it is missing."""
    row = state.replica[key, node, field]
    if row == NOTHING:
        row = new_log(state.logs)
        state.replica[key, node, field] = row
    return int(row)
