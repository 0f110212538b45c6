"""The rows of the check of liveness, by subject. Owns their order: that in which findings are named."""

from fencepost.checkers.liveness.rows import brokers, partitions

ROWS = (*brokers.ROWS, *partitions.ROWS)
"""All rows."""
