"""Counterexamples of the replication model as plans for the implementation."""
