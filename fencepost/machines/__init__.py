"""Hypothesis strategies and state machines, for the tests of this project and for those of others."""
