"""The rows of the check of liveness, by subject. Owns their order: that in which findings are named."""

from fencepost.checkers.liveness.rows import (
    asked,
    brokers,
    clients,
    commits,
    contents,
    epochs,
    groups,
    ids,
    logs,
    partitions,
    places,
    retention,
    topics,
)

ROWS = (
    *brokers.ROWS,
    *partitions.ROWS,
    *logs.ROWS,
    *retention.ROWS,
    *places.ROWS,
    *epochs.ROWS,
    *topics.ROWS,
    *clients.ROWS,
    *groups.ROWS,
    *ids.ROWS,
    *asked.ROWS,
    *commits.ROWS,
    *contents.ROWS,
)
"""All rows."""
