"""What the explorer explores: the shape of a transition system, and what an exploration answers.

Owns: the protocol `System`, limits, results. Must not know any particular system.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from attrs import Factory, frozen

Value = int | tuple["Value", ...]
"""States and actions' arguments: integers, and tuples of them, so that a fingerprint is canonical."""

State = TypeVar("State", bound=Value)
Action = tuple[str | int, ...]
"""A name and its integer arguments, e.g. ("fetch", 1)."""

EnabledActions = Iterator[tuple[Action, tuple[Value, ...]]]
"""Enabled actions, each with the values that it writes."""


class System(Protocol[State]):
    """A transition system. Pure: the same state gives the same actions in the same order, in every
    process."""

    @property
    def action_names(self) -> tuple[str, ...]:
        """Every action that these constants allow in principle; one that is never taken is reported."""
        ...

    @property
    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        """Must hold in each reachable state. The first that fails, in this order, names the violation."""
        ...

    @property
    def step_invariants(self) -> Mapping[str, Callable[[State, Action, State], bool]]:
        """Must hold for each step."""
        ...

    @property
    def sometimes(self) -> Mapping[str, Callable[[State], bool]]:
        """Should hold in some reachable state; those never seen are reported."""
        ...

    def initial(self) -> Iterable[State]:
        """The initial states."""
        ...

    def actions(self, state: State) -> Iterable[Action]:
        """The actions enabled in `state`."""
        ...

    def apply(self, state: State, action: Action) -> State:
        """The state after an enabled action."""
        ...

    def describe(self, state: State) -> str:
        """The state for a person, on few lines."""
        ...


@frozen
class Part:
    """A statement about some slots: holds is given the values of `reads`, each through `view` if there is
    one.

    A view leaves out what the statement does not look at (a log, without the role), so that fewer
    combinations are asked about.
    """

    reads: tuple[int, ...]
    holds: Callable[..., bool]
    view: Callable[[Any], Value] | None = None


@frozen
class Rule:
    """A kind of step and the slots that it depends on. step: is given the values of `reads` and yields each
    enabled action with the values that it writes to `writes`; it sees nothing else, so that what it answered
    once holds for every state with the same values there.

    names: of the actions that it may yield. No other rule yields an action with the same name and arguments.
    when: if it does not hold, the rule yields nothing; it saves asking about combinations, and need not say
    everything.
    """

    names: tuple[str, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    step: Callable[..., Iterable[tuple[Action, tuple[Value, ...]]]]
    when: Part | None = None


@frozen
class Symmetry:
    """A renaming that turns runs into runs, such as one of replicas. places: where each slot's value goes;
    rename: the value that a slot's value becomes (slot, value)."""

    places: tuple[int, ...]
    rename: Callable[[int, Value], Value]


@frozen
class Eventually:
    """What must stay possible (eventually.py). good: a state is good if any of these holds. faults: names of
    actions that are not relied on, though they may have happened before."""

    good: tuple[Part, ...]
    faults: frozenset[str]


class ExplorationOutcome(StrEnum):
    """HOLDS: every reachable state was visited; BOUNDED: a limit came first; VIOLATED: a counterexample was
    found."""

    HOLDS = "holds"
    BOUNDED = "bounded"
    VIOLATED = "violated"


@frozen(kw_only=True)
class Limits:
    """Where an exploration stops: distinct states, depth in steps, and memory of the process in MiB; None is
    no limit."""

    states: int | None = 5_000_000
    depth: int | None = None
    memory_mib: int | None = None


@frozen
class Step:
    """One step of a counterexample: the action ("init" for the first) and the state that it led to."""

    action: Action
    state: Value


@frozen(kw_only=True)
class Result:
    """distinct: states visited; depth: steps to the farthest of them; transitions: steps examined; taken: how
    often each action was.

    invariant, path: the violated invariant and a shortest path to it. never_taken, never_reached: actions and
    `sometimes` that did not occur.
    """

    outcome: ExplorationOutcome
    distinct: int
    depth: int
    transitions: int
    taken: Mapping[str, int] = Factory(dict)
    never_taken: tuple[str, ...] = ()
    never_reached: tuple[str, ...] = ()
    invariant: str | None = None
    path: tuple[Step, ...] = ()

    @property
    def actions(self) -> tuple[Action, ...]:
        """The counterexample's actions, in order."""
        return tuple(step.action for step in self.path[1:])


def result_of(
    system: System[State],
    outcome: ExplorationOutcome,
    *,
    distinct: int,
    depth: int,
    taken: Mapping[str, int],
    unreached: Iterable[str],
    invariant: str | None = None,
    path: tuple[Step, ...] = (),
) -> Result:
    """The answer, from what an exploration counted."""
    examined = {name: many for name, many in sorted(taken.items()) if many}
    return Result(
        outcome=outcome,
        distinct=distinct,
        depth=depth,
        transitions=sum(examined.values()),
        taken=examined,
        never_taken=tuple(name for name in system.action_names if name not in examined),
        never_reached=tuple(sorted(unreached)),
        invariant=invariant,
        path=path,
    )
