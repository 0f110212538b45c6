"""The general judge: is a history linearizable with respect to a sequential model? Exact for any model, by a
compiled search.

`judge_trace(trace, model, limits)` answers a verdict; models live in checkers/models.
"""

from fencepost.checkers.linearizability.judge import CHECK, Judged, judge_counted, judge_trace
from fencepost.checkers.linearizability.limits import SearchLimits

__all__ = ["CHECK", "Judged", "SearchLimits", "judge_counted", "judge_trace"]
