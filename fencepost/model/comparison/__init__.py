"""Comparison of the explorer with TLC: the same states, the same counterexamples."""
