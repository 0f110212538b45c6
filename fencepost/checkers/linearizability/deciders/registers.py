"""Registers whose values tell who wrote them.

Owns the decision for `register`, and for `cas-register` and `map` where values make it exact. Must not know
zones' arithmetic.

A value that is written once, by a write or a successful cas, and is not the initial one, names its writer. A
successful cas follows the value that it replaced at once, so values hang together in chains that begin with a
write or the initial value. A chain is a cluster: the same argument that puts a write and its reads into one
zone holds for a chain whose members are in order. A write of unknown outcome that nobody needs never
happened. A cas that failed says that another value was there; where that value was ever there at all, this is
no question of zones, and the search must judge.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from attrs import define, field

from fencepost.checkers.linearizability.deciders.zones import (
    BEFORE_ALL,
    Decided,
    ZoneCluster,
    conflict,
    in_turn,
)
from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.models.base import shown
from fencepost.checkers.models.maps import Map
from fencepost.checkers.models.registers import Register

READS = ("read", "get")
"""What shows a value; everything else but a cas writes one."""


@define
class Values:
    """Who made, replaced and read each value (positions). needed: values that some operation with a known
    outcome depends on, and which one."""

    part: Sequence[Asked]
    initial: Any
    makers: dict[Any, int] = field(factory=dict)
    takers: dict[Any, list[int]] = field(factory=lambda: defaultdict(list))
    readers: dict[Any, list[int]] = field(factory=lambda: defaultdict(list))
    needed: dict[Any, int] = field(factory=dict)

    def told(self, op: int) -> tuple[Any, Any]:
        """The value that an operation replaces (None for a write) and the one that it makes."""
        argument = self.part[op].call.argument
        return argument if self.part[op].call.function == "cas" else (None, argument)

    def source(self, value: Any) -> Any:
        """What a value was made from by a cas; itself otherwise."""
        maker = self.makers.get(value)
        return value if maker is None or self.part[maker].call.function != "cas" else self.told(maker)[0]

    def history_of(self, value: Any) -> list[int]:
        """The makers of a value and of those that it was made from, latest first."""
        made: dict[int, None] = {}
        while value in self.makers and self.makers[value] not in made:
            made[self.makers[value]] = None
            value = self.source(value)
        return list(made)


def decide_register(model: Register | Map, part: Sequence[Asked]) -> Decided | None:
    """The answer, None if values are ambiguous. O(n log n)."""
    values = _values(model.initial, part)
    if values is None:
        return None
    _mark_needed(values)
    clusters, reached = [], 0
    roots = [value for value, op in values.makers.items() if part[op].call.function != "cas"]
    for root in (values.initial, *roots):
        if root in values.needed:
            groups, followers = [], [root]
            while followers:
                value = followers[0]
                reached += 1
                groups += [[values.makers[value]] if value in values.makers else [], values.readers[value]]
                followers = [
                    made for op in values.takers[value] if (made := values.told(op)[1]) in values.needed
                ]
                if len(followers) > 1:
                    return _taken_twice(values, value, followers[:2])
            late = in_turn(part, groups)
            if late is not None:
                return _too_early(values, late)
            clusters.append(_cluster(part, groups, root not in values.makers))
    if reached < len(values.needed):
        return _unmade(values, set(roots))
    return conflict(clusters, "two values were current at the same time")


def _values(initial: Any, part: Sequence[Asked]) -> Values | None:
    """The operations by value; None if a value does not tell who made it."""
    values = Values(part, initial)
    denied = []
    for op, asked in enumerate(part):
        call = asked.call
        if call.function == "delete":
            return None
        if call.function in READS:
            if asked.known:
                values.readers[call.result].append(op)
        elif call.function == "cas" and call.result is False:
            if asked.known:
                denied.append(call.argument[0])
        else:
            old, new = values.told(op)
            if new in values.makers or new == initial:
                return None
            values.makers[new] = op
            if call.function == "cas":
                values.takers[old].append(op)
                if old == new:
                    return None
    if any(value in values.makers or value == initial for value in denied):
        return None
    return values


def _mark_needed(values: Values) -> None:
    """From each known operation back along the chain that it depends on."""
    known = [(value, ops[0]) for value, ops in values.readers.items()]
    known += [(value, op) for value, op in values.makers.items() if values.part[op].known]
    for start, op in known:
        value = start
        while value not in values.needed:
            values.needed[value] = op
            value = values.source(value)


def _cluster(part: Sequence[Asked], groups: Sequence[Sequence[int]], initial: bool) -> ZoneCluster:
    makers = tuple(op for group in groups[::2] for op in group)
    cluster = ZoneCluster(makers=makers, first=BEFORE_ALL) if initial else ZoneCluster(makers=makers)
    for group in groups:
        for op in group:
            cluster.add(op, part[op])
    return cluster


def _taken_twice(values: Values, value: Any, made: Sequence[Any]) -> Decided:
    convicting = tuple(values.needed[one] for one in made)
    makers = [maker for op in made for maker in values.history_of(_end(values, op))]
    return Decided(
        convicting=convicting,
        scope=tuple(dict.fromkeys((*convicting, *makers))),
        because=f"the value {shown(value)} was replaced twice",
    )


def _end(values: Values, value: Any) -> Any:
    """The value that the operation which needs `value` is about."""
    call = values.part[values.needed[value]].call
    return call.result if call.function in READS else values.told(values.needed[value])[1]


def _too_early(values: Values, late: tuple[int, int]) -> Decided:
    convicting = tuple(late)
    makers: list[int] = []
    for op in late:
        call = values.part[op].call
        makers += values.history_of(call.result if call.function in READS else values.told(op)[1])
    return Decided(
        convicting=convicting,
        scope=tuple(dict.fromkeys((*convicting, *makers))),
        because="one had completed before the other, which it depends on, was invoked",
    )


def _unmade(values: Values, written: set[Any]) -> Decided:
    """An operation that depends on a value which no chain reaches."""
    good = {values.initial, *written}
    for value, op in values.needed.items():
        trail = [value]
        while trail[-1] not in good and (source := values.source(trail[-1])) not in trail:
            trail.append(source)
        if trail[-1] not in good:
            scope = dict.fromkeys((op, *values.history_of(_end(values, value))))
            return Decided(
                convicting=(op,), scope=tuple(scope), because="nobody can have made the value that it found"
            )
        good.update(trail)
    raise AssertionError("every needed value is in a chain, but some were not reached")
