"""`mine --model`: general linearizability of small histories, as an additional check with its own verdicts.

Owns the question in the form in which tasks get it, and its limits: a history beyond one of them is unknown.
Must not know Spark, or how linearizability is decided.
"""

from typing import Any

from attrs import frozen

from fencepost.checkers.linearizability import CHECK, SearchLimits, judge_counted
from fencepost.checkers.linearizability.overlap import strong_enough
from fencepost.checkers.models import Model, model_named
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.errors import FencepostError
from fencepost.traces.trace import Trace

MODEL_CHECK = CHECK
TIMEOUT_S = 10.0
MEMORY_MIB = 512
MOST_OPERATIONS = 2_000
"""The search is exponential at worst; what is much larger seldom ends, and would hold a task up until its
time is over."""


@frozen(kw_only=True)
class ModelQuestion:
    """name, parameters: of the model, the latter by name; timeout_s, memory_bytes: for one history;
    operations: of the largest one that is asked about."""

    name: str
    parameters: dict[str, Any] = {}  # noqa: RUF008 (frozen, never written)
    timeout_s: float = TIMEOUT_S
    memory_bytes: int = MEMORY_MIB << 20
    operations: int = MOST_OPERATIONS

    def model(self) -> Model:
        """The model. Raises FencepostError if it cannot be found or made."""
        return model_named(self.name, self.parameters)

    def judge(self, trace: Trace) -> Verdict:
        """Judge one history. Raises nothing."""
        if len(trace.operations) > self.operations:
            return self.too_large(len(trace.operations))
        try:
            limits = SearchLimits(timeout_s=self.timeout_s, memory_bytes=self.memory_bytes)
            return strong_enough(trace, judge_counted(trace, self.model(), limits))
        except FencepostError as error:
            return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=str(error))

    def too_large(self, operations: int) -> Verdict:
        """The verdict on a history of `operations` operations, which exceeds the bound."""
        reason = f"{operations} operations, asked about at most {self.operations}"
        return Verdict(decision=Decision.UNKNOWN, check=CHECK, reason=reason)
