"""The exactly-once check: is each transaction visible whole or not at all, and does each record that was
consumed in one have its output once? (docs/reference/anomalies.md)

`judge_trace` checks one trace, `judge_table` all traces of an `operations` table.
"""

from fencepost.checkers.exactly_once.exactly_once_judge import (
    CHECK,
    COLUMNS,
    judge_columns,
    judge_table,
    judge_trace,
    judge_traces,
)

__all__ = ["CHECK", "COLUMNS", "judge_columns", "judge_table", "judge_trace", "judge_traces"]
