"""COMMIT-SAFE of compacted logs over columns: a record may be missing only if a later one of its key was
committed too, or if it is a tombstone.

Owns this check of a dump. Must not know how records were committed.
"""

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels.column import IS_TOMBSTONE, RECORD_KEY, Events, end_of_loss, keyed_at
from fencepost.checkers.events.kernels.invariants_fields import COMMITTED
from fencepost.checkers.events.kernels.logs import (
    CAPACITY,
    END,
    RECORD_EPOCH,
    RECORD_VALUE,
    UNKNOWN,
    new_log,
    resize,
)
from fencepost.checkers.events.kernels.state import CODE, TRACE, TraceState


@compiled_within
def keys_below(state: TraceState, events: Events, key: int) -> int:
    """A log that holds, instead of each committed record, its key and whether it is a tombstone. UNKNOWN: the
    record has no key, or is below a record that is not known."""
    logs, committed = state.logs, state.key[key, COMMITTED]
    made, end = new_log(logs), logs.size[committed, END]
    resize(logs, made, end)
    its, base = committed * logs.pool[CAPACITY], made * logs.pool[CAPACITY]
    for offset in range(end - 1, -1, -1):
        if logs.record[its + offset, RECORD_EPOCH] == UNKNOWN:
            break
        found = keyed_at(events, state.run[TRACE], logs.record[its + offset, RECORD_VALUE])
        if found >= 0:
            logs.record[base + offset, RECORD_EPOCH] = events.keyed[found, RECORD_KEY]
            logs.record[base + offset, RECORD_VALUE] = events.keyed[found, IS_TOMBSTONE]
    return made


@compiled_within
def superseded(state: TraceState, keys: int, offset: int) -> bool:
    """Whether a later record than the one at `offset` has the same key and was committed too. keys: the log
    from `keys_below`."""
    logs = state.logs
    base, end = keys * logs.pool[CAPACITY], logs.size[keys, END]
    name, later = logs.record[base + offset, RECORD_EPOCH], offset + 1
    while later < end and logs.record[base + later, RECORD_EPOCH] != name:
        later += 1
    return bool(later < end)


@compiled_within
def compacted_away(state: TraceState, events: Events, key: int, final: int, start: int) -> bool:
    """Whether the dump `final` of partition `key` lacks a committed record without an excuse. Excuses: a
    committed record supersedes it, the claims allow its loss, or it is a tombstone. start: the log start of
    the dump."""
    logs, keys = state.logs, keys_below(state, events, key)
    base, its = keys * logs.pool[CAPACITY], final * logs.pool[CAPACITY]
    for offset in range(max(start, 0), logs.size[keys, END]):
        if logs.record[base + offset, RECORD_EPOCH] == UNKNOWN or logs.record[base + offset, RECORD_VALUE]:
            continue
        gone = (
            offset >= logs.size[final, END] or logs.record[its + offset, RECORD_EPOCH] == UNKNOWN
        ) and not superseded(state, keys, offset)
        if gone and offset == end_of_loss(
            events.claims, events.allowed, state.run[TRACE], state.key[key, CODE], offset
        ):
            return True
    return False
