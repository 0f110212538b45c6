"""The explorer and TLC held against each other: the same states, the same counterexamples."""
