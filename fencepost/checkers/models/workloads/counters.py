"""A counter that only grows: what is read after an answer is not below it."""

from collections.abc import Iterator
from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.workloads.base import MOST, Workload, answer, ended, happened, wrong_value
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

GROWS = ("inc", "increment", "increase")


@define
class MonotonicCounter(Workload):
    """Values that only grow, in real time; or in each process only, with `sessions=true`."""

    name: ClassVar[str] = "monotonic"
    says: ClassVar[str] = "what is answered after another answer is not below it"
    functions: ClassVar[dict[str, str]] = {
        **dict.fromkeys(GROWS, "raises the value, and returns it"),
        "read": "returns the value",
    }

    # Whether only answers of one process are compared.
    sessions: bool = False

    def findings(self, trace: Trace) -> Iterator[Finding]:
        """Answers below an earlier one, by the latest that was complete before they were asked for."""
        answered = [(one, _number(one)) for one in trace.operations if happened(one)]
        known = [(one, value) for one, value in answered if value is not None]
        ends = sorted(known, key=lambda each: ended(each[0]))
        highest: dict[int, tuple[Operation, Any]] = {}
        position = count = 0
        for one, value in sorted(known, key=lambda each: each[0].invoke_time):
            while position < len(ends) and ended(ends[position][0]) < one.invoke_time:
                other = ends[position]
                who = other[0].process if self.sessions else 0
                if who not in highest or other[1] > highest[who][1]:
                    highest[who] = other
                position += 1
            before = highest.get(one.process if self.sessions else 0)
            if before is not None and value < before[1] and count < MOST:
                count += 1
                expected = f"at least {before[1]}, which operation {before[0].op_id} had been answered before"
                yield self.found(
                    "value_regressed", expected, f"operation {one.op_id} got {value}", before[0], one
                )


def _number(operation: Operation) -> Any:
    """What it was answered; None for an increment that says nothing."""
    if operation.function in GROWS and operation.result is None:
        return None
    value = answer(operation)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise wrong_value(operation, "a number", value)
    return value
