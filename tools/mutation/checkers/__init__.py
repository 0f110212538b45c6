"""Faults of the judges' rules: their tests must notice."""
