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
3. An operation with unknown outcome is optional for ever. So a configuration that equals another but has used up more of them is dominated by it.

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
NODES, FRAMES, CURSOR, BEST, FOUND, ASKED, ASKED_STATE, STEPS = range(8)
"""Entries of the control block: counts of nodes and frames; the level that `occupant` shows; the deepest node; the node and
operation that linearized everything (node << 32 | operation); how many steps are missing, and of which state; expansions so far."""


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
    invoked before, -1 if none. words: of known slots.
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
    """Bring the configuration in `scratch` to the level where a choice is due; answers that level, -1 if steps are missing.

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
            return level
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
def insert(part: Part, work: Work, level: int, state: int, parent: int, op: int) -> int:
    """A new node for the configuration in `scratch`; -1 if a known node equals or dominates it (rule 3)."""
    mask, words = work.scratch, part.words
    key = mix((level << 32) | state)
    for word in range(words):
        key = mix(key ^ mask[word])
    bucket = np.int64(key & np.uint64(len(work.buckets) - 1))
    node = work.buckets[bucket]
    while node >= 0:
        row = work.nodes[node]
        if row[LEVEL] == level and row[STATE] == state:
            known = work.masks[node]
            covered = True
            for word in range(len(mask)):
                used = known[word] if word >= words else known[word] ^ mask[word]
                if used & (~mask[word] if word >= words else ~np.uint64(0)):
                    covered = False
                    break
            if covered:
                return -1
        node = row[CHAIN]
    new = work.control[NODES]
    work.control[NODES] = new + 1
    row = work.nodes[new]
    row[LEVEL], row[STATE], row[PARENT], row[OPERATION] = level, state, parent, op
    row[CHAIN], row[QUEUE] = work.buckets[bucket], -1
    work.buckets[bucket] = new
    work.masks[new, :] = mask
    if level > work.nodes[work.control[BEST], LEVEL]:
        work.control[BEST] = new
    return int(new)


@compiled
def candidate(part: Part, work: Work, node: int, index: int) -> int:
    """The operation to try as number `index` at a node, -1 if rule 2 or the mask forbids it: x, then open known ones, then unknown ones."""
    level, mask, slots = work.nodes[node, LEVEL], work.masks[node], len(work.occupant)
    if index == 0:
        return int(part.returns[level])
    if index <= slots:
        op = work.occupant[index - 1]
        if op < 0 or op == part.returns[level] or has(mask, index - 1):
            return -1
        for slot in range(slots):
            other = work.occupant[slot]
            twin = other >= 0 and part.call[other] == part.call[op]
            if twin and part.order[other] < part.order[op] and not has(mask, slot):
                return -1
        return int(op)
    op = part.unknown[index - 1 - slots]
    if has(mask, part.slot[op]) or (part.twin[op] >= 0 and not has(mask, part.slot[part.twin[op]])):
        return -1
    return int(op)


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
    work.scratch[:] = work.masks[node]
    flip(work.scratch, part.slot[op])
    return settle(part, steps, work, level, after)


@compiled
def push(work: Work, node: int) -> None:
    """A frame for a level that was reached."""
    frame = work.frames[work.control[FRAMES]]
    frame[HEAD], frame[TAIL], frame[CANDIDATE] = node, node, 0
    work.control[FRAMES] += 1


@compiled
def begin(part: Part, steps: Steps, work: Work, state: int) -> int:
    """The first node (again after ASKS). The operations invoked before the first completion are in `occupant` already."""
    work.control[ASKED] = 0
    work.scratch[:] = 0
    level = settle(part, steps, work, 0, state)
    if level < 0:
        return ASKS
    if level == len(part.returns):
        return LINEARIZABLE
    push(work, insert(part, work, level, state, -1, -1))
    return PAUSED


@compiled
def search(part: Part, steps: Steps, work: Work, budget: int) -> int:
    """Go on for at most `budget` expansions."""
    control, levels, slots = work.control, len(part.returns), len(work.occupant)
    control[ASKED] = 0
    while control[FRAMES] > 0:
        frame = work.frames[control[FRAMES] - 1]
        node, index = frame[HEAD], frame[CANDIDATE]
        level = work.nodes[node, LEVEL]
        if index > slots + part.unknown_before[level]:
            following = work.nodes[node, QUEUE]
            frame[HEAD], frame[CANDIDATE] = following, 0
            if following < 0:
                control[FRAMES] -= 1
            continue
        move_to(part, work, level)
        op = candidate(part, work, node, index)
        if op < 0:
            frame[CANDIDATE] = index + 1
            continue
        if control[NODES] == len(work.nodes):
            return FULL
        if budget == 0:
            return PAUSED
        budget -= 1
        control[STEPS] += 1
        reached = expand(part, steps, work, node, op)
        if reached == -1:
            return ASKS
        frame[CANDIDATE] = index + 1
        if reached == levels:
            control[FOUND] = (node << 32) | op
            return LINEARIZABLE
        if reached < 0:
            continue
        new = insert(part, work, reached, find_step(steps, work.nodes[node, STATE], part.call[op]), node, op)
        if new >= 0 and reached == level:
            work.nodes[frame[TAIL], QUEUE] = new
            frame[TAIL] = new
        elif new >= 0:
            push(work, new)
    return ILLEGAL


@compiled
def rehash(work: Work, part: Part) -> None:
    """Fill larger buckets with all nodes again."""
    work.buckets[:] = -1
    for node in range(work.control[NODES]):
        row = work.nodes[node]
        key = mix((row[LEVEL] << 32) | row[STATE])
        for word in range(part.words):
            key = mix(key ^ work.masks[node, word])
        bucket = np.int64(key & np.uint64(len(work.buckets) - 1))
        row[CHAIN] = work.buckets[bucket]
        work.buckets[bucket] = node
