"""Clients of a running cluster and their recorded histories: shared by `produce`, `consume` and `groups`."""
