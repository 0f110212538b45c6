"""Shrinking a list: what can be left out of a plan's operations, faults or deviations.

Owns the order in which parts of a list are left out. Must not know what the list holds, or how a candidate is
judged.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, Protocol, TypeVar

from attrs import evolve

from fencepost.traces.plan import Plan

Item = TypeVar("Item")
MOST_FOR_PAIRS = 16
"""Members of a plan of which all pairs are tried: 120 runs at most."""


class Shrinking(Protocol):
    """A plan under way: what a pass needs of it."""

    plan: Plan

    def first(self, candidates: Iterable[Plan]) -> int | None:
        """Replace the plan by the first candidate that shows the anomaly; answers its place, None if none
        does."""
        ...


Pass = Callable[[Shrinking], None]


def leave_out(
    shrinking: Shrinking, items: Sequence[Item], build: Callable[[tuple[Item, ...]], Plan]
) -> tuple[Item, ...]:
    """Leave out all items, then halves, quarters, ... and single ones, the last ones first; answers what is
    left.

    build: the plan with these items and no others.
    """
    kept = tuple(items)
    size = len(kept)
    while size >= 1:
        end = len(kept)
        while end > 0:
            parts = [(max(0, stop - size), stop) for stop in range(end, 0, -size)]
            candidates = [kept[:start] + kept[stop:] for start, stop in parts]
            place = shrinking.first(build(candidate) for candidate in candidates)
            if place is None:
                break
            kept, end = candidates[place], parts[place][0]
        size = min(size // 2, len(kept)) if size > 1 else 0
    return kept


def remove_from(shrinking: Shrinking, name: str) -> None:
    """Leave out members of a list of the plan.

    Args:
        shrinking: the search so far.
        name: of the list: "operations", "faults", "clients" or "consumers".
    """
    plan = shrinking.plan
    leave_out(shrinking, getattr(plan, name), lambda kept: with_members(plan, name, kept))


def with_members(plan: Plan, name: str, members: tuple[Any, ...]) -> Plan:
    """A copy of a plan with another list.

    Args:
        plan: the plan.
        name: of the list: "operations", "faults", "clients" or "consumers".
        members: the new list.
    """
    changes: dict[str, Any] = {name: members}
    return evolve(plan, **changes)


def remove_pairs(shrinking: Shrinking) -> None:
    """Leave out any two of what happens, wherever they are: an operation and the fault that only it calls
    for, two records that fill a batch."""
    while True:
        plan = shrinking.plan
        members = [
            (name, place) for name in ("faults", "operations") for place in range(len(getattr(plan, name)))
        ]
        if len(members) > MOST_FOR_PAIRS:
            return
        pairs = combinations(reversed(members), 2)
        if shrinking.first(_without(_without(plan, *one), *other) for one, other in pairs) is None:
            return


def _without(plan: Plan, name: str, place: int) -> Plan:
    members = getattr(plan, name)
    return with_members(plan, name, (*members[:place], *members[place + 1 :]))
