"""A queue that is drained at the end: what was acknowledged comes out, and nothing else does.

Also for a log of messages that somebody publishes and others fetch. An element that comes out twice is what
at-least-once delivery allows; `once=true` forbids it. It is exact: elements are told apart by their value, so
that an element that was put in twice may come out twice.
"""

from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.base import shown
from fencepost.checkers.models.workloads.base import (
    MOST,
    Workload,
    answer,
    argument,
    elements,
    ended,
    happened,
    may_have_happened,
    wrong_value,
)
from fencepost.checkers.verdict import Finding
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace

ByElement = dict[Any, list[Operation]]
"""Operations by the element that they put in or took out."""
IN = ("enqueue", "publish", "produce", "send", "offer")
OUT = ("dequeue", "fetch", "consume", "receive", "poll", "drain")


@define
class TotalQueue(Workload):
    """Jepsen's total-queue."""

    name: ClassVar[str] = "total-queue"
    says: ClassVar[str] = (
        "what was acknowledged comes out by the end, which drains the queue; nothing else does"
    )
    functions: ClassVar[dict[str, str]] = {
        **dict.fromkeys(IN, "puts one element in"),
        **dict.fromkeys(OUT, "takes an element, or a list of them; null or [] is an empty queue"),
    }

    # Whether an element may come out once only.
    once: bool = False

    def findings(self, trace: Trace) -> Iterator[Finding]:
        """Elements that are lost, from nowhere, from the future, or there too often."""
        put: ByElement = {}
        taken: ByElement = {}
        for operation in trace.operations:
            if operation.function in IN:
                element = argument(operation)
                if element is None:
                    raise wrong_value(operation, f"an element to {operation.function}", element)
                put.setdefault(element, []).append(operation)
            elif happened(operation):
                for element in _elements(operation):
                    taken.setdefault(element, []).append(operation)
        missing = [
            one
            for element, operations in put.items()
            if element not in taken
            for one in operations
            if happened(one)
        ]
        looked = max((one.invoke_time for one in trace.operations if _took(one)), default=-1)
        lost = [one for one in missing if ended(one) <= looked]
        hidden = self._hidden(trace)
        if len(lost) > hidden:
            yield from self._lost([(argument(one), one) for one in lost], hidden)
        yield from self._strange(put, taken)
        for one in missing:
            raise TraceError(
                expected=f"somebody to take {shown(argument(one))}, which was acknowledged",
                seen="only operations without an answer, which may have taken it"
                if one in lost
                else "that nobody looked after that: the queue was not drained",
                where=f"operation {one.op_id}",
            )

    def _hidden(self, trace: Trace) -> float:
        """How many elements operations without an answer may have taken: one each where every answer that
        is known is one element."""
        lists = {one.function for one in trace.operations if _took(one) and elements(one) is not None}
        hidden = [one.function for one in trace.operations if one.outcome is Outcome.UNKNOWN]
        hidden = [function for function in hidden if function in OUT]
        return inf if lists.intersection(hidden) or "drain" in hidden else len(hidden)

    def _lost(self, lost: list[tuple[Any, Operation]], hidden: float) -> Iterator[Finding]:
        for element, one in lost[:MOST]:
            more = f"; {len(lost) - 1} more are lost" if len(lost) > 1 else ""
            more += f", but for at most {hidden} that operations without an answer took" if hidden else ""
            yield self.found(
                "element_lost",
                f"somebody to get {shown(element)}, which was acknowledged, by the end of the history",
                f"nobody did{more}",
                one,
            )

    def _strange(self, put: ByElement, taken: ByElement) -> Iterator[Finding]:
        count: Counter[str] = Counter()
        for element, operations in taken.items():
            sent = [one for one in put.get(element, ()) if may_have_happened(one)]
            first = min(operations, key=ended)
            if not sent:
                failed = put.get(element, [])
                finding = self.found(
                    "element_from_nowhere",
                    "only elements that may have been put in",
                    f"{shown(element)} came out, "
                    + ("whose every attempt failed" if failed else "which nobody sent"),
                    first,
                    *failed[:1],
                )
            elif ended(first) < min(one.invoke_time for one in sent):
                finding = self.found(
                    "element_from_nowhere",
                    f"{shown(element)} not to come out before it is put in",
                    "it was out before its first attempt began",
                    first,
                    min(sent, key=lambda one: one.invoke_time),
                )
            elif self.once and len(operations) > len(sent):
                finding = self.found(
                    "element_repeated",
                    f"{shown(element)} to come out at most {len(sent)} times",
                    f"it came out {len(operations)} times",
                    *operations[: len(sent) + 1],
                )
            else:
                continue
            count[finding.anomaly] += 1
            if count[finding.anomaly] <= MOST:
                yield finding


def _took(operation: Operation) -> bool:
    """Whether it looked for elements, and was answered."""
    return operation.function in OUT and happened(operation)


def _elements(operation: Operation) -> tuple[Any, ...]:
    """What came out."""
    several = elements(operation)
    if several is not None:
        return several
    value = answer(operation)
    return () if value is None else (value,)
