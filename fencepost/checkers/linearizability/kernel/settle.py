"""The steps of a configuration that need no choice: possible observers, satisfied completions, foreseen dead
ends.

Owns rules 1 and 3 of `search`. Must not know nodes.
"""

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.linearizability.kernel.arrays import (
    ASKED,
    ASKED_STATE,
    CURSOR,
    IMPOSSIBLE,
    MISSING,
    SearchPart,
    StepTable,
    Work,
)
from fencepost.checkers.linearizability.kernel.step_table import find_step
from fencepost.checkers.operation_columns import Array


@compiled
def has(mask: Array, slot: int) -> bool:
    """Whether the bit `slot` of `mask` is set."""
    return bool((mask[slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1))


@compiled
def flip(mask: Array, slot: int) -> None:
    """Invert the bit `slot` of `mask`."""
    mask[slot >> 6] ^= np.uint64(1) << np.uint64(slot & 63)


@compiled
def move_to(part: SearchPart, work: Work, level: int) -> None:
    """Make `occupant` of `work` show the operations of `part` that are open at `level`."""
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
    """Note in `work` that the step of `state` by `call` is missing."""
    count = work.control[ASKED]
    if count < len(work.asked):
        work.asked[count] = call
        work.control[ASKED] = count + 1
        work.control[ASKED_STATE] = state


@compiled
def settle(part: SearchPart, steps: StepTable, work: Work, level: int, state: int) -> int:
    """Advance the configuration in `scratch` to the level of the next choice. Returns that level, -1 if steps
    are missing, -2 for a dead end.

    Rule 1 applies to all open operations. Then satisfied completions are passed, one by one.

    Args:
        part: the part of the history.
        steps: the table of steps.
        work: the memory of the search.
        level: the current level.
        state: the number of the state.
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
def leads(part: SearchPart, steps: StepTable, work: Work, op: int, due: int) -> int:
    """Whether the state after an operation that overwrites can still lead to the next observer.

    Args:
        part: the part of the history.
        steps: the table of steps.
        work: the memory of the search.
        op: the operation that overwrites.
        due: the level of the observer.

    Returns:
        1, 0, or -1 if that is not known yet.
    """
    able = find_step(steps, part.lands[op], part.reach[due])
    if able == MISSING:
        ask(work, part.lands[op], part.reach[due])
        return -1
    return 0 if able == IMPOSSIBLE else 1


@compiled
def overwritten(part: SearchPart, steps: StepTable, work: Work, level: int, due: int) -> int:
    """For a state that is a dead end by itself: whether an operation that overwrites it may happen before the
    next observer.

    Args:
        part: the part of the history.
        steps: the table of steps.
        work: the memory of the search.
        level: the current level.
        due: the level of the observer.

    Returns:
        as `foreseen`.
    """
    for slot in range(len(work.occupant)):
        op = work.occupant[slot]
        if op >= 0 and part.lands[op] >= 0 and not has(work.scratch, slot):
            able = leads(part, steps, work, op, due)
            if able:
                return level if able == 1 else -1
    for op in range(part.invoked[level], part.invoked[due]):
        if part.lands[op] >= 0:
            able = leads(part, steps, work, op, due)
            if able:
                return level if able == 1 else -1
    for op in part.lost:
        if op >= part.invoked[level]:
            break
        if not has(work.scratch, part.slot[op]):
            able = leads(part, steps, work, op, due)
            if able:
                return level if able == 1 else -1
    return -2


@compiled
def foreseen(part: SearchPart, steps: StepTable, work: Work, level: int, state: int) -> int:
    """Rule 3 for the configuration in `scratch`. Returns `level`, -1 if steps are missing, -2 for a dead end.

    Args:
        part: the part of the history.
        steps: the table of steps.
        work: the memory of the search.
        level: the current level.
        state: the number of the state.
    """
    due = part.observer[level]
    while due < len(part.returns) and part.invoked[due] <= part.reset[level]:
        op = part.returns[due]
        if op >= part.invoked[level] or not has(work.scratch, part.slot[op]):
            able = find_step(steps, state, part.reach[due])
            if able == MISSING:
                ask(work, state, part.reach[due])
                return -1
            return overwritten(part, steps, work, level, due) if able == IMPOSSIBLE else level
        due = part.observer[due + 1]
    return level
