"""Faults at the level of requests: their one home. sans-IO; time is a parameter, chance is seeded.

    fault = parse("lose answer to Produce on orders-0, 1 in 500")
    faults = RequestFaults(seed=7)
    faults.arm(fault, now)
    hook = FaultHook(faults, broker=1, now=clock)  # of fencepost.wire

docs/reference/request-faults.md has the grammar and the table of what a correct broker may answer.
"""

from fencepost.proxy.faults.allowed import may_answer, rows, why_illegal
from fencepost.proxy.faults.answers import ALLOWED
from fencepost.proxy.faults.drawing import Features, draw
from fencepost.proxy.faults.fault import RequestFault, checked
from fencepost.proxy.faults.fault_engine import RequestFaults, Struck
from fencepost.proxy.faults.fault_words import parse, read_script, write_script
from fencepost.proxy.faults.hook import FaultHook, events_of
from fencepost.proxy.faults.verbs import SHAPES, VERBS

__all__ = [
    "ALLOWED",
    "SHAPES",
    "VERBS",
    "FaultHook",
    "Features",
    "RequestFault",
    "RequestFaults",
    "Struck",
    "checked",
    "draw",
    "events_of",
    "may_answer",
    "parse",
    "read_script",
    "rows",
    "why_illegal",
    "write_script",
]
