"""From the states of a counterexample to its steps.

Owns finding the actions that lead from one state to the next. Must not know how the states were found.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.transition_system import Action, State, Step, Symmetry


def path_through(
    system: SlottedSystem[State],
    initial: Iterable[State],
    states: Sequence[State],
    symmetries: tuple[Symmetry, ...] = (),
    broken: str | None = None,
) -> tuple[Step, ...]:
    """The steps through these states, each with the first possible action. broken: a step invariant that one
    more step violates.

    With renamings, each state represents all its renamings; the path goes through one of them each.
    """
    state = next(state for state in initial if _same(system, symmetries, states[0], state))
    steps = [Step(("init",), state)]
    for wanted in states[1:]:
        leads_on = partial(_same, system, symmetries, wanted)
        action, state = _step(system, state, lambda _, after, fits=leads_on: fits(after))  # type: ignore[misc]
        steps.append(Step(action, state))
    if broken is not None:
        before, holds = state, system.step_invariants[broken]
        action, state = _step(system, state, lambda action, after: not holds(before, action, after))
        steps.append(Step(action, state))
    return tuple(steps)


def _step(
    system: SlottedSystem[State], state: State, fits: Callable[[Action, State], bool]
) -> tuple[Action, State]:
    for action in system.actions(state):
        after = system.apply(state, action)
        if fits(action, after):
            return action, after
    raise AssertionError(f"no step leads on from {state}")


def _same(
    system: SlottedSystem[State], symmetries: tuple[Symmetry, ...], wanted: State, state: State
) -> bool:
    return state == wanted or any(system.renamed(state, symmetry) == wanted for symmetry in symmetries)
