"""Hypothesis state machines over a simulated cluster, by family of rules."""
