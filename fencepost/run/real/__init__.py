"""Runs of plans against systems of real processes, in real time, through our own client."""
