"""The compiled search: every order in which the operations of one part may have happened, forgotten ones
never twice.

Owns the loops of a search. Must not know models, calls or times: states and calls are small integers, a
step is an entry of a table, and an entry that is missing is asked for by returning.

Theory. A history is linearizable if every operation can be given a moment between invocation and completion
such that the model allows the resulting order (Herlihy & Wing; the search is Wing & Gong's, with Lowe's
memory of configurations). Linearizing *just in time* (Lowe) means that nothing happens before some completion
forces it. So a configuration is: the level (how many completions are satisfied), the state, and which open
operations have happened early. From a configuration at level r, whose next completion is that of x,
operations are applied until x is among them; fewest first, so a level is a queue, and the first way to the
next level is followed at once.

What keeps it small, each without losing an answer:
1. An open observer (a call that never changes a state) that is possible happens now: nothing after it can
   tell.
2. Of two open operations with the same call, the one that completes first goes first; of two with unknown
   outcome, the one invoked first.
3. A state from which the next observer due can never become possible leads nowhere, unless a call may come
   first that resets, or that overwrites the state by one from which the observer is possible (`foreseen`).
4. An operation with unknown outcome is optional for ever. So a configuration that equals another but has used
   up more of them is dominated by it.
"""

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.linearizability.kernel.arrays import (
    ASKED,
    ASKED_STATE,
    ASKS,
    CANDIDATE,
    FOUND,
    FRAMES,
    FULL,
    HEAD,
    ILLEGAL,
    IMPOSSIBLE,
    LEVEL,
    LINEARIZABLE,
    MISSING,
    NODES,
    PAUSED,
    QUEUE,
    STATE,
    STEPS,
    TAIL,
    VISITS,
    SearchPart,
    StepTable,
    Work,
)
from fencepost.checkers.linearizability.kernel.memory import insert, used
from fencepost.checkers.linearizability.kernel.settle import ask, flip, move_to, settle
from fencepost.checkers.linearizability.kernel.steps import find_step


@compiled
def has_twin(part: SearchPart, work: Work, node: int, op: int) -> bool:
    """Whether another open known operation with the same call completes first (rule 2)."""
    call, order, occupant = part.call, part.order, work.occupant
    for slot in range(len(occupant)):
        other = occupant[slot]
        if other >= 0 and call[other] == call[op] and order[other] < order[op] and not used(work, node, slot):
            return True
    return False


@compiled
def next_candidate(part: SearchPart, work: Work, node: int, index: int, end: int) -> int:
    """The first number from `index` to `end` whose operation is open at a node: x, then the known ones by
    slot, then the unknown ones.

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
def operation_at(part: SearchPart, work: Work, node: int, index: int) -> int:
    """The operation with a number among the candidates of a node."""
    slots = len(work.occupant)
    if index == 0:
        return int(part.returns[work.nodes[node, LEVEL]])
    return int(work.occupant[index - 1] if index <= slots else part.unknown[index - 1 - slots])


@compiled
def expand(part: SearchPart, steps: StepTable, work: Work, node: int, op: int) -> int:
    """Let `op` happen at `node`, in `scratch`: the level that it leads to, -1 if steps are missing, -2 if it
    cannot or need not."""
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
def ask_ahead(part: SearchPart, steps: StepTable, work: Work, node: int, index: int) -> None:
    """Ask at once for what the operations of the same kind that come after number `index` do: leaving
    compiled code costs more than a step."""
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


@compiled(when_asked=True)
def begin(part: SearchPart, steps: StepTable, work: Work, state: int) -> int:
    """The first node (again after ASKS). The operations invoked before the first completion are in `occupant`
    already."""
    work.control[ASKED] = 0
    work.scratch[:] = 0
    level = settle(part, steps, work, 0, state)
    if level < 0:
        return ASKS if level == -1 else ILLEGAL
    if level == len(part.returns):
        return LINEARIZABLE
    push(work, insert(part, work, level, state, -1, -1))
    return PAUSED


@compiled(when_asked=True)
def search(part: SearchPart, steps: StepTable, work: Work, budget: int) -> int:
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
