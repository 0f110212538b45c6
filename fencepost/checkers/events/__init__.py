"""The event checks over columns: all traces of a row group at once, with the same verdicts as the plain code.

Owns one screen per check. A screen is a set of compiled kernels (kernels/) that find the traces that *may*
break a rule. Only these are decoded and checked by the plain code (checkers/invariants,
checkers/conformance), which makes all verdicts and certificates. All other traces are Ok. Must not have a
rule that the plain code does not have.
"""

from fencepost.checkers.events.table import EventTables, judge_conformance, judge_invariants, judge_meantime

__all__ = ["EventTables", "judge_conformance", "judge_invariants", "judge_meantime"]
