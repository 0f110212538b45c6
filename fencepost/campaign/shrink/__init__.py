"""Shrinking: a failing plan becomes a small one that shows the same anomaly."""
