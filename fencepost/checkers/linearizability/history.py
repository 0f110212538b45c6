"""The operations of a trace as parts of a history, ready for a search.

Owns which operations count, how they split into parts, and the arrays of a part. Must not know how a search
works.

Failed operations did not happen and are left out. Operations that give the model no information are left out,
too. Intervals are closed: at equal times the invocation comes first. `relaxed` operations are treated as if
their outcome were unknown, which only allows more orders.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

import numpy as np
from attrs import evolve, frozen

from fencepost.checkers.linearizability.interned_steps import Table
from fencepost.checkers.linearizability.kernel.arrays import WORD, SearchPart
from fencepost.checkers.models.base import Call, Model
from fencepost.checkers.operation_columns import NEVER
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace

MOST_OPERATIONS = 1 << 30
"""The most operations of one part. Reason: the number of an operation and the number of a node share a 64-bit
word."""


@frozen(kw_only=True)
class Asked:
    """An operation that counts. complete: the time of completion, NEVER if the outcome is unknown."""

    operation: Operation
    call: Call
    invoke: int
    complete: int

    @property
    def known(self) -> bool:
        """Whether the outcome is known."""
        return self.complete != NEVER


def asked_of(model: Model, operation: Operation, widen: int = 0) -> Asked | None:
    """The operation as the model sees it; None if it gives no information. Raises TraceError.

    widen: the possible error of each time stamp, in nanoseconds.
    """
    if operation.function not in model.functions:
        raise TraceError(
            expected=f"functions of the model {model.name or type(model).__name__}: "
            f"{', '.join(sorted(model.functions))}",
            seen=operation.function.value,
            where=f"operation {operation.op_id}",
        )
    if operation.outcome is Outcome.FAIL:
        return None
    call = model.call(_widened(operation, widen) if model.timed and widen else operation)
    if call is None:
        return None
    complete = NEVER
    if operation.outcome is Outcome.OK:
        completion = operation.completion_time
        if completion is None or completion < operation.invoke_time:
            raise TraceError(
                expected="a completion after the invocation",
                seen=str(completion),
                where=f"operation {operation.op_id}",
            )
        complete = completion + widen
    return Asked(operation=operation, call=call, invoke=operation.invoke_time - widen, complete=complete)


def _widened(operation: Operation, widen: int) -> Operation:
    end = operation.completion_time
    return evolve(
        operation,
        invoke_time=operation.invoke_time - widen,
        completion_time=None if end is None else end + widen,
    )


def split(model: Model, trace: Trace, widen: int = 0) -> dict[str, list[Asked]]:
    """Split a trace into independent parts.

    Args:
        model: it converts operations and says which part each call belongs to.
        trace: the history.
        widen: the possible error of each time stamp, in nanoseconds.

    Returns:
        for each name of a part its operations that count; small parts come first.

    Raises:
        TraceError: if an operation makes no sense to the model.
    """
    parts: dict[str, list[Asked]] = defaultdict(list)
    everything = [asked for one in trace.operations if (asked := asked_of(model, one, widen)) is not None]
    for asked in everything:
        name = model.partition(asked.call)
        if name is None:
            return {"": everything}
        parts[str(name)].append(asked)
    return dict(sorted(parts.items(), key=lambda item: (len(item[1]), item[0])))


def relax(model: Model, asked: Asked) -> Asked | None:
    """Treat an operation as if its outcome were unknown.

    Args:
        model: it says what such an operation means.
        asked: the operation.

    Returns:
        the relaxed operation; None if it then gives the model no information.
    """
    operation = evolve(
        asked.operation,
        outcome=Outcome.UNKNOWN,
        completion_time=None,
        result=None,
        offset=None,
        invoke_time=asked.invoke,
    )
    call = model.call(operation)
    return None if call is None else evolve(asked, call=call, complete=NEVER)


def with_relaxed(model: Model, part: Iterable[Asked], relaxed: Collection[int]) -> list[Asked]:
    """The `part` with some operations (`relaxed`, by op id) relaxed, as `model` sees them."""
    changed = (relax(model, asked) if asked.operation.op_id in relaxed else asked for asked in part)
    return [asked for asked in changed if asked is not None]


@frozen(kw_only=True, eq=False)
class Arrays:
    """A part in the order of its numbers, with its arrays.

    slots: the number of slots for known operations. foresees: whether rule 3 of the search applies.
    """

    asked: tuple[Asked, ...]
    part: SearchPart
    slots: int
    foresees: bool


def arrays_of(part: Iterable[Asked], table: Table) -> Arrays:
    """Number the operations of `part` by invocation, and give each its slot. Calls get their numbers from
    `table`."""
    asked = tuple(sorted(part, key=lambda one: (one.invoke, one.complete)))
    assert len(asked) < MOST_OPERATIONS, f"a part of {len(asked)} operations"
    invoke = np.array([one.invoke for one in asked], np.int64)
    complete = np.array([one.complete for one in asked], np.int64)
    call = np.array([table.call(one.call) for one in asked], np.int64)
    observes = np.array([one.known and table.model.observes(one.call) for one in asked], np.bool_)
    by_completion = np.argsort(complete, kind="stable")
    order = np.empty(len(asked), np.int64)
    order[by_completion] = np.arange(len(asked))
    returns = by_completion[: int(np.count_nonzero(complete != NEVER))]
    invoked = np.searchsorted(invoke, complete[returns], side="right")
    unknown = np.flatnonzero(complete == NEVER)
    slot, slots = _slots(returns, invoked, complete)
    words = -(-slots // WORD)
    slot[unknown] = words * WORD + np.arange(len(unknown))
    twin = np.full(len(asked), -1, np.int64)
    last: dict[int, int] = {}
    for op in unknown.tolist():
        twin[op] = last.get(int(call[op]), -1)
        last[int(call[op])] = op
    made = SearchPart(
        call=call,
        observes=observes,
        slot=slot,
        order=order,
        returns=returns,
        invoked=invoked,
        unknown=unknown,
        unknown_before=np.searchsorted(unknown, invoked, side="left"),
        twin=twin,
        words=words,
        **_foresight(asked, table, order, returns, observes),
    )
    return Arrays(asked=asked, part=made, slots=slots, foresees=bool(np.any(made.reach >= 0)))


def without_foresight(part: SearchPart) -> SearchPart:
    """The same part without rule 3."""
    return part._replace(observer=np.full_like(part.observer, len(part.returns)))


def _foresight(
    asked: tuple[Asked, ...], table: Table, order: np.ndarray, returns: np.ndarray, observes: np.ndarray
) -> dict[str, np.ndarray]:
    """The columns of `Part` that rule 3 needs: reach, observer, reset, lands and lost."""
    levels, model = len(returns), table.model
    reach = np.full(levels, -1, np.int64)
    observer = np.full(levels + 1, levels, np.int64)
    reset = np.full(levels + 1, len(asked), np.int64)
    acts = [op for op, one in enumerate(asked) if not model.observes(one.call)]
    resets = [op for op in acts if model.resets(asked[op].call)]
    lands = np.full(len(asked), -1, np.int64)
    if len(resets) < len(acts):
        for op in resets:
            if model.overwrites(asked[op].call):
                lands[op] = table.step(table.state(model.init()), table.call(asked[op].call))
                continue
            level = min(int(order[op]), levels)
            reset[level] = min(reset[level], op)
        for level in range(levels - 1, -1, -1):
            op = int(returns[level])
            reset[level] = min(reset[level], reset[level + 1])
            observer[level] = observer[level + 1]
            if observes[op]:
                observer[level] = level
                reach[level] = table.reach(asked[op].call)
    lost = np.array([op for op in np.flatnonzero(lands >= 0).tolist() if order[op] >= levels], np.int64)
    return {"reach": reach, "observer": observer, "reset": reset, "lands": lands, "lost": lost}


def _slots(returns: np.ndarray, invoked: np.ndarray, complete: np.ndarray) -> tuple[np.ndarray, int]:
    """The slot of each known operation and the number of slots. An operation gets the lowest slot that is
    free at its invocation."""
    slot = np.full(len(complete), -1, np.int64)
    free: list[int] = []
    count = begin = 0
    for level, op in enumerate(returns.tolist()):
        for new in range(begin, int(invoked[level])):
            if complete[new] != NEVER:
                slot[new] = free.pop() if free else count
                count += slot[new] == count
        begin = int(invoked[level])
        free.append(int(slot[op]))
    return slot, int(count)
