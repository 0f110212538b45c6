"""Registers with values that identify their writer.

Owns the decision for `register`. It also decides `cas-register` and `map` if the values make the decision
exact. Must not know the arithmetic of zones.

A value names its writer if it is written once, by a write or a successful cas, and is not the initial value.
A successful cas immediately follows the value that it replaced. Therefore values form chains that begin with
a write or with the initial value. A chain is a cluster: the argument that puts a write and its reads into one
zone also holds for a chain with its members in order. A write with an unknown outcome that no other operation
depends on never happened. A failed cas says that another value was there. If the register ever held the value
that the cas expected, zones cannot decide this, and the search must.
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
"""The functions that show a value. All others except cas write one."""


@define
class Values:
    """The operations of a register by value."""

    # The operations of the register, by invocation.
    part: Sequence[Asked]
    # The initial value.
    initial: Any
    # For each value the position of the write or cas that made it.
    makers: dict[Any, int] = field(factory=dict)
    # For each value the positions of the successful cas that replaced it.
    takers: dict[Any, list[int]] = field(factory=lambda: defaultdict(list))
    # For each value the positions of its reads.
    readers: dict[Any, list[int]] = field(factory=lambda: defaultdict(list))
    # For each value that an operation with a known outcome depends on: the position of one such operation.
    needed: dict[Any, int] = field(factory=dict)

    def effect(self, op: int) -> tuple[Any, Any]:
        """The value that an operation replaces (None for a write) and the value that it makes."""
        argument = self.part[op].call.argument
        return argument if self.part[op].call.function == "cas" else (None, argument)

    def source(self, value: Any) -> Any:
        """The value that a chain of cas started from; the value itself if no cas made it."""
        maker = self.makers.get(value)
        return value if maker is None or self.part[maker].call.function != "cas" else self.effect(maker)[0]

    def history_of(self, value: Any) -> list[int]:
        """The makers of a value and of the values before it in its chain, latest first."""
        made: dict[int, None] = {}
        while value in self.makers and self.makers[value] not in made:
            made[self.makers[value]] = None
            value = self.source(value)
        return list(made)


def decide_register(model: Register | Map, part: Sequence[Asked]) -> Decided | None:
    """Decide a register, a cas register or one key of a map. O(n log n).

    Args:
        model: the model; it gives the initial value.
        part: the operations of one register.

    Returns:
        the answer; None if values are ambiguous.
    """
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
                    made for op in values.takers[value] if (made := values.effect(op)[1]) in values.needed
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
    """The operations by value; None if a value does not identify its writer."""
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
            old, new = values.effect(op)
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
    """Mark the values that each known operation depends on, back along its chain."""
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
    return call.result if call.function in READS else values.effect(values.needed[value])[1]


def _too_early(values: Values, late: tuple[int, int]) -> Decided:
    convicting = tuple(late)
    makers: list[int] = []
    for op in late:
        call = values.part[op].call
        makers += values.history_of(call.result if call.function in READS else values.effect(op)[1])
    return Decided(
        convicting=convicting,
        scope=tuple(dict.fromkeys((*convicting, *makers))),
        because="one had completed before the other, which it depends on, was invoked",
    )


def _unmade(values: Values, written: set[Any]) -> Decided:
    """An operation that depends on a value which no chain contains."""
    good = {values.initial, *written}
    for value, op in values.needed.items():
        trail = [value]
        while trail[-1] not in good and (source := values.source(trail[-1])) not in trail:
            trail.append(source)
        if trail[-1] not in good:
            scope = dict.fromkeys((op, *values.history_of(_end(values, value))))
            return Decided(
                convicting=(op,),
                scope=tuple(scope),
                because="no operation can have made the value that it found",
            )
        good.update(trail)
    raise AssertionError("every needed value is in a chain, but some were not reached")
