"""Transition systems in slots, which can be explored fast.

Owns how a system of rules over slots implements `System`. Must not know how it is explored, or any particular
system.

The replicas of a cluster are local: a step of one depends on itself and on very little else. In such a
system, a state is a fixed number of slots, and each rule reads some slots and writes some. It has few
different local steps, although they combine to many states. The explorer calls Python once for each local
step, and combines them in compiled code.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Generic

from fencepost.model.explore.transition_system import Action, Eventually, Part, Rule, State, Symmetry, Value


def holds(part: Part, slots: Sequence[Any]) -> bool:
    """Whether a part holds for these slots."""
    values = (slots[slot] for slot in part.reads)
    return bool(part.holds(*values) if part.view is None else part.holds(*map(part.view, values)))


def steps(rule: Rule, slots: Sequence[Any]) -> Iterable[tuple[Action, tuple[Value, ...]]]:
    """The enabled actions of a rule for these slots."""
    if rule.when is not None and not holds(rule.when, slots):
        return ()
    return rule.step(*(slots[slot] for slot in rule.reads))


class SlottedSystem(ABC, Generic[State]):
    """A `System` made of rules. Subclasses define the slots, the rules, the parts of each invariant, and the
    initial states.

    An invariant holds if all of its parts do. A goal (`sometimes`) is reached if any of its parts holds. Step
    invariants get whole states, but may read only slots that the action's rule reads or writes.
    """

    @property
    @abstractmethod
    def kinds(self) -> tuple[int, ...]:
        """The kind of each slot. Slots that may exchange their values under a renaming have the same kind."""

    @property
    @abstractmethod
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order in which the actions of a state are listed."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """The parts of each invariant, by its name."""

    @property
    def goals(self) -> Mapping[str, tuple[Part, ...]]:
        """The parts of each goal, by its name."""
        return {}

    @property
    def eventually(self) -> Mapping[str, Eventually]:
        """What must stay possible, by name."""
        return {}

    @property
    def step_invariants(self) -> Mapping[str, Callable[[State, Action, State], bool]]:
        """The invariants of steps."""
        return {}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Renamings that preserve the system, without the identity. Closed under composition."""
        return ()

    @abstractmethod
    def slots_of(self, state: State) -> tuple[Value, ...]:
        """The state as one value for each slot."""

    @abstractmethod
    def state_of(self, slots: Sequence[Any]) -> State:
        """The state with these values."""

    @abstractmethod
    def initial(self) -> Iterable[State]:
        """The initial states."""

    @abstractmethod
    def describe(self, state: State) -> str:
        """The state as text."""

    # ---- derived from the above

    def __getstate__(self) -> dict[str, Any]:
        """The state for another process: without derived values."""
        worked_out = {
            name for name in vars(self) if isinstance(getattr(type(self), name, None), cached_property)
        }
        return {name: value for name, value in vars(self).items() if name not in worked_out}

    @property
    def action_names(self) -> tuple[str, ...]:
        """The action names of all rules, without duplicates."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.names))

    @property
    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        """The invariants of whole states."""
        return {name: partial(self._all, parts) for name, parts in self.parts.items()}

    @property
    def sometimes(self) -> Mapping[str, Callable[[State], bool]]:
        """The goals of whole states."""
        return {name: partial(self._any, parts) for name, parts in self.goals.items()}

    def _all(self, parts: tuple[Part, ...], state: State) -> bool:
        slots = self.slots_of(state)
        return all(holds(part, slots) for part in parts)

    def _any(self, parts: tuple[Part, ...], state: State) -> bool:
        slots = self.slots_of(state)
        return any(holds(part, slots) for part in parts)

    @cached_property
    def _rules_by_name(self) -> Mapping[str, tuple[Rule, ...]]:
        return {name: tuple(rule for rule in self.rules if name in rule.names) for name in self.action_names}

    def actions(self, state: State) -> Iterator[Action]:
        """The enabled actions."""
        slots = self.slots_of(state)
        for rule in self.rules:
            for action, _ in steps(rule, slots):
                yield action

    def apply(self, state: State, action: Action) -> State:
        """The state after an enabled action."""
        slots = list(self.slots_of(state))
        for rule in self._rules_by_name[str(action[0])]:
            for enabled, written in steps(rule, slots):
                if enabled == action:
                    for slot, value in zip(rule.writes, written, strict=True):
                        slots[slot] = value
                    return self.state_of(slots)
        raise AssertionError(f"{action} is not enabled in {state}")

    def renamed(self, state: State, symmetry: Symmetry) -> State:
        """The state under a renaming."""
        slots = self.slots_of(state)
        after: list[Value] = list(slots)
        for slot, value in enumerate(slots):
            after[symmetry.places[slot]] = symmetry.rename(slot, value)
        return self.state_of(after)
