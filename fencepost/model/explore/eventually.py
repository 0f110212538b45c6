"""Whether something good stays possible: from every reachable state, by the system's own steps, without
further faults.

Owns the exact check, for systems in slots. Must not know which states are good, or which actions are faults.

A run that takes each step that stays possible (strong fairness) ends in a component of the graph that it
cannot leave. So "it happens in the end, once faults are over" says that each such component has a good state.
That is equivalent to: from every reachable state some good state can be reached. The check goes backwards
from the good states, along the steps that are not faults.
"""

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from fencepost.model.explore.compiled import CHUNK, Broken, Exploration
from fencepost.model.explore.memo import Numbers
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.statements import Judge
from fencepost.model.explore.transition_system import (
    Eventually,
    ExplorationOutcome,
    Limits,
    Part,
    State,
    Step,
)


@frozen
class Prospect:
    """outcome: HOLDS if every state has a path to a good one, VIOLATED if some have none, BOUNDED if there
    are more states than the limits allow. states: visited; stuck: without a path; path: a shortest one to a
    stuck state."""

    outcome: ExplorationOutcome
    states: int
    stuck: int = 0
    path: tuple[Step, ...] = ()


def stays_possible(
    system: SlottedSystem[State], wanted: Eventually, limits: Limits | None = None
) -> Prospect:
    """Visit all states, then go backwards. A system that checks invariants ends at the first violation, so
    pass one without invariants."""
    exploration = Exploration(system, tuple(system.initial()), limits or Limits())
    outcome = exploration.run().outcome
    states = len(exploration.store)
    if outcome is not ExplorationOutcome.HOLDS:
        return Prospect(ExplorationOutcome.BOUNDED, states)
    origins, targets = _steps(exploration, wanted.faults)
    hopeful = _good(exploration, wanted.good)
    while True:
        found = origins[hopeful[targets] & ~hopeful[origins]]
        if not found.size:
            break
        hopeful[found] = True
    stuck = np.flatnonzero(~hopeful)
    if not stuck.size:
        return Prospect(ExplorationOutcome.HOLDS, states)
    path = exploration.path(Broken("", int(stuck[0])))
    return Prospect(ExplorationOutcome.VIOLATED, states, int(stuck.size), path)


def _steps(exploration: Exploration[State], faults: frozenset[str]) -> tuple[Numbers, Numbers]:
    """Every step that is not a fault, as (from, to)."""
    expander, store = exploration.expander, exploration.store
    harmful = np.array([name in faults for name in expander.names], np.bool_)
    origins, targets = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for first in range(0, len(store), CHUNK):
        after = expander.successors(store.rows(first, min(first + CHUNK, len(store))))
        calm = ~harmful[expander.outcomes.name[after.by]]
        origins.append(after.origin[calm] + np.int32(first))
        targets.append(store.numbers(after.rows[calm]))
    return np.concatenate(origins), np.concatenate(targets)


def _good(exploration: Exploration[State], parts: tuple[Part, ...]) -> NDArray[np.bool_]:
    judge = Judge.of({"good": parts}, exploration.expander.values)
    store, answers = exploration.store, judge.statements.chains
    flags = [np.empty(0, np.bool_)]
    for first in range(0, len(store), CHUNK):
        found = judge.statements.look(store.rows(first, min(first + CHUNK, len(store))))
        flags.append(np.asarray((answers.answer[found] > 0).any(axis=1)))
    return np.concatenate(flags)
