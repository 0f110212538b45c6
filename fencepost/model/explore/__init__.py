"""The explorer: visits the states of a transition system and shows the shortest way to a violation."""

from fencepost.model.explore.breadth_first import After, explore, fingerprint, render
from fencepost.model.explore.system import Action, Limits, Outcome, Result, Step, System, Value

__all__ = [
    "Action",
    "After",
    "Limits",
    "Outcome",
    "Result",
    "Step",
    "System",
    "Value",
    "explore",
    "fingerprint",
    "render",
]
