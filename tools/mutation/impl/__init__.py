"""Faults of the reference implementation: the swarm's judges must convict. No unit test is asked."""
