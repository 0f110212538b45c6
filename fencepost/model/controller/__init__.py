"""The model of the control plane: state, actions by procedure, invariants."""
