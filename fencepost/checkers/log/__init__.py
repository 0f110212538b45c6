"""The log check: are the clients' views of each partition's log possible? It takes linear time, because
offsets give the order.

`judge_trace` checks one trace, `judge_columns` all traces of stacked columns.
"""

from fencepost.checkers.log.appends_and_reads import LogColumns, log_columns
from fencepost.checkers.log.log_judge import judge_columns, judge_trace, judge_traces

__all__ = ["LogColumns", "judge_columns", "judge_trace", "judge_traces", "log_columns"]
