"""The explorer: visits the states of a transition system and shows the shortest way to a violation."""

from fencepost.model.explore.breadth_first import After, fingerprint, render
from fencepost.model.explore.explorer import explore
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.system import (
    Action,
    Limits,
    Outcome,
    Part,
    Result,
    Rule,
    Step,
    Symmetry,
    System,
    Value,
)

__all__ = [
    "Action",
    "After",
    "Limits",
    "Outcome",
    "Part",
    "Result",
    "Rule",
    "SlottedSystem",
    "Step",
    "Symmetry",
    "System",
    "Value",
    "explore",
    "fingerprint",
    "render",
]
