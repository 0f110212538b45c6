"""Processes of ours, and Java: how they are found, and begin quickly."""
