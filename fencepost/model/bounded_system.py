"""What the shipped models have in common: their slots are the fields of a named tuple, and their invariants a
module.

Owns how a state becomes slots and back, and which invariants are checked. Must not know a model.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from attrs import frozen

from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.transition_system import Action, Part, State, Value


@frozen(eq=False, slots=False)
class BoundedSystem(SlottedSystem[State]):
    """A model for some constants (explore/slotted.py documents the methods)."""

    # The named tuple of a state.
    STATE: ClassVar[Any]
    # The module of the invariants and goals.
    INVARIANTS: ClassVar[Any]
    # A state as text.
    IN_WORDS: ClassVar[Callable[[Any], str]]

    constants: Any
    # The invariants to check, by name.
    checks: tuple[str, ...]

    @property
    @abstractmethod
    def spread(self) -> tuple[int | None, ...]:
        """For each field of a state the number of slots that its values stand in; None: it is one value."""

    @cached_property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """Invariants of each state."""
        made = self.INVARIANTS.parts(self.constants)
        return {name: parts for name, parts in made.items() if name in self.checks}

    @cached_property
    def goals(self) -> Mapping[str, tuple[Part, ...]]:
        """The goals that a useful set of constants reaches."""
        found: Mapping[str, tuple[Part, ...]] = self.INVARIANTS.goals(self.constants)
        return found

    @property
    def step_invariants(self) -> Mapping[str, Callable[[State, Action, State], bool]]:
        """Invariants of each step."""
        return {name: holds for name, holds in self.INVARIANTS.OF_STEPS.items() if name in self.checks}

    def slots_of(self, state: State) -> tuple[Value, ...]:
        """In the order of the state's fields."""
        slots: list[Value] = []
        fields: Any = state
        for value, count in zip(fields, self.spread, strict=True):
            slots += (value,) if count is None else value
        return tuple(slots)

    def state_of(self, slots: Sequence[Any]) -> State:
        """From slots."""
        rest = iter(slots)
        fields = (next(rest) if count is None else tuple(islice(rest, count)) for count in self.spread)
        state: State = self.STATE._make(fields)
        return state

    def describe(self, state: State) -> str:
        """The state as text."""
        return type(self).IN_WORDS(state)
