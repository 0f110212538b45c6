"""An append-only list with distinct values.

Owns the decision for `append-only-list` if every value is appended once. Must not know zones.

Every read must return a prefix of the longest read, so the longest read gives the order of the appends. The
operations must happen in this order: each append, followed by the reads that end with its value; at the end
the appends that no read shows. The list is legal if no operation completed before the invocation of an
operation that is earlier in this order. An append with an unknown outcome that no read shows never happened.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from fencepost.checkers.linearizability.deciders.zones import LEGAL, Decided, in_turn
from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.models.base import shown
from fencepost.checkers.models.lists import AppendOnlyList


def decide_list(model: AppendOnlyList, part: Sequence[Asked]) -> Decided | None:
    """Decide a list with distinct values. O(n log n) plus the length of all reads.

    Args:
        model: the list; it gives the initial values.
        part: the operations of one list.

    Returns:
        the answer; None if a value was appended twice or is an initial value.
    """
    if model.init():
        return None
    makers: dict[Any, int] = {}
    readers: dict[int, list[int]] = defaultdict(list)
    longest = -1
    for op, asked in enumerate(part):
        if asked.call.function == "append":
            if makers.setdefault(asked.call.argument, op) != op:
                return None
        elif asked.known:
            readers[len(asked.call.result)].append(op)
            if longest < 0 or len(asked.call.result) > len(part[longest].call.result):
                longest = op
    order = part[longest].call.result if longest >= 0 else ()
    wrong = _not_its_beginning(part, readers, order, longest)
    if wrong is not None:
        return _proof(part, makers, wrong, "two reads show different values at the same place")
    for place, value in enumerate(order):
        if value not in makers:
            return _proof(part, makers, (longest,), f"no append of {shown(value)}")
        if value in order[:place]:
            return _proof(part, makers, (longest,), f"{shown(value)} was appended once and is there twice")
    groups: list[list[int]] = [readers[0]]
    for place, value in enumerate(order, start=1):
        groups += [[makers[value]], readers[place]]
    seen = set(order)
    groups.append([op for value, op in makers.items() if part[op].known and value not in seen])
    late = in_turn(part, groups)
    if late is None:
        return LEGAL
    return _proof(
        part, makers, (*late, longest), "one had completed before the other, which comes earlier in the list"
    )


def _not_its_beginning(
    part: Sequence[Asked], readers: dict[int, list[int]], order: tuple[Any, ...], longest: int
) -> tuple[int, int] | None:
    """A read that is not a prefix of the longest read, and the longest read."""
    for size, ops in readers.items():
        for op in ops:
            if part[op].call.result != order[:size]:
                return op, longest
    return None


def _proof(part: Sequence[Asked], makers: dict[Any, int], convicting: Sequence[int], because: str) -> Decided:
    """The answer, with all appends of the values that the convicting reads show."""
    proof = tuple(dict.fromkeys(op for op in convicting if op >= 0))
    shown_values = [
        value for op in proof if part[op].call.function == "read" for value in part[op].call.result
    ]
    explaining = [makers[value] for value in shown_values if value in makers]
    return Decided(convicting=proof, scope=tuple(dict.fromkeys((*proof, *explaining))), because=because)
