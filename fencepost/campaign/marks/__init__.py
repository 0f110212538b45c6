"""Marks: what a campaign should reach sometimes, as predicates over the history of a run."""
