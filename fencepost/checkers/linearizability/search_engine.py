"""The driver of a search: it grows memory, fills in missing steps and checks limits.

Owns one search of one part, from its arrays to an answer. Must not know verdicts.
"""

import math
from enum import Enum
from typing import Any

import numpy as np
from attrs import frozen

from fencepost.checkers.compiled import Kernels
from fencepost.checkers.linearizability.history import Arrays, Asked, arrays_of, without_foresight
from fencepost.checkers.linearizability.interned_steps import Table
from fencepost.checkers.linearizability.kernel import arrays as kernel
from fencepost.checkers.linearizability.kernel import search as loops
from fencepost.checkers.linearizability.kernel.arrays import Work
from fencepost.checkers.linearizability.kernel.memory import rehash
from fencepost.checkers.linearizability.kernel.step_table import put_steps
from fencepost.checkers.linearizability.limits import Guard, LimitReached, SearchLimits
from fencepost.checkers.models.base import Call
from fencepost.checkers.models.containers import Counter
from fencepost.traces.operations import Function, Operation
from fencepost.traces.operations import Outcome as Told

SLICE, PLAIN_SLICE = 200_000, 5_000
"""Operations between two reads of the clock, for machine code and for plain Python."""
QUESTION = 100
"""The cost of asking the model for one step, in operations of the search."""
FIRST_NODES = 1 << 10
LOOK_EVERY = 256
"""Answers of the model between two reads of the clock; the watchdog covers the time in between."""


class SearchAnswer(Enum):
    """The result of a search. GAVE_UP: it reached its own limit of effort."""

    LINEARIZABLE = "linearizable"
    ILLEGAL = "illegal"
    GAVE_UP = "gave up"


@frozen(kw_only=True, eq=False)
class SearchOutcome:
    """The answer of one search."""

    # Whether the part is linearizable, or why that is not known.
    answer: SearchAnswer
    # Operations (numbers in the part) in the order in which the search made them happen. They lead to the end
    # if the part is linearizable, otherwise to the deepest configuration.
    path: tuple[int, ...]
    # The number of completions that `path` satisfies.
    level: int
    # Steps that the search tried.
    steps: int
    # Configurations that the search remembered.
    nodes: int
    # Operations that the search looked at, plus QUESTION for each question to the model.
    effort: int


def search(arrays: Arrays, table: Table, guard: Guard, *, most_effort: int | None = None) -> SearchOutcome:
    """Search one part.

    Args:
        arrays: the part.
        table: the model's states, calls and steps.
        guard: the limits of time and memory.
        most_effort: the search gives up after this much effort.

    Returns:
        the answer.

    Raises:
        LimitReached: if a limit is reached.
    """
    levels = len(arrays.part.returns)
    if levels == 0:
        return SearchOutcome(answer=SearchAnswer.LINEARIZABLE, path=(), level=0, steps=0, nodes=0, effort=0)
    part = arrays.part if arrays.foresees else without_foresight(arrays.part)
    work = _work(arrays)
    first, filled = table.state(table.model.init()), table.filled
    asks, fresh = 0, True
    while True:
        if KERNELS.near():
            with guard.stopped():
                if KERNELS.due():
                    KERNELS.get_ready()
        slice_ = max(SLICE if KERNELS.ready else PLAIN_SLICE, 4 * len(arrays.asked))
        effort = int(work.control[kernel.VISITS]) + QUESTION * (table.filled - filled)
        if fresh:
            status = loops.begin(part, table.steps, work, first)
            fresh = status == kernel.ASKS
        else:
            left = slice_ if most_effort is None else most_effort - effort
            if left < 0:
                return _outcome(SearchAnswer.GAVE_UP, work, levels, effort)
            status = loops.search(part, table.steps, work, min(slice_, left))
        control = work.control
        if status == kernel.ASKS:
            table.fill(int(control[kernel.ASKED_STATE]), work.asked[: control[kernel.ASKED]])
            asks += 1
            if asks % LOOK_EVERY == 0:
                guard.check()
        elif status == kernel.FULL:
            work = _grown(work, arrays, guard)
        elif status == kernel.PAUSED:
            guard.check()
        else:
            answer = SearchAnswer.LINEARIZABLE if status == kernel.LINEARIZABLE else SearchAnswer.ILLEGAL
            return _outcome(answer, work, levels, effort)


def _call_each() -> None:
    table = Table(Counter())
    calls = [Call(function="add", argument=1), Call(function="read", result=1)]
    part = [Asked(operation=_NOTHING, call=call, invoke=at, complete=at) for at, call in enumerate(calls)]
    arrays = arrays_of(part, table)
    search(arrays, table, Guard(SearchLimits(timeout_s=math.inf)))
    rehash(_work(arrays), arrays.part)


KERNELS = Kernels(loops.begin, loops.search, rehash, put_steps, call=_call_each)
"""The compiled functions of the search. Compilation does not count towards a limit, and no limit may
interrupt it."""
_NOTHING = Operation(
    op_id=0, process=0, function=Function.READ, invoke_time=0, completion_time=0, outcome=Told.OK
)


def _outcome(answer: SearchAnswer, work: Work, levels: int, effort: int) -> SearchOutcome:
    control = work.control
    path: list[int] = []
    node, level = int(control[kernel.BEST]), levels
    if answer is SearchAnswer.LINEARIZABLE:
        found = int(control[kernel.FOUND])
        node = -1 if found < 0 else found >> 32
        if found >= 0:
            path.append(found & 0xFFFFFFFF)
    else:
        level = int(work.nodes[node, kernel.LEVEL]) if control[kernel.NODES] else 0
    while node >= 0 and control[kernel.NODES]:
        if work.nodes[node, kernel.OPERATION] >= 0:
            path.append(int(work.nodes[node, kernel.OPERATION]))
        node = int(work.nodes[node, kernel.PARENT])
    return SearchOutcome(
        answer=answer,
        path=tuple(reversed(path)),
        level=level,
        steps=int(control[kernel.STEPS]),
        nodes=int(control[kernel.NODES]),
        effort=effort,
    )


def _work(arrays: Arrays) -> Work:
    part = arrays.part
    words = part.words + -(-len(part.unknown) // kernel.WORD)
    occupant = np.full(arrays.slots, -1, np.int64)
    for op in range(int(part.invoked[0])):
        if part.order[op] < len(part.returns):
            occupant[part.slot[op]] = op
    control = np.zeros(kernel.VISITS + 1, np.int64)
    control[kernel.FOUND] = -1
    return Work(
        nodes=np.empty((FIRST_NODES, 6), np.int64),
        masks=np.empty((FIRST_NODES, words), np.uint64),
        buckets=np.full(2 * FIRST_NODES, -1, np.int64),
        frames=np.empty((len(part.returns) + 1, 3), np.int64),
        occupant=occupant,
        scratch=np.zeros(words, np.uint64),
        asked=np.empty(2 * arrays.slots + 1, np.int64),
        control=control,
    )


def _grown(work: Work, arrays: Arrays, guard: Guard) -> Work:
    """Double the room for nodes. Raises LimitReached."""
    size = 2 * len(work.nodes)
    guard.check()
    if size > guard.limits.nodes:
        guard.reached = f"the limit of {guard.limits.nodes:,} remembered configurations was met"
        raise LimitReached(guard.reached)
    guard.room_for(2 * (work.nodes.nbytes + work.masks.nbytes + work.buckets.nbytes))

    def longer(array: Any) -> Any:
        made = np.empty((size, *array.shape[1:]), array.dtype)
        made[: len(array)] = array
        return made

    grown = work._replace(
        nodes=longer(work.nodes), masks=longer(work.masks), buckets=np.empty(2 * size, np.int64)
    )
    rehash(grown, arrays.part)
    return grown
