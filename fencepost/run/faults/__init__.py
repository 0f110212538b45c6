"""Faults and operators' requests: the table of kinds, how each begins and ends, the fault budget, and
roles."""
