"""One element of a set that is added at most once and removed at most once.

Owns the decision for one element of the model `set`. Must not know other elements.

The presence of the element changes at most twice: away from the initial state (`out`), and back (`back`).
Each of the few possible orders leaves an interval for each change, and the observers narrow it. The first
change should be as late as possible and the second as early as possible: that is best for all observers of
the initial state. So one look at each observer decides. Linear in the number of operations.
"""

from collections.abc import Iterable, Sequence

from attrs import define, field

from fencepost.checkers.linearizability.deciders.zones import BEFORE_ALL, LEGAL, Decided
from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.models.containers import Set
from fencepost.checkers.operation_columns import NEVER


@define
class Element:
    """The operations on one element."""

    # The operations on the element, by invocation.
    part: Sequence[Asked]
    # Position of the operation that changes the initial presence; -1 if there is none.
    out: int = -1
    # Position of the operation that restores the initial presence; -1 if there is none.
    back: int = -1
    # Positions of the observers that saw the initial presence.
    at_first: list[int] = field(factory=list)
    # Positions of the observers that saw the other presence.
    changed: list[int] = field(factory=list)
    # Positions of the operations that made the tried orders fail. An ordered set.
    witnesses: dict[int, None] = field(factory=dict)

    def known(self, op: int) -> bool:
        """Whether an operation exists and must happen."""
        return op >= 0 and self.part[op].known

    def can_answer(self, op: int, changes: bool) -> bool:
        """Whether the add or remove `op` can have reported this result.

        Args:
            op: position of the operation.
            changes: whether it changed the presence of the element.

        Returns:
            False if its result says the opposite.
        """
        return op >= 0 and self.part[op].call.result in (None, changes)

    def latest(self, ops: Iterable[int]) -> int:
        """The latest invocation; its operation is noted as a witness."""
        op = max(ops, key=lambda op: self.part[op].invoke, default=-1)
        self.witnesses[op] = None
        return BEFORE_ALL if op < 0 else self.part[op].invoke

    def earliest(self, ops: Iterable[int]) -> int:
        """The earliest completion; its operation is noted as a witness."""
        op = min(ops, key=lambda op: self.part[op].complete, default=-1)
        self.witnesses[op] = None
        return NEVER if op < 0 else self.part[op].complete

    def never_changes(self) -> bool:
        """Whether the element can stay as it was: no operation happens, or none changes anything."""
        self.witnesses |= dict.fromkeys(self.changed[:1])
        idle = not self.known(self.back) or self.can_answer(self.back, False)
        return not self.changed and not self.known(self.out) and idle

    def changes_once(self, idle: bool) -> bool:
        """Whether only `out` can change the element. idle: `back` happens before `out` and changes nothing;
        otherwise `back` never happens."""
        if not self.can_answer(self.out, True) or (
            not self.can_answer(self.back, False) if idle else self.known(self.back)
        ):
            return False
        before = [self.out, *self.at_first, *([self.back] if idle else [])]
        return self.latest(before) <= self.earliest([self.out, *self.changed])

    def changes_twice(self) -> bool:
        """Whether `out` and then `back` can happen, at two moments or at one."""
        if not self.can_answer(self.out, True) or not self.can_answer(self.back, True):
            return False
        first = self.earliest([self.out, self.back, *self.changed])
        second = self.latest([self.out, self.back, *self.changed])
        if second <= first:
            return True
        if self.part[self.out].invoke > first or self.part[self.back].complete < second:
            return False
        within = (
            op for op in self.at_first if self.part[op].invoke > first and self.part[op].complete < second
        )
        op = next(within, -1)
        self.witnesses[op] = None
        return op < 0


def decide_set(model: Set, part: Sequence[Asked]) -> Decided | None:
    """Decide one element of a set. Linear.

    Args:
        model: the set; it gives the initial elements.
        part: the operations on one element.

    Returns:
        the answer; None if the element is added or removed twice, or if a `read` returns all elements.
    """
    element = Element(part)
    there = bool(part) and part[0].call.argument in model.init()
    for op, asked in enumerate(part):
        function = asked.call.function
        if function == "read":
            return None
        if function == "contains":
            if asked.known:
                (element.at_first if asked.call.result == there else element.changed).append(op)
        elif (function == "remove") == there:
            if element.out >= 0:
                return None
            element.out = op
        else:
            if element.back >= 0:
                return None
            element.back = op
    if (
        element.never_changes()
        or element.changes_once(idle=False)
        or element.changes_once(idle=True)
        or element.changes_twice()
    ):
        return LEGAL
    doing = [op for op in (element.out, element.back) if op >= 0]
    convicting = tuple(op for op in dict.fromkeys((*element.witnesses, *doing)) if op >= 0)
    return Decided(
        convicting=convicting,
        scope=convicting,
        because="whether the element is there can change at most twice, and no moments for that fit all",
    )
