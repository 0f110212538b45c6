"""The transactions check: can the reads of transactions from each other have happened in any order?
(docs/reference/anomalies.md)

`judge_trace` checks one trace, `judge_table` all traces of an `operations` table. `cycles_of_trace` also
counts the cycles that Kafka allows.
"""

from fencepost.checkers.transactions.transactions_judge import (
    COLUMNS,
    Cycles,
    cycles_of_trace,
    judge_columns,
    judge_table,
    judge_trace,
    judge_traces,
)

__all__ = [
    "COLUMNS",
    "Cycles",
    "cycles_of_trace",
    "judge_columns",
    "judge_table",
    "judge_trace",
    "judge_traces",
]
