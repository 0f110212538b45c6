"""The streaming form of the log check: one log, judged while it happens."""
