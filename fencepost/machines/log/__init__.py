"""The log machine: a Hypothesis state machine over one log. `fencepost campaign bugs hunt` hunts with it."""
