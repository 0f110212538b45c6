"""The group machine: a Hypothesis state machine over a group coordinator and its model."""
