"""The model of consumer groups: state, actions, invariants."""
