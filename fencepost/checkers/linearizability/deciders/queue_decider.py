"""Queues with distinct values.

Owns the decisions for `queue`, `unordered-queue` and `at-least-once-queue` if every value is enqueued once
and every dequeue has a known outcome. Must not know zones.

Theory (Henzinger, Sezgin & Vafeiadis, "Aspect-Oriented Linearizability Proofs", 2013; Lee & Mathur, 2025). An
order exists unless one of these holds:

- A value was dequeued without an enqueue, before its enqueue, or twice.
- One value was certainly enqueued before another, and was certainly dequeued after it or never.
- A dequeue found the queue empty, although at every moment of it some value was certainly there: between the
  completion of the value's enqueue and the invocation of its dequeue.

An unordered queue does not have the second rule. A queue with redelivery does not have the rule on values
dequeued twice either; there the dequeue with the earliest invocation counts.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from attrs import define, field

from fencepost.checkers.linearizability.deciders.zones import LEGAL, Decided
from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.models.base import shown
from fencepost.checkers.models.containers import Queue
from fencepost.checkers.models.queue_models import AtLeastOnceQueue, UnorderedQueue
from fencepost.checkers.operation_columns import NEVER


@define
class Traffic:
    """The enqueue and dequeue of each value, and the dequeues that found nothing (positions in the part).

    dequeued: the dequeue that was invoked first. again: all other dequeues of the value.
    """

    part: Sequence[Asked]
    enqueued: dict[Any, int] = field(factory=dict)
    dequeued: dict[Any, int] = field(factory=dict)
    again: list[int] = field(factory=list)
    empty: list[int] = field(factory=list)

    def gone(self, value: Any) -> int:
        """The invocation time of the dequeue of a value; NEVER if there is none."""
        return self.part[self.dequeued[value]].invoke if value in self.dequeued else NEVER

    def of(self, *values: Any) -> tuple[int, ...]:
        """The operations on these values."""
        both = (self.enqueued, self.dequeued)
        return tuple(ops[value] for value in values for ops in both if value in ops)

    def convicted(self, because: str, *values: Any, empty: tuple[int, ...] = ()) -> Decided:
        """The answer that the operations on these values have no order."""
        ops = (*empty, *self.of(*values))
        left = [value for value in values if value not in self.dequeued]
        given = f"while no dequeue answers {', '.join(map(shown, left))}" if left else Decided().given
        return Decided(convicting=ops, scope=ops, because=because, given=given)


def decide_queue(model: Queue, part: Sequence[Asked]) -> Decided | None:
    """Decide a first-in-first-out queue. O(n log n).

    Args:
        model: the queue; it gives the initial values.
        part: the operations of one queue.

    Returns:
        the answer; None if values are ambiguous.
    """
    traffic = _traffic(model, part)
    if traffic is None:
        return None
    return _twice(traffic) or _too_early(traffic) or _overtaken(traffic) or _not_empty(traffic) or LEGAL


def decide_unordered_queue(model: UnorderedQueue, part: Sequence[Asked]) -> Decided | None:
    """Decide an unordered queue. O(n log n).

    Args:
        model: the queue; it gives the initial values.
        part: the operations of one queue.

    Returns:
        the answer; None if values are ambiguous.
    """
    traffic = _traffic(model, part)
    if traffic is None:
        return None
    return _twice(traffic) or _too_early(traffic) or _not_empty(traffic) or LEGAL


def decide_at_least_once(model: AtLeastOnceQueue, part: Sequence[Asked]) -> Decided | None:
    """Decide an at-least-once queue. O(n log n).

    Args:
        model: the queue; it gives the initial values.
        part: the operations of one queue.

    Returns:
        the answer; None if values are ambiguous, or if a value was acknowledged.
    """
    traffic = _traffic(model, part)
    if traffic is None:
        return None
    return _too_early(traffic) or _not_empty(traffic) or LEGAL


def _traffic(model: Queue | UnorderedQueue, part: Sequence[Asked]) -> Traffic | None:
    """The operations by value; None if values do not determine which operations belong together."""
    traffic = Traffic(part)
    if model.initial:
        return None
    for op, asked in enumerate(part):
        call = asked.call
        if call.function == "enqueue":
            if call.argument in traffic.enqueued:
                return None
            traffic.enqueued[call.argument] = op
        elif call.function == "remove" or not asked.known:
            return None
        elif call.result is None:
            traffic.empty.append(op)
        else:
            first = traffic.dequeued.setdefault(call.result, op)
            if first != op:
                if asked.invoke < part[first].invoke:
                    traffic.dequeued[call.result], op = op, first
                traffic.again.append(op)
    return traffic


def _twice(traffic: Traffic) -> Decided | None:
    if not traffic.again:
        return None
    value = traffic.part[traffic.again[-1]].call.result
    twice = tuple(sorted((traffic.dequeued[value], traffic.again[-1])))
    scope = dict.fromkeys((*twice, *traffic.of(value)))
    return Decided(convicting=twice, scope=tuple(scope), because=f"{shown(value)} was dequeued twice")


def _too_early(traffic: Traffic) -> Decided | None:
    for op in (*traffic.dequeued.values(), *traffic.again):
        value = traffic.part[op].call.result
        sender = traffic.enqueued.get(value)
        if sender is None or traffic.part[sender].invoke > traffic.part[op].complete:
            ops = (op,) if sender is None else (sender, op)
            because = f"{shown(value)} was dequeued before any enqueue of it"
            return Decided(convicting=ops, scope=ops, because=because)
    return None


def _overtaken(traffic: Traffic) -> Decided | None:
    """A value that was enqueued after another and dequeued before it."""
    part = traffic.part
    before = sorted(_known(traffic), key=lambda item: part[item[1]].complete)
    completes = [part[op].complete for _, op in before]
    stays: list[Any] = list(
        accumulate(
            (value for value, _ in before), lambda a, b: a if traffic.gone(a) >= traffic.gone(b) else b
        )
    )
    for value, op in traffic.dequeued.items():
        earlier = bisect_left(completes, part[traffic.enqueued[value]].invoke)
        if earlier and part[op].complete < traffic.gone(stays[earlier - 1]):
            first = stays[earlier - 1]
            return traffic.convicted(
                f"{shown(value)} was enqueued after {shown(first)} and dequeued before it", value, first
            )
    return None


def _known(traffic: Traffic) -> list[tuple[Any, int]]:
    return [(value, op) for value, op in traffic.enqueued.items() if traffic.part[op].known]


def _longer(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, int, int]:
    return one if one[1] >= other[1] else other


def _not_empty(traffic: Traffic) -> Decided | None:
    """A dequeue that found nothing while the queue was never empty."""
    part = traffic.part
    there = sorted(
        (part[op].complete, traffic.gone(value), position)
        for position, (value, op) in enumerate(_known(traffic))
    )
    there = [zone for zone in there if zone[0] < zone[1]]
    names = [value for value, _ in _known(traffic)]
    begins = [zone[0] for zone in there]
    furthest: list[tuple[int, int, int]] = list(accumulate(there, _longer))
    for op in traffic.empty:
        moment, chain = part[op].invoke, []
        while moment <= part[op].complete:
            covering = bisect_left(begins, moment)  # zones that begin before it
            if not covering or furthest[covering - 1][1] <= moment:
                break
            moment = furthest[covering - 1][1]
            chain.append(names[furthest[covering - 1][2]])
        else:
            because = "a dequeue found nothing while at every moment some value was there"
            return traffic.convicted(because, *chain, empty=(op,))
    return None
