"""The explorer: visits the states of a transition system and shows the shortest way to a violation."""

from fencepost.model.explore.breadth_first import After, fingerprint, render
from fencepost.model.explore.explorer import explore
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.transition_system import (
    Action,
    ExplorationOutcome,
    Limits,
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
    "ExplorationOutcome",
    "Limits",
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
