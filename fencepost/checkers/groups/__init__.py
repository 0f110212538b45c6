"""The groups check: one consumer per partition and generation, fenced commits, committed offsets that are not
lost, and processing with causes.

`judge_trace` checks one trace, `judge_table` the traces of an `operations` table. `group_facts` returns facts
that are not violations.
"""

from fencepost.checkers.groups.group_findings import GroupFact
from fencepost.checkers.groups.groups_judge import COLUMNS, group_facts, judge_table, judge_trace

__all__ = ["COLUMNS", "GroupFact", "group_facts", "judge_table", "judge_trace"]
