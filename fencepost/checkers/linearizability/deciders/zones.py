"""When may each of several values have been the current one? Intervals of time that exclude each other.

Owns clusters (operations on one value, which happen without another value between them), their zones, and
total orders. Must not know models.

Theory (Gibbons & Korach, "Testing Shared Memories", 1997; Lee & Mathur, "Efficient Decrease-and-Conquer
Linearizability Monitoring", 2025). Where every value is written once, each read tells which write it saw, so
the operations on a value form a cluster without foreign values in between. Let `first` be the earliest
completion in a cluster and `last` its latest invocation. If first < last, the value was current from the one
to the other: a *forward* zone. Otherwise all of the cluster fits into any one moment from last to first: a
*backward* zone. There is an order if and only if each cluster is in order by itself, no two forward zones
overlap, and no backward zone lies within a forward one. Intervals are closed, and what happens at one moment
may happen in any order: zones that share an end do not overlap.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

from attrs import define, frozen

from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.operation_columns import NEVER

BEFORE_ALL = -NEVER
"""A moment before every invocation."""


@frozen(kw_only=True)
class Decided:
    """What a decider says. convicting: positions in the part of a few operations that fit in no order, none
    if there is one. scope: positions of these and of all others that could explain them; the rest can be left
    out. because: the contradiction in words; given: on what it rests besides."""

    convicting: tuple[int, ...] = ()
    scope: tuple[int, ...] = ()
    because: str = ""
    given: str = "whatever the others did"


LEGAL = Decided()


@define
class ZoneCluster:
    """Operations (positions) that happen without a foreign value in between. makers: those that belong to the
    scope of a proof whatever it is.

    first, last: the earliest completion and the latest invocation; first_op, last_op: whose; -1: of nobody,
    the value was there from the start.
    """

    makers: tuple[int, ...] = ()
    first: int = NEVER
    last: int = BEFORE_ALL
    first_op: int = -1
    last_op: int = -1

    def add(self, op: int, asked: Asked) -> None:
        """One more operation."""
        if asked.complete < self.first:
            self.first, self.first_op = asked.complete, op
        if asked.invoke > self.last:
            self.last, self.last_op = asked.invoke, op

    @property
    def extremes(self) -> tuple[int, ...]:
        """The operations that make the zone what it is."""
        return tuple(dict.fromkeys(op for op in (self.first_op, self.last_op) if op >= 0))


def in_turn(part: Sequence[Asked], groups: Iterable[Sequence[int]]) -> tuple[int, int] | None:
    """Whether groups can happen one after another, in any order inside: None, or two operations of which the
    second, due later, completed before the first was invoked."""
    latest, whose = BEFORE_ALL, -1
    for group in groups:
        for op in group:
            if part[op].complete < latest:
                return whose, op
        for op in group:
            if part[op].invoke > latest:
                latest, whose = part[op].invoke, op
    return None


def zones_apart(clusters: Iterable[ZoneCluster]) -> tuple[ZoneCluster, ZoneCluster] | None:
    """Two clusters whose zones exclude each other, None if all have room. Each is in order by itself."""
    made = list(clusters)
    forward = sorted((one for one in made if one.first < one.last), key=lambda one: (one.first, one.last))
    for one, other in pairwise(forward):
        if other.first < one.last:
            return one, other
    begins = [one.first for one in forward]
    for inner in made:
        if inner.last <= inner.first:
            before = bisect_left(begins, inner.last)  # the last forward zone that begins before it
            if before and inner.first < forward[before - 1].last:
                return forward[before - 1], inner
    return None


def conflict(clusters: Iterable[ZoneCluster], because: str, given: str = Decided().given) -> Decided:
    """The answer from zones. because: what the two have in common that must not be."""
    pair = zones_apart(clusters)
    if pair is None:
        return LEGAL
    convicting = (*pair[0].extremes, *pair[1].extremes)
    scope = dict.fromkeys((*convicting, *pair[0].makers, *pair[1].makers))
    return Decided(convicting=convicting, scope=tuple(scope), because=because, given=given)
