"""What every workload is: the functions that it knows, and a judgement of a whole history.

Owns the values of operations, and how a finding of a workload is made. Must not know any workload.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from fencepost.checkers.models.base import decoded, frozen_value, shown, value_of
from fencepost.checkers.verdict import Decision, Finding, Verdict, nothing_succeeded
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace


class Workload(ABC):
    """What a whole history must show."""

    name: ClassVar[str]
    # What it is about, in one line.
    says: ClassVar[str]
    # The functions that it knows, with what each does. Others are refused.
    functions: ClassVar[dict[str, str]]

    def judge(self, trace: Trace) -> Verdict:
        """The verdict on one history. A history that makes no sense for it gives a verdict, not an exception.

        Args:
            trace: the history; operations may be in any order.
        """
        findings: list[Finding] = []
        try:
            for operation in trace.operations:
                if operation.function not in self.functions:
                    raise TraceError(
                        expected=f"a function of {self.name} ({', '.join(self.functions)})",
                        seen=str(operation.function),
                        where=f"operation {operation.op_id}",
                    )
            for finding in self.findings(trace):
                findings.append(finding)
        except TraceError as error:
            if findings:
                return Verdict(decision=Decision.ILLEGAL, check=self.name, findings=tuple(findings))
            return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=self.name, reason=str(error))
        if not findings and not any(map(happened, trace.operations)):
            reason = nothing_succeeded(len(trace.operations))
            return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=self.name, reason=reason)
        decision = Decision.ILLEGAL if findings else Decision.OK
        return Verdict(decision=decision, check=self.name, findings=tuple(findings))

    @abstractmethod
    def findings(self, trace: Trace) -> Iterator[Finding]:
        """What the history shows that it must not, at most MOST of each kind. Raises TraceError for values
        that make no sense, or at the end for what was not decided."""

    def found(self, anomaly: str, expected: str, seen: str, *operations: Operation) -> Finding:
        """A finding.

        Args:
            anomaly: of the table.
            expected, seen: one clause each.
            operations: that prove it.
        """
        proof = tuple(dict.fromkeys(one.op_id for one in operations))
        return Finding(anomaly=anomaly, check=self.name, expected=expected, seen=seen, operations=proof)


MOST = 20
"""Findings of one kind that are reported: more say nothing new."""


def happened(operation: Operation) -> bool:
    """Whether it took effect for certain."""
    return operation.outcome is Outcome.OK and operation.completion_time is not None


def may_have_happened(operation: Operation) -> bool:
    """Whether it may have taken effect: all but what failed."""
    return operation.outcome is not Outcome.FAIL


def ended(operation: Operation) -> int:
    """When an operation that happened was complete."""
    assert operation.completion_time is not None
    return operation.completion_time


def argument(operation: Operation) -> Any:
    """What it was asked for; None for nothing. Raises TraceError."""
    return None if operation.argument is None else value_of(operation, "argument")


def answer(operation: Operation) -> Any:
    """What it was answered; what it was asked for if the answer only repeats that. Raises TraceError."""
    return argument(operation) if operation.result is None else value_of(operation, "result")


def elements(operation: Operation) -> tuple[Any, ...] | None:
    """The elements of an answer that is a list; None if it is none. Raises TraceError."""
    value = decoded(operation, "argument" if operation.result is None else "result")
    return tuple(map(frozen_value, value)) if isinstance(value, list) else None


def wrong_value(operation: Operation, expected: str, value: Any) -> TraceError:
    """An error about a value that makes no sense.

    Args:
        operation: which has it.
        expected: one clause.
        value: what it has.
    """
    return TraceError(expected=expected, seen=shown(value), where=f"operation {operation.op_id}")
