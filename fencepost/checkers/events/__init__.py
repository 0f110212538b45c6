"""The event checks over columns: all traces of a row group at once, with the verdicts of the plain code.

Owns a screen per check: compiled kernels (kernels/) that say which traces *may* break a rule. Only those are
decoded and judged by the plain code (checkers/invariants, checkers/conformance), so that verdicts and
certificates are its own; all others are Ok. Must not know any rule that the plain code does not have.
"""

from fencepost.checkers.events.table import EventTables, judge_conformance, judge_invariants, judge_meantime

__all__ = ["EventTables", "judge_conformance", "judge_invariants", "judge_meantime"]
