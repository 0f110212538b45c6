"""The event checks over the tables of a row group: columns are decoded, and the rules see traces.

Owns how the tables become traces, and what is decoded at all. Must not know any rule: those are in
checkers/invariants, checkers/conformance, checkers/liveness and checkers/application, once
(docs/decisions/event-rules.md).
"""

from fencepost.checkers.events.event_values import (
    EventTables,
    judge_application,
    judge_conformance,
    judge_invariants,
    judge_liveness,
)

__all__ = ["EventTables", "judge_application", "judge_conformance", "judge_invariants", "judge_liveness"]
