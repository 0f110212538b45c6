"""What a screen remembers of one trace: of the run, of brokers, topics, partitions, replicas, and short lists
of what is keyed by epoch or version.

Owns the arrays, how a trace begins with none of its predecessor's, and look-ups. Must not know what the
fields mean: invariants_fields.py and conformance_fields.py name theirs. Every array has a bound; who needs
more sets `FULL`, and the trace is given up (that is: judged by the plain code).
"""

from typing import NamedTuple

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels.logs import POOL_FULL, Logs, clear_logs, new_log
from fencepost.checkers.operation_columns import Array

NOTHING = -1
TRACE, KEYS, ITEMS, FULL, LIST, FIRST_FREE = range(6)
"""Of `State.run`: the trace under way, how many partitions and list items it has, whether a bound was met,
the head of a list of the run's own; a screen's own fields begin at FIRST_FREE."""
OF_RUN, OF_HOST, OF_TOPIC, OF_KEY, OF_REPLICA, OF_ITEM = range(6)
"""Rows of `State.new`."""
STAMP = 0
"""Of `State.topic` and `State.seen`: the trace that touched it last, less which it is as new."""
CODE = 0
"""Of `State.key`: what the row group calls the partition."""
NEXT, ITEM = 0, 1
"""Of `State.item`: the item behind it, what it is found by; a screen's own fields follow."""


class TraceState(NamedTuple):
    """run: scalars. host: by broker. topic: by topic of the row group. seen: (stamp, partition of the trace)
    by partition of the row group. key: by partition of the trace. replica: by partition and broker. item: of
    linked lists. reach: by list item and broker. new: what each of them begins with, by OF_RUN to OF_ITEM."""

    run: Array
    host: Array
    topic: Array
    seen: Array
    key: Array
    replica: Array
    item: Array
    reach: Array
    new: Array
    logs: Logs


@compiled_within
def begin(state: TraceState, trace: int, capacity: int) -> None:
    """A new trace, in which offsets stay below `capacity`."""
    for field in range(len(state.run)):
        state.run[field] = state.new[OF_RUN, field]
    state.run[TRACE] = trace
    state.run[ITEMS] = 1  # the first is nobody's
    for node in range(len(state.host)):
        for field in range(state.host.shape[1]):
            state.host[node, field] = state.new[OF_HOST, field]
    clear_logs(state.logs, capacity)


@compiled_within
def given_up(state: TraceState) -> bool:
    """Whether a bound was met."""
    return bool(state.run[FULL] or state.logs.pool[POOL_FULL])


@compiled_within
def partition_of(state: TraceState, code: int) -> int:
    """The partition of the trace that the row group calls `code`; NOTHING if it was not seen."""
    if state.seen[code, STAMP] != state.run[TRACE]:
        return NOTHING
    return int(state.seen[code, 1])


@compiled_within
def new_partition(state: TraceState, code: int) -> int:
    """A partition that was not seen."""
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
    """A replica of which nothing is known."""
    for field in range(state.replica.shape[2]):
        state.replica[key, node, field] = state.new[OF_REPLICA, field]


@compiled_within
def partition(state: TraceState, code: int) -> int:
    """The partition of the trace that the row group calls `code`."""
    found = partition_of(state, code)
    return found if found != NOTHING else new_partition(state, code)


@compiled_within
def topic_of(state: TraceState, code: int) -> int:
    """A topic, with what is known of it in this trace."""
    if state.topic[code, STAMP] != state.run[TRACE]:
        for field in range(state.topic.shape[1]):
            state.topic[code, field] = state.new[OF_TOPIC, field]
        state.topic[code, STAMP] = state.run[TRACE]
    return code


@compiled_within
def item_of(state: TraceState, head: int, what: int) -> int:
    """The item of a list that begins at `head` by which `what` is found; NOTHING if there is none."""
    item = head
    while item != NOTHING and state.item[item, ITEM] != what:
        item = state.item[item, NEXT]
    return item


@compiled_within
def new_item(state: TraceState, head: int, what: int) -> int:
    """An item in front of the list that begins at `head`."""
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
    """The item `what` of the list that a field of a partition begins; made if there is none."""
    item = item_of(state, state.key[key, field], what)
    if item == NOTHING:
        item = new_item(state, state.key[key, field], what)
        state.key[key, field] = item
    return item


@compiled_within
def log_of(state: TraceState, key: int, node: int, field: int) -> int:
    """The log that a field of a replica names; made if there is none."""
    row = state.replica[key, node, field]
    if row == NOTHING:
        row = new_log(state.logs)
        state.replica[key, node, field] = row
    return int(row)
