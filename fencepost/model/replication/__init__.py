"""The model of the data path: state, actions, guards, invariants."""
