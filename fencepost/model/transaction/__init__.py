"""The model of transactions: state, actions, invariants."""
