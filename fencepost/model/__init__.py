"""The specification: pure transition systems, their explorer, and the map from recorded events to model
actions.

It uses the vocabulary (traces) and nothing else of this project: a bug that it shared with the implementation
would be invisible.
"""
