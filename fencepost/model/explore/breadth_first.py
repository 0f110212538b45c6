"""Breadth-first exploration: every state within the limits once, and a shortest path to the first violation.

Owns the frontier, the fingerprints, the path back. Must not know the meaning of a state.

Visited states are stored as 64-bit fingerprints of their canonical bytes, with the parent's fingerprint and
the action taken. A counterexample is replayed from its actions, so only the states of the frontier are
stored. Two of n states collide with probability about n^2 / 2^65 (3e-8 for a million). A collision can only
hide a state, never invent a violation. The exploration is breadth first and in one process, so the
counterexample is a shortest one, and the same one every time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Generic

from attrs import define, field, frozen
from msgspec.msgpack import Encoder

from fencepost.model.explore.transition_system import (
    Action,
    ExplorationOutcome,
    Limits,
    Result,
    State,
    Step,
    System,
    Value,
    result_of,
)

PROGRESS_EVERY = 1_000
"""States expanded between two progress reports."""

_encode = Encoder().encode
"""MessagePack of integers and tuples (including named ones): equal values give equal bytes."""


def fingerprint(state: Value) -> bytes:
    """Eight bytes that identify a state, the same in every process and on every machine."""
    return blake2b(_encode(state), digest_size=8).digest()


_Violation = tuple[str, bytes, Action | None]
"""The invariant, the fingerprint of the state that violates it, and for a step invariant the violating step
from there."""


@define
class _Search:
    """The state of an exploration."""

    # The invariants of states.
    invariants: Mapping[str, Callable[[Any], bool]]
    # The invariants of steps.
    step_invariants: Mapping[str, Callable[[Any, Action, Any], bool]]
    # The goals.
    sometimes: Mapping[str, Callable[[Any], bool]]
    # Fingerprint -> (parent's fingerprint, action); b"" for an initial state.
    came_from: dict[bytes, tuple[bytes, Action]] = field(factory=dict)
    # How often each action was taken.
    taken: Counter[str] = field(factory=Counter)
    # Goals that were not reached yet.
    unreached: set[str] = field(factory=set)
    # Steps examined.
    transitions: int = 0
    # The current depth in steps.
    depth: int = 0


def explore(
    system: System[State], limits: Limits | None = None, on_progress: Callable[[int, int], None] | None = None
) -> Result:
    """Visit the states of a system, nearest first, until all are visited, an invariant fails or a limit is
    reached.

    on_progress: called with the number of distinct states and the depth, every PROGRESS_EVERY expanded
    states.
    """
    limits = limits or Limits()
    search = _Search(
        invariants=system.invariants,
        step_invariants=system.step_invariants,
        sometimes=system.sometimes,
        unreached=set(system.sometimes),
    )
    frontier: list[tuple[bytes, State]] = []
    for state in system.initial():
        name = fingerprint(state)
        if name not in search.came_from:
            search.came_from[name] = (b"", ("init",))
            broken = _first_broken(search, state)
            if broken is not None:
                return _result(system, search, ExplorationOutcome.VIOLATED, (broken, name, None))
            frontier.append((name, state))
    while frontier:
        if limits.depth is not None and search.depth >= limits.depth:
            return _result(system, search, ExplorationOutcome.BOUNDED)
        level: list[tuple[bytes, State]] = []
        for number, (name, state) in enumerate(frontier):
            if on_progress is not None and number % PROGRESS_EVERY == 0:
                on_progress(len(search.came_from), search.depth)
            violated = _expand(system, search, name, state, level)
            if violated is not None:
                search.depth += 1
                return _result(system, search, ExplorationOutcome.VIOLATED, violated)
            if limits.states is not None and len(search.came_from) > limits.states:
                return _result(system, search, ExplorationOutcome.BOUNDED)
        if level:
            search.depth += 1
        frontier = level
    return _result(system, search, ExplorationOutcome.HOLDS)


def _expand(
    system: System[State], search: _Search, name: bytes, state: State, level: list[tuple[bytes, State]]
) -> _Violation | None:
    """Add the new successors of `state` to `level`; returns the first violation, if any."""
    came_from, step_invariants = search.came_from, search.step_invariants
    for action in system.actions(state):
        after = system.apply(state, action)
        search.transitions += 1
        search.taken[str(action[0])] += 1
        after_name = fingerprint(after)
        is_new = after_name not in came_from
        if is_new:
            came_from[after_name] = (name, action)
        for invariant, holds in step_invariants.items():
            if not holds(state, action, after):
                return invariant, name, action
        if is_new:
            broken = _first_broken(search, after)
            if broken is not None:
                return broken, after_name, None
            level.append((after_name, after))
    return None


def _first_broken(search: _Search, state: State) -> str | None:
    """The first invariant that `state` violates; notes the goals that it reaches."""
    if search.unreached:
        search.unreached -= {name for name in search.unreached if search.sometimes[name](state)}
    return next((name for name, holds in search.invariants.items() if not holds(state)), None)


def _result(
    system: System[State], search: _Search, outcome: ExplorationOutcome, violation: _Violation | None = None
) -> Result:
    """The answer, with the path to the violation replayed from the initial states."""
    return result_of(
        system,
        outcome,
        distinct=len(search.came_from),
        depth=search.depth,
        taken=search.taken,
        unreached=search.unreached,
        invariant=violation[0] if violation else None,
        path=_path(system, search, *violation[1:]) if violation else (),
    )


def _path(system: System[State], search: _Search, name: bytes, last: Action | None) -> tuple[Step, ...]:
    """The steps from an initial state to the state `name`, and the step `last` from there."""
    actions: list[Action] = [] if last is None else [last]
    while search.came_from[name][0]:
        parent, action = search.came_from[name]
        actions.append(action)
        name = parent
    state = next(initial for initial in system.initial() if fingerprint(initial) == name)
    steps = [Step(("init",), state)]
    for action in reversed(actions):
        state = system.apply(state, action)
        steps.append(Step(action, state))
    return tuple(steps)


def render(system: System[State], result: Result) -> str:
    """The outcome and, for a violation, the path: numbered actions, each with the state after it.

    Args:
        system: the system; it describes states.
        result: the result of an exploration.

    Returns:
        the text.
    """
    head = f"{result.outcome}: {result.distinct:,} distinct states, depth {result.depth}"
    if result.invariant is None:
        return head
    lines = [f"{head}; {result.invariant} is violated in {len(result.path) - 1} steps"]
    for number, step in enumerate(result.path):
        arguments = ", ".join(str(argument) for argument in step.action[1:])
        lines.append(f"{number}. {step.action[0]}" + (f"({arguments})" if arguments else ""))
        described = system.describe(step.state)  # type: ignore[arg-type]
        lines += [f"     {line}" for line in described.splitlines()]
    return "\n".join(lines)


@frozen
class After(Generic[State]):
    """A system that begins after `prefix`, a sequence of actions. It explores the neighbourhood of a known
    history."""

    system: System[State]
    prefix: tuple[Action, ...]

    def initial(self) -> Iterable[State]:
        """The state after `prefix`, for each initial state from which the whole prefix is enabled."""
        for state in self.system.initial():
            for action in self.prefix:
                if action not in set(self.system.actions(state)):
                    break
                state = self.system.apply(state, action)
            else:
                yield state

    def actions(self, state: State) -> Iterable[Action]:
        """As in the system."""
        return self.system.actions(state)

    def apply(self, state: State, action: Action) -> State:
        """The state after `action` in `state`, as in the system."""
        return self.system.apply(state, action)

    def describe(self, state: State) -> str:
        """As in the system."""
        return self.system.describe(state)

    @property
    def action_names(self) -> tuple[str, ...]:
        """As in the system."""
        return self.system.action_names

    @property
    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        """As in the system."""
        return self.system.invariants

    @property
    def step_invariants(self) -> Mapping[str, Callable[[State, Action, State], bool]]:
        """As in the system."""
        return self.system.step_invariants

    @property
    def sometimes(self) -> Mapping[str, Callable[[State], bool]]:
        """As in the system."""
        return self.system.sometimes
