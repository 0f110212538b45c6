"""Spark itself: the session, jobs, progress, and the package for executors."""
