"""The interface of a transition system, and the result of an exploration.

Owns the protocol `System`, limits, results. Must not know any particular system.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Protocol, TypeVar

from attrs import Attribute, Factory, field, frozen

from fencepost.traces.errors import FencepostError

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
        """All actions that are possible in principle with these constants. An action that is never taken is
        reported."""
        ...

    @property
    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        """Must hold in each reachable state. If several fail, the first one names the violation."""
        ...

    @property
    def step_invariants(self) -> Mapping[str, Callable[[State, Action, State], bool]]:
        """Must hold for each step."""
        ...

    @property
    def sometimes(self) -> Mapping[str, Callable[[State], bool]]:
        """Goals that should hold in some reachable state. A goal that is never reached is reported."""
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
        """The state as text of few lines."""
        ...


@frozen
class Part:
    """A statement about some slots. holds gets the values of `reads`, each through `view` if there is one.

    A view removes what the statement does not read (for example the role, if it only reads the log), so that
    there are fewer combinations.
    """

    reads: tuple[int, ...]
    holds: Callable[..., bool]
    view: Callable[[Any], Value] | None = None


@frozen
class Rule:
    """A kind of step and the slots that it depends on.

    Attributes:
        step: gets the values of `reads` and yields each enabled action with the values that it writes to
            `writes`. It reads nothing else, so its answer holds for every state with the same values there.
        names: of the actions that it may yield. No other rule yields an action with the same name and
            arguments.
        when: if it does not hold, the rule yields nothing. It reduces the number of combinations, and may be
            weaker than the exact condition.
    """

    names: tuple[str, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    step: Callable[..., Iterable[tuple[Action, tuple[Value, ...]]]]
    when: Part | None = None


def rule_of(
    constants: Any,
    names: tuple[str, ...],
    reads: tuple[int, ...],
    writes: tuple[int, ...],
    step: Callable[..., Iterable[tuple[Action, tuple[Value, ...]]]],
    *numbers: int,
    when: Part | None = None,
) -> Rule:
    """A rule of a model. step: also gets the model's constants and these numbers, before the values."""
    return Rule(names, reads, writes, partial(step, constants, *numbers), when)


@frozen
class Symmetry:
    """A renaming that maps runs to runs, for example of replicas."""

    # The slot that each slot's value moves to.
    places: tuple[int, ...]
    # Maps (slot, value) to the renamed value.
    rename: Callable[[int, Value], Value]


@frozen
class Eventually:
    """A property that must stay possible (eventually.py)."""

    # A state is good if any of these holds.
    good: tuple[Part, ...]
    # Names of actions that are not relied on, although they may have happened before.
    faults: frozenset[str]


class ExplorationOutcome(StrEnum):
    """HOLDS: every reachable state was visited. BOUNDED: a limit was reached first. VIOLATED: a
    counterexample was found."""

    HOLDS = "holds"
    BOUNDED = "bounded"
    VIOLATED = "violated"


def _at_least(least: int) -> Callable[[object, "Attribute[Any]", Any], None]:
    """A validator: what the caller gives for a limit may not be lower."""

    def check(_: object, attribute: "Attribute[Any]", value: int | None) -> None:
        if value is not None and value < least:
            raise FencepostError(
                expected=f"at least {least}, or None for no limit",
                seen=str(value),
                where=f"Limits({attribute.name})",
            )

    return check


@frozen(kw_only=True)
class Limits:
    """Where an exploration stops: distinct states, depth in steps, and memory of the process in MiB; None is
    no limit."""

    states: int | None = field(default=5_000_000, validator=_at_least(1))
    depth: int | None = field(default=None, validator=_at_least(0))
    memory_mib: int | None = field(default=None, validator=_at_least(1))


@frozen
class Step:
    """One step of a counterexample: the action ("init" for the first) and the state that it led to."""

    action: Action
    state: Value


@frozen(kw_only=True)
class Result:
    """The result of an exploration."""

    # Why the exploration ended.
    outcome: ExplorationOutcome
    # Distinct states visited.
    distinct: int
    # Steps to the farthest of them.
    depth: int
    # Steps examined.
    transitions: int
    # How often each action was taken.
    taken: Mapping[str, int] = Factory(dict)
    # Actions that were never taken.
    never_taken: tuple[str, ...] = ()
    # Goals that were never reached.
    never_reached: tuple[str, ...] = ()
    # The violated invariant; None if there is none.
    invariant: str | None = None
    # A shortest path to the violation.
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
    """The result, from the counts of an exploration.

    Args:
        system: the system.
        outcome: why it ended.
        distinct: distinct states.
        depth: steps to the farthest.
        taken: how often each action was taken.
        unreached: goals that were not reached.
        invariant: the violated invariant; None if there is none.
        path: a shortest path to the violation.

    Returns:
        the result.
    """
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
