"""The compiled search: every order in which the operations of one part may have happened, forgotten ones never twice.

Owns the arrays of a search and the loops over them. Must not know models, calls or times: states and calls are small integers, a
step is an entry of a table, and an entry that is missing is asked for by returning.

Theory. A history is linearizable if every operation can be given a moment between invocation and completion such that the model allows the
resulting order (Herlihy & Wing; the search is Wing & Gong's, with Lowe's memory of configurations). Linearizing *just in time*
(Lowe) means that nothing happens before some completion forces it. So a configuration is: the level (how many completions are satisfied), the state,
and which open operations have happened early. From a configuration at level r, whose next completion is that of x, operations are applied
until x is among them; fewest first, so a level is a queue, and the first way to the next level is followed at once.

What keeps it small, each without losing an answer:
1. An open observer (a call that never changes a state) that is possible happens now: nothing after it can tell.
2. Of two open operations with the same call, the one that completes first goes first; of two with unknown outcome, the one invoked first.
3. A state from which the next observer due can never become possible, without a call that resets, leads nowhere (`foreseen`).
4. An operation with unknown outcome is optional for ever. So a configuration that equals another but has used up more of them is dominated by it.

All kernels stand in this file, because numba's cache on disk follows changes of the outermost kernel's file only.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numba
import numpy as np

from fencepost.checkers.columns import Array

F = TypeVar("F", bound=Callable[..., object])

IMPOSSIBLE, MISSING = -1, -2
"""Entries of the table of steps besides states."""
WORD = 64

LINEARIZABLE, ILLEGAL, PAUSED, ASKS, FULL = range(5)
"""What `search` answers: decided; its budget is used up; steps are missing (`Work.asked`); the nodes are full."""

LEVEL, STATE, PARENT, OPERATION, CHAIN, QUEUE = range(6)
"""Columns of a node: level and state; the node and the operation that it came from; the next node in its bucket, and in its level's queue."""
HEAD, TAIL, CANDIDATE = range(3)
"""Columns of a frame: the node of a level's queue that is being expanded, the last one, and the next operation to try."""
NODES, FRAMES, CURSOR, BEST, FOUND, ASKED, ASKED_STATE, STEPS, VISITS = range(9)
"""Entries of the control block: counts of nodes and frames; the level that `occupant` shows; the deepest node; the node and
operation that linearized everything (node << 32 | operation); how many steps are missing, and of which state; steps tried, and operations looked at, so far."""


def compiled(function: F) -> F:
    """Compile at the first call, kept on disk where the cache folder can be written."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except (RuntimeError, OSError):  # numba found no place for its cache
        return cast(F, numba.njit(nogil=True)(function))


class Part(NamedTuple):
    """One part of a history. Operations are numbered by invocation; `slot` is a bit of the mask.

    call: each operation's call; observes: whether that never changes a state. slot: known ones reuse the slots of completed ones, unknown ones
    have one each, from the first word behind the known. order: rank of its completion, R and more for unknown ones. returns: operations with
    a completion, in its order (R of them). invoked: how many operations are invoked before each completion. unknown: unknown ones by
    invocation; unknown_before: how many of them are invoked before each completion. twin: the unknown operation with the same call
    invoked before, -1 if none. words: of known slots. reach: for the operation of each completion that observes, the number of the question
    whether a state can still lead to it, else -1; observer: the first level from each on that has one (R: none); reset: the first operation
    that resets among those completing at each level or later.
    """

    call: Array
    observes: Array
    slot: Array
    order: Array
    returns: Array
    invoked: Array
    unknown: Array
    unknown_before: Array
    twin: Array
    words: int
    reach: Array
    observer: Array
    reset: Array


class Steps(NamedTuple):
    """The table of steps, open addressing. keys: state << 32 | call, -1 empty; values: state, or IMPOSSIBLE."""

    keys: Array
    values: Array


class Work(NamedTuple):
    """The memory of a search. nodes, masks: row by row; buckets: first node of each bucket; occupant: the open known operation in each slot;
    scratch: the mask under construction; asked: calls whose steps are missing."""

    nodes: Array
    masks: Array
    buckets: Array
    frames: Array
    occupant: Array
    scratch: Array
    asked: Array
    control: Array


@compiled
def mix(value: int) -> int:
    """A 64-bit finalizer (the constants of MurmurHash3)."""
    x = np.uint64(value)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    x ^= x >> np.uint64(33)
    return x  # type: ignore[return-value]


@compiled
def find_step(steps: Steps, state: int, call: int) -> int:
    """The state after a call, IMPOSSIBLE, or MISSING."""
    key = (state << 32) | call
    last = len(steps.keys) - 1
    bucket = np.int64(mix(key) & np.uint64(last))
    while steps.keys[bucket] != key:
        if steps.keys[bucket] < 0:
            return MISSING
        bucket = (bucket + 1) & last
    return int(steps.values[bucket])


@compiled
def put_steps(steps: Steps, keys: Array, values: Array) -> None:
    """Store entries that are not there yet; the table has room for them."""
    last = len(steps.keys) - 1
    for i in range(len(keys)):
        if keys[i] >= 0:
            bucket = np.int64(mix(keys[i]) & np.uint64(last))
            while steps.keys[bucket] >= 0:
                bucket = (bucket + 1) & last
            steps.keys[bucket] = keys[i]
            steps.values[bucket] = values[i]


@compiled
def has(mask: Array, slot: int) -> bool:
    """Whether a bit is set."""
    return bool((mask[slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1))


@compiled
def flip(mask: Array, slot: int) -> None:
    """Set or clear a bit."""
    mask[slot >> 6] ^= np.uint64(1) << np.uint64(slot & 63)


@compiled
def move_to(part: Part, work: Work, level: int) -> None:
    """Let `occupant` show the operations that are open at a level."""
    at = work.control[CURSOR]
    while at < level:
        work.occupant[part.slot[part.returns[at]]] = -1
        for op in range(part.invoked[at], part.invoked[at + 1]):
            if part.order[op] < len(part.returns):
                work.occupant[part.slot[op]] = op
        at += 1
    while at > level:
        at -= 1
        for op in range(part.invoked[at], part.invoked[at + 1]):
            if part.order[op] < len(part.returns):
                work.occupant[part.slot[op]] = -1
        work.occupant[part.slot[part.returns[at]]] = part.returns[at]
    work.control[CURSOR] = level


@compiled
def ask(work: Work, state: int, call: int) -> None:
    """Note a missing step of `state`."""
    count = work.control[ASKED]
    if count < len(work.asked):
        work.asked[count] = call
        work.control[ASKED] = count + 1
        work.control[ASKED_STATE] = state


@compiled
def settle(part: Part, steps: Steps, work: Work, level: int, state: int) -> int:
    """Bring the configuration in `scratch` to the level where a choice is due; answers that level, -1 if steps are missing, -2 if it leads nowhere.

    Rule 1 is applied to everything open, then completions that are satisfied are passed, one by one.
    """
    mask = work.scratch
    move_to(part, work, level)
    for slot in range(len(work.occupant)):
        op = work.occupant[slot]
        if op >= 0 and part.observes[op] and not has(mask, slot):
            after = find_step(steps, state, part.call[op])
            if after == MISSING:
                ask(work, state, part.call[op])
            elif after == state:
                flip(mask, slot)
    while work.control[ASKED] == 0:
        slot = part.slot[part.returns[level]]
        if not has(mask, slot):
            return foreseen(part, steps, work, level, state)
        flip(mask, slot)
        level += 1
        if level == len(part.returns):
            return level
        move_to(part, work, level)
        for op in range(part.invoked[level - 1], part.invoked[level]):
            if part.observes[op]:
                after = find_step(steps, state, part.call[op])
                if after == MISSING:
                    ask(work, state, part.call[op])
                elif after == state:
                    flip(mask, part.slot[op])
    return -1


@compiled
def foreseen(part: Part, steps: Steps, work: Work, level: int, state: int) -> int:
    """Rule 3 for the configuration in `scratch`: `level`, -1 if steps are missing, -2 if it leads nowhere."""
    due = part.observer[level]
    while due < len(part.returns) and part.invoked[due] <= part.reset[level]:
        op = part.returns[due]
        if op >= part.invoked[level] or not has(work.scratch, part.slot[op]):
            able = find_step(steps, state, part.reach[due])
            if able == MISSING:
                ask(work, state, part.reach[due])
                return -1
            return -2 if able == IMPOSSIBLE else level
        due = part.observer[due + 1]
    return level


@compiled
def used(work: Work, node: int, slot: int) -> bool:
    """Whether a bit of a node's mask is set."""
    return bool((work.masks[node, slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1))


@compiled
def covered(part: Part, work: Work, node: int, level: int, state: int) -> bool:
    """Whether a node equals or dominates the configuration in `scratch` (rule 4)."""
    if work.nodes[node, LEVEL] != level or work.nodes[node, STATE] != state:
        return False
    for word in range(part.words):
        if work.masks[node, word] != work.scratch[word]:
            return False
    more = np.uint64(0)
    for word in range(part.words, len(work.scratch)):
        more |= work.masks[node, word] & ~work.scratch[word]
    return not more


@compiled
def bucket_of(part: Part, work: Work, level: int, state: int, mask: Array) -> int:
    """Where configurations stand that differ in unknown operations only."""
    key = mix((level << 32) | state)
    for word in range(part.words):
        key = mix(key ^ mask[word])
    return np.int64(key & np.uint64(len(work.buckets) - 1))  # type: ignore[return-value]


@compiled
def insert(part: Part, work: Work, level: int, state: int, parent: int, op: int) -> int:
    """A new node for the configuration in `scratch`; -1 if a known node covers it."""
    bucket = bucket_of(part, work, level, state, work.scratch)
    node = work.buckets[bucket]
    while node >= 0:
        if covered(part, work, node, level, state):
            return -1
        node = work.nodes[node, CHAIN]
    new = work.control[NODES]
    work.control[NODES] = new + 1
    work.nodes[new, LEVEL], work.nodes[new, STATE] = level, state
    work.nodes[new, PARENT], work.nodes[new, OPERATION] = parent, op
    work.nodes[new, CHAIN], work.nodes[new, QUEUE] = work.buckets[bucket], -1
    work.buckets[bucket] = new
    for word in range(len(work.scratch)):
        work.masks[new, word] = work.scratch[word]
    if level > work.nodes[work.control[BEST], LEVEL]:
        work.control[BEST] = new
    return int(new)


@compiled
def has_twin(part: Part, work: Work, node: int, op: int) -> bool:
    """Whether another open known operation with the same call completes first (rule 2)."""
    call, order, occupant = part.call, part.order, work.occupant
    for slot in range(len(occupant)):
        other = occupant[slot]
        if other >= 0 and call[other] == call[op] and order[other] < order[op] and not used(work, node, slot):
            return True
    return False


@compiled
def next_candidate(part: Part, work: Work, node: int, index: int, end: int) -> int:
    """The first number from `index` to `end` whose operation is open at a node: x, then the known ones by slot, then the unknown ones.

    Arrays are taken out of their tuples first: passing those costs more than what is done with them here.
    """
    unknown, slot_of, twin_of, masks, occupant = part.unknown, part.slot, part.twin, work.masks, work.occupant
    slots, x = len(occupant), part.returns[work.nodes[node, LEVEL]]
    if index == 0:
        return 0
    while index <= min(slots, end):
        op = occupant[index - 1]
        bit = masks[node, (index - 1) >> 6] >> np.uint64((index - 1) & 63)
        if op >= 0 and op != x and not bit & np.uint64(1) and not has_twin(part, work, node, op):
            return index
        index += 1
    while index <= end:
        op = unknown[index - 1 - slots]
        slot, twin = slot_of[op], twin_of[op]
        if not (masks[node, slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1):
            if twin < 0:
                return index
            slot = slot_of[twin]
            if (masks[node, slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1):
                return index
        index += 1
    return index


@compiled
def operation_at(part: Part, work: Work, node: int, index: int) -> int:
    """The operation with a number among the candidates of a node."""
    slots = len(work.occupant)
    if index == 0:
        return int(part.returns[work.nodes[node, LEVEL]])
    return int(work.occupant[index - 1] if index <= slots else part.unknown[index - 1 - slots])


@compiled
def expand(part: Part, steps: Steps, work: Work, node: int, op: int) -> int:
    """Let `op` happen at `node`, in `scratch`: the level that it leads to, -1 if steps are missing, -2 if it cannot or need not."""
    level, state = work.nodes[node, LEVEL], work.nodes[node, STATE]
    after = find_step(steps, state, part.call[op])
    if after == MISSING:
        ask(work, state, part.call[op])
        return -1
    optional = part.order[op] >= len(part.returns)
    if after == IMPOSSIBLE or (after == state and (optional or part.observes[op])):
        return -2
    for word in range(len(work.scratch)):
        work.scratch[word] = work.masks[node, word]
    flip(work.scratch, part.slot[op])
    return settle(part, steps, work, level, after)


@compiled
def ask_ahead(part: Part, steps: Steps, work: Work, node: int, index: int) -> None:
    """Ask at once for what the operations of the same kind that come after number `index` do: leaving compiled code costs more than a step."""
    slots, level, state = len(work.occupant), work.nodes[node, LEVEL], work.nodes[node, STATE]
    end = slots + part.unknown_before[level] if index > slots else slots if index > 0 else 0
    ahead = next_candidate(part, work, node, index + 1, end)
    while ahead <= end:
        op = operation_at(part, work, node, ahead)
        if find_step(steps, state, part.call[op]) == MISSING:
            ask(work, state, part.call[op])
        ahead = next_candidate(part, work, node, ahead + 1, end)


@compiled
def push(work: Work, node: int) -> None:
    """A frame for a level that was reached."""
    top = work.control[FRAMES]
    work.frames[top, HEAD], work.frames[top, TAIL], work.frames[top, CANDIDATE] = node, node, 0
    work.control[FRAMES] += 1


@compiled
def begin(part: Part, steps: Steps, work: Work, state: int) -> int:
    """The first node (again after ASKS). The operations invoked before the first completion are in `occupant` already."""
    work.control[ASKED] = 0
    work.scratch[:] = 0
    level = settle(part, steps, work, 0, state)
    if level < 0:
        return ASKS if level == -1 else ILLEGAL
    if level == len(part.returns):
        return LINEARIZABLE
    push(work, insert(part, work, level, state, -1, -1))
    return PAUSED


@compiled
def search(part: Part, steps: Steps, work: Work, budget: int) -> int:
    """Go on until `budget` operations have been looked at."""
    control, frames, levels, slots = work.control, work.frames, len(part.returns), len(work.occupant)
    control[ASKED] = 0
    while control[FRAMES] > 0:
        top = control[FRAMES] - 1
        node = frames[top, HEAD]
        level, end = work.nodes[node, LEVEL], slots + part.unknown_before[work.nodes[node, LEVEL]]
        move_to(part, work, level)
        before = frames[top, CANDIDATE]
        index = next_candidate(part, work, node, before, end)
        frames[top, CANDIDATE] = index
        budget -= index - before + 1
        control[VISITS] += index - before + 1
        if index > end:
            following = work.nodes[node, QUEUE]
            frames[top, HEAD], frames[top, CANDIDATE] = following, 0
            if following < 0:
                control[FRAMES] = top
            continue
        if budget < 0:
            return PAUSED
        op = operation_at(part, work, node, index)
        if control[NODES] == len(work.nodes):
            return FULL
        control[STEPS] += 1
        reached = expand(part, steps, work, node, op)
        if reached == -1:
            if control[ASKED_STATE] == work.nodes[node, STATE] and index > 0:
                ask_ahead(part, steps, work, node, index)
            return ASKS
        frames[top, CANDIDATE] = index + 1
        if reached == levels:
            control[FOUND] = (node << 32) | op
            return LINEARIZABLE
        if reached < 0:
            continue
        new = insert(part, work, reached, find_step(steps, work.nodes[node, STATE], part.call[op]), node, op)
        if new >= 0 and reached == level:
            work.nodes[frames[top, TAIL], QUEUE] = new
            frames[top, TAIL] = new
        elif new >= 0:
            push(work, new)
    return ILLEGAL


@compiled
def rehash(work: Work, part: Part) -> None:
    """Fill larger buckets with all nodes again."""
    work.buckets[:] = -1
    for node in range(work.control[NODES]):
        level, state = work.nodes[node, LEVEL], work.nodes[node, STATE]
        bucket = bucket_of(part, work, level, state, work.masks[node])
        work.nodes[node, CHAIN] = work.buckets[bucket]
        work.buckets[bucket] = node
