"""The exactly-once judge: is each transaction visible whole or not at all, and does each record that was
consumed in one have its output once? (docs/reference/anomalies.md)"""

from fencepost.checkers.exactly_once.judge import CHECK, COLUMNS, judge_table, judge_trace

__all__ = ["CHECK", "COLUMNS", "judge_table", "judge_trace"]
