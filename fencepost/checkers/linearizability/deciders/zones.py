"""When can each of several values have been the current one? Intervals of time that exclude each other.

Owns clusters (operations on one value that happen without another value in between), their zones, and total
orders. Must not know models.

Theory (Gibbons & Korach, "Testing Shared Memories", 1997; Lee & Mathur, "Efficient Decrease-and-Conquer
Linearizability Monitoring", 2025). If every value is written once, each read identifies its write, so the
operations on a value form a cluster. Let `first` be the earliest completion in a cluster and `last` its
latest invocation. If first < last, the value was current from `first` to `last`: a *forward* zone. Otherwise
the whole cluster fits into any moment from `last` to `first`: a *backward* zone. An order exists if and only
if three conditions hold: each cluster is in order by itself, no two forward zones overlap, and no backward
zone lies within a forward zone. Intervals are closed. Operations at the same moment may happen in any order,
so zones that share an endpoint do not overlap.
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
    """The answer of a decider.

    Attributes:
        convicting: positions in the part of a few operations that fit in no order; empty if an order exists.
        scope: positions of these operations and of all others that could explain them.
        because: the contradiction as text.
        given: what the contradiction depends on, as text.
    """

    convicting: tuple[int, ...] = ()
    scope: tuple[int, ...] = ()
    because: str = ""
    given: str = "whatever the others did"


LEGAL = Decided()


@define
class ZoneCluster:
    """Operations (positions) that happen without another value in between.

    makers: operations that belong to the scope of every proof. first, last: the earliest completion and the
    latest invocation. first_op, last_op: the operations at these times; -1 if the value was there initially.
    """

    makers: tuple[int, ...] = ()
    first: int = NEVER
    last: int = BEFORE_ALL
    first_op: int = -1
    last_op: int = -1

    def add(self, op: int, asked: Asked) -> None:
        """Add an operation.

        Args:
            op: its position in the part.
            asked: the operation with its times.
        """
        if asked.complete < self.first:
            self.first, self.first_op = asked.complete, op
        if asked.invoke > self.last:
            self.last, self.last_op = asked.invoke, op

    @property
    def extremes(self) -> tuple[int, ...]:
        """The operations that determine the zone."""
        return tuple(dict.fromkeys(op for op in (self.first_op, self.last_op) if op >= 0))


def in_turn(part: Sequence[Asked], groups: Iterable[Sequence[int]]) -> tuple[int, int] | None:
    """Whether groups can happen one after another, with any order inside a group.

    Returns None if they can. Otherwise returns two operations in the order of their groups: the second
    completed before the first was invoked.

    Args:
        part: the operations of the part.
        groups: positions of the operations of each group, in the order of groups.
    """
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
    """Two clusters with zones that exclude each other; None if there are none. Each cluster must be in order
    by itself."""
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
    """The answer from the zones. because: the text of the conflict between the two clusters."""
    pair = zones_apart(clusters)
    if pair is None:
        return LEGAL
    convicting = (*pair[0].extremes, *pair[1].extremes)
    scope = dict.fromkeys((*convicting, *pair[0].makers, *pair[1].makers))
    return Decided(convicting=convicting, scope=tuple(scope), because=because, given=given)
