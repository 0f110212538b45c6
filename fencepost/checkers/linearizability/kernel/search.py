"""The compiled search: it tries every order of the operations of one part, and visits no configuration twice.

Owns the loops of a search. Must not know models, calls or times. States and calls are small integers, and a
step is an entry of a table. If an entry is missing, the search returns to ask for it.

Theory. A history is linearizable if every operation can be given a moment between its invocation and its
completion such that the model allows the resulting order (Herlihy & Wing; the search is Wing & Gong's, with
Lowe's memory of configurations). Linearizing *just in time* (Lowe) means that an operation happens only when
some completion requires it. So a configuration consists of the level (how many completions are satisfied),
the state, and the open operations that happened early. From a configuration at level r, the search applies
operations until the one that completes next has happened. It tries short sequences first, so a level is a
queue, and it follows the first way to the next level at once.

Four rules keep the search small without changing the answer:

1. An open observer (a call that never changes a state) that is possible happens now: no later operation can
   detect it.
2. Of two open operations with the same call, the one that completes first goes first. If both outcomes are
   unknown, the one that was invoked first goes first.
3. A state from which the next observer can never become possible is a dead end. Exceptions: a call may come
   first that resets, or that overwrites the state by one from which the observer is possible (`foreseen`).
4. An operation with an unknown outcome stays optional for ever. If two configurations differ only in such
   operations, the one that used more of them is dominated.
"""

from typing import Any

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
from fencepost.checkers.linearizability.kernel.step_table import find_step


@compiled
def has_twin(part: SearchPart, work: Work, node: int, op: int) -> bool:
    """Whether another open known operation with the same call completes first (rule 2).

    Args:
        part: the part of the history.
        work: the memory of the search.
        node: the configuration.
        op: the operation.

    Returns:
        whether `op` need not be tried.
    """
    call, order, occupant = part.call, part.order, work.occupant
    for slot in range(len(occupant)):
        other = occupant[slot]
        if other >= 0 and call[other] == call[op] and order[other] < order[op] and not used(work, node, slot):
            return True
    return False


@compiled
def next_candidate(part: SearchPart, work: Work, node: int, index: int, end: int) -> int:
    """The first candidate in `index` <= number < `end` that is open at a node. Candidates are numbered: the
    operation that completes next, the known ones by slot, the unknown ones.

    The arrays are taken out of their tuples first, because passing the tuples costs more than the work here.
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
    """The operation with the number `index` among the candidates of `node`.

    Args:
        part: the part of the history.
        work: the memory of the search.
        node: the configuration.
        index: the number of the candidate.

    Returns:
        the operation.
    """
    slots = len(work.occupant)
    if index == 0:
        return int(part.returns[work.nodes[node, LEVEL]])
    return int(work.occupant[index - 1] if index <= slots else part.unknown[index - 1 - slots])


@compiled
def expand(part: SearchPart, steps: StepTable, work: Work, node: int, op: int) -> int:
    """Apply `op` at `node`, in `scratch`. Returns the new level, -1 if steps are missing, -2 if the operation
    is impossible or unnecessary.

    Args:
        part: the part of the history.
        steps: the table of steps.
        work: the memory of the search.
        node: the configuration.
        op: the operation.
    """
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
    """Ask in advance for the steps of the later candidates of the same kind, from number `index` on. Leaving
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
    """Add a frame for the level of `node`, which was just reached in `work`."""
    top = work.control[FRAMES]
    work.frames[top, HEAD], work.frames[top, TAIL], work.frames[top, CANDIDATE] = node, node, 0
    work.control[FRAMES] += 1


@compiled(when_asked=True)
def begin(part: SearchPart, steps: StepTable, work: Work, state: int) -> int:
    """Create the first node. It is called again after ASKS.

    Args:
        part: the part of the history.
        steps: the table of steps.
        work: the memory; its `occupant` already has the operations that were invoked before the first
            completion.
        state: the initial state.

    Returns:
        a return code of `search`.
    """
    work.control[ASKED] = 0
    work.scratch[:] = 0
    # a literal would compile the functions for that number alone
    first: Any = np.int64(0)
    none: Any = np.int64(-1)
    level = settle(part, steps, work, first, state)
    if level < 0:
        return ASKS if level == -1 else ILLEGAL
    if level == len(part.returns):
        return LINEARIZABLE
    push(work, insert(part, work, level, state, none, none))
    return PAUSED


@compiled(when_asked=True)
def search(part: SearchPart, steps: StepTable, work: Work, budget: int) -> int:
    """Continue until `budget` operations were looked at.

    Args:
        part: the part of the history.
        steps: the table of steps.
        work: the memory of the search.
        budget: the number of operations.

    Returns:
        LINEARIZABLE, ILLEGAL, PAUSED, ASKS or FULL.
    """
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
