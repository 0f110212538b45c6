"""The rows of the check of liveness, by subject. Owns their order: that in which findings are named."""

from fencepost.checkers.liveness.rows import (
    asked_rows,
    broker_rows,
    client_rows,
    commit_rows,
    content_rows,
    epoch_end_rows,
    group_rows,
    id_rows,
    leaving_rows,
    log_rows,
    partition_rows,
    place_rows,
    retention_rows,
    topic_rows,
)

ROWS = (
    *broker_rows.ROWS,
    *partition_rows.ROWS,
    *log_rows.ROWS,
    *retention_rows.ROWS,
    *place_rows.ROWS,
    *epoch_end_rows.ROWS,
    *topic_rows.ROWS,
    *client_rows.ROWS,
    *group_rows.ROWS,
    *leaving_rows.ROWS,
    *id_rows.ROWS,
    *asked_rows.ROWS,
    *commit_rows.ROWS,
    *content_rows.ROWS,
)
"""All rows."""
