"""The streaming form of the log check: one log, checked while it runs."""
