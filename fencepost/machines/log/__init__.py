"""The log machine: a Hypothesis state machine over one log. `fencepost bugs hunt` hunts with it."""
