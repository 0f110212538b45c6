"""The picture of a history checked against a sequential model: lanes, the longest order, the state after
each step, and the operation that fits nowhere.

Owns which operations are drawn and when each of them takes effect. Must not know verdicts or drawing; the
search is the judge's.

An operation of the order takes effect at the latest invocation among itself and those before it. That moment
is inside its interval, because the order keeps real time: an operation that completed before another was
invoked comes before it.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from attrs import evolve, frozen

from fencepost.checkers.linearizability.explain import PREFIX_EFFORT, prefix_order
from fencepost.checkers.linearizability.history import Arrays, Asked, arrays_of, split
from fencepost.checkers.linearizability.interned_steps import Table
from fencepost.checkers.linearizability.limits import Guard, LimitReached, SearchLimits
from fencepost.checkers.linearizability.search_engine import SearchAnswer, search
from fencepost.checkers.models.base import Model
from fencepost.checkers.operation_columns import NEVER
from fencepost.checkers.verdict import Finding
from fencepost.report.event_words import printable
from fencepost.traces.trace import Trace
from fencepost.viewer.columns import exact

MOST_PARTS = 8
"""Parts that a page draws, those of findings first: more tabs would not be usable."""
MOST_DRAWN = 120
"""Operations of a part that are drawn, the last ones before the order ends: a screen or two."""
LARGEST_PART = 100_000
"""Operations of a part that is still searched again for its picture."""
SECONDS = 10.0
"""Time for all pictures of a page together; a part that takes longer is not drawn."""
LONGEST_STATE = 200
"""Characters of a state: two lines of the page."""


@frozen(kw_only=True)
class _Order:
    """The longest order of a part."""

    # Numbers of operations.
    order: list[int]
    # After each.
    states: list[int]
    # The number of the one that fits nowhere, None if all fit.
    culprit: int | None
    longest: bool


def sequential_of(trace: Trace, model: Model, findings: Sequence[Finding] = ()) -> dict[str, Any] | None:
    """The picture's data.

    Parameters: trace: with operations that the model knows. findings: of the linearizability check, for their
    proofs.
    Returns: what page/sequential.js reads; None where nothing can be drawn.
    Raises: FencepostError for operations that the model cannot read.
    """
    guard = Guard(SearchLimits(timeout_s=SECONDS), at_once=False)
    convicted = {op_id for finding in findings for op_id in finding.operations}
    parts = [(name, part) for name, part in split(model, trace).items() if part and len(part) <= LARGEST_PART]
    parts.sort(key=lambda item: (not _holds(item[1], convicted), len(item[1]) > MOST_DRAWN, item[0]))
    origin = min((operation.invoke_time for operation in trace.operations), default=0)
    drawn = []

    def draw() -> None:
        for name, part in parts[:MOST_PARTS]:
            drawn.append(_part(name, part, model, convicted, origin, guard))

    with suppress(LimitReached, MemoryError):  # what was drawn until then is shown
        guard.watch(draw)
    return {"model": model.name or type(model).__name__, "parts": drawn} if drawn else None


def _holds(part: Sequence[Asked], convicted: set[int]) -> bool:
    return any(one.operation.op_id in convicted for one in part)


def _longest(arrays: Arrays, table: Table, guard: Guard) -> _Order:
    outcome = search(evolve(arrays, foresees=False), table, guard, most_effort=PREFIX_EFFORT)
    order, _ = prefix_order(arrays, outcome, table)
    state, states = table.state(table.model.init()), []
    for number in order:
        state = table.step(state, int(arrays.part.call[number]))
        states.append(state)
    legal = outcome.answer is SearchAnswer.LINEARIZABLE
    culprit = None if legal else int(arrays.part.returns[outcome.level])
    return _Order(
        order=order, states=states, culprit=culprit, longest=outcome.answer is not SearchAnswer.GAVE_UP
    )


def _part(
    name: str, part: list[Asked], model: Model, convicted: set[int], origin: int, guard: Guard
) -> dict[str, Any]:
    table = Table(model)
    arrays = arrays_of(part, table)
    found = _longest(arrays, table, guard)
    points: list[int] = []
    at = 0
    for number in found.order:
        at = max(at, arrays.asked[number].invoke) if points else arrays.asked[number].invoke
        points.append(at)
    skipped = max(0, len(found.order) - MOST_DRAWN)
    before = found.states[skipped - 1] if skipped else table.state(model.init())
    kept = set(found.order[skipped:]) | ({found.culprit} if found.culprit is not None else set())
    kept |= _around(arrays, found, kept, convicted)

    def words(state: int) -> str:
        return printable(model.describe_state(table.states[state]), LONGEST_STATE)

    def identity(number: int) -> int | str:
        return exact(arrays.asked[number].operation.op_id)

    operations = {
        str(identity(number)): {
            "words": printable(model.describe(arrays.asked[number].call), 80),
            "process": arrays.asked[number].operation.process,
            "invoke": arrays.asked[number].invoke - origin,
            "complete": arrays.asked[number].complete - origin if arrays.asked[number].known else -1,
        }
        for number in sorted(kept)
    }
    return {
        "name": printable(name, 40),
        "operations": operations,
        "skipped": skipped,
        "order": [identity(number) for number in found.order[skipped:]],
        "points": [point - origin for point in points[skipped:]],
        "states": [words(state) for state in found.states[skipped:]],
        "initial": words(before),
        "culprit": None if found.culprit is None else str(identity(found.culprit)),
        "longest": found.longest,
        "proof": [
            op_id for number in sorted(kept) if (op_id := arrays.asked[number].operation.op_id) in convicted
        ],
    }


def _around(arrays: Arrays, found: _Order, kept: set[int], convicted: set[int]) -> set[int]:
    """Operations that are not in the order but overlap what is drawn, and the rest of the proof, as far as
    there is room."""
    first = min((arrays.asked[number].invoke for number in kept), default=0)
    last = max((_end(arrays.asked[number]) for number in kept), default=0)
    ordered = set(found.order)
    others = [
        number
        for number, one in enumerate(arrays.asked)
        if number not in kept
        and (
            one.operation.op_id in convicted
            or (number not in ordered and one.invoke <= last and _end(one) >= first)
        )
    ]
    others.sort(key=lambda number: (arrays.asked[number].operation.op_id not in convicted, number))
    return set(others[:MOST_DRAWN])


def _end(one: Asked) -> int:
    return one.invoke if one.complete == NEVER else one.complete
