"""The log check: are the clients' views of each partition's log possible? It takes linear time, because
offsets give the order.

`judge_trace` checks one trace, `judge_columns` all traces of stacked columns, `StreamingLogCheck` one log
while it runs.
"""

from fencepost.checkers.log.appends_and_reads import LogColumns, log_columns
from fencepost.checkers.log.log_judge import judge_columns, judge_trace, judge_traces
from fencepost.checkers.log.streaming.streaming import StreamingLogCheck, stream_trace

__all__ = [
    "LogColumns",
    "StreamingLogCheck",
    "judge_columns",
    "judge_trace",
    "judge_traces",
    "log_columns",
    "stream_trace",
]
