"""The groups judge: one consumer per partition and generation, fenced commits, committed offsets that stay,
processing with causes.

`judge_trace` judges one trace, `judge_table` those of an `operations` table; `group_facts` tells what is no
violation.
"""

from fencepost.checkers.groups.findings import GroupFact
from fencepost.checkers.groups.judge import COLUMNS, group_facts, judge_table, judge_trace

__all__ = ["COLUMNS", "GroupFact", "group_facts", "judge_table", "judge_trace"]
