"""The general checker: is a history linearizable with respect to a sequential model? A compiled search
decides it exactly for any model.

`judge_trace(trace, model, limits)` returns a verdict; the models are in checkers/models.
"""

from fencepost.checkers.linearizability.limits import SearchLimits
from fencepost.checkers.linearizability.linearizability_judge import CHECK, Judged, judge_counted, judge_trace

__all__ = ["CHECK", "Judged", "SearchLimits", "judge_counted", "judge_trace"]
