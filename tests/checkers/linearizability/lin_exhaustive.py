"""A deliberately naive decision of linearizability: every order, one by one, nothing remembered. The oracle
of the engine's tests."""

from collections.abc import Iterable

from fencepost.checkers.models import IMPOSSIBLE, Model
from fencepost.checkers.models.base import Call
from fencepost.traces.operations import Operation, Outcome

Step = tuple[Call, int, int | None]
"""A call, when it was invoked, and when it completed (None: its outcome is unknown)."""


def steps_of(model: Model, operations: Iterable[Operation]) -> list[Step]:
    """What counts, without any split into parts."""
    steps = []
    for operation in operations:
        if operation.outcome is not Outcome.FAIL and (call := model.call(operation)) is not None:
            known = operation.outcome is Outcome.OK
            steps.append((call, operation.invoke_time, operation.completion_time if known else None))
    return steps


def order_exists(model: Model, steps: list[Step], state: object) -> bool:
    """Whether what remains can happen from `state`: some step goes first that nothing remaining completed
    before."""
    if all(complete is None for _, _, complete in steps):
        return True
    for index, (call, invoke, _) in enumerate(steps):
        rest = steps[:index] + steps[index + 1 :]
        if any(complete is not None and complete < invoke for _, _, complete in rest):
            continue
        after = model.step(state, call)
        if after is not IMPOSSIBLE and order_exists(model, rest, after):
            return True
    return False


def linearizable(model: Model, operations: Iterable[Operation]) -> bool:
    """The answer, by parts as the model splits (one key's value is part of a state of its own)."""
    steps = steps_of(model, operations)
    names = [model.partition(call) for call, _, _ in steps]
    if None in names:
        return order_exists(model, steps, model.init())
    return all(
        order_exists(
            model, [step for step, its in zip(steps, names, strict=True) if its == name], model.init()
        )
        for name in sorted(set(names))
    )
