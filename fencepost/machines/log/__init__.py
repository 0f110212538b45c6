"""The log machine: a Hypothesis state machine over one log, on a simulated disk or on real files."""
