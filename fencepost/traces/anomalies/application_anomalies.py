"""Anomalies of what an application did with records, by its own lines.

Owns these rows of the table. Must not know the others.
"""

from fencepost.traces.anomalies.anomaly import Anomaly

AT_LEAST_ONCE, ONCE = "APP-AT-LEAST-ONCE", "APP-ONCE"
LOSS = "a promise of at-most-once"

APPLICATION: tuple[Anomaly, ...] = (
    Anomaly(
        name="record_never_processed",
        rank=71,
        breaks=AT_LEAST_ONCE,
        definition="a group received a record and passed it, and none of its processes processed it",
        allowed=LOSS,
    ),
    Anomaly(
        name="record_never_received",
        rank=71,
        breaks=AT_LEAST_ONCE,
        definition="a group passed an acknowledged record that none of its processes was handed",
        allowed=LOSS,
    ),
    Anomaly(
        name="record_skipped_at_start",
        rank=72,
        breaks=AT_LEAST_ONCE,
        definition="a group began above an acknowledged record, and none of its processes processed it",
        allowed=LOSS,
    ),
    Anomaly(
        name="missing_in_sink",
        rank=72,
        breaks=AT_LEAST_ONCE,
        definition="a process says that it processed a record, and the sink does not hold it",
        allowed=LOSS,
    ),
    Anomaly(
        name="send_without_result",
        rank=73,
        breaks=AT_LEAST_ONCE,
        definition="a process ended in order, and a record that it sent was neither acknowledged nor failed",
        allowed=LOSS,
    ),
    Anomaly(
        name="other_bytes",
        rank=73,
        breaks="APP-CONTENT",
        definition="lines of one record name different keys or values",
    ),
    Anomaly(
        name="offset_acknowledged_twice",
        rank=73,
        breaks="APP-CONTENT",
        definition="two sends were acknowledged with one offset",
    ),
    Anomaly(
        name="committed_before_processed",
        rank=74,
        breaks=AT_LEAST_ONCE,
        definition="a process committed past a record that it had received, and processed it later",
        allowed=LOSS,
    ),
    Anomaly(
        name="twice_in_sink",
        rank=75,
        breaks=ONCE,
        definition="the sink holds a record twice",
        allowed="a promise of at-least-once",
    ),
    Anomaly(
        name="processed_twice",
        rank=75,
        breaks=ONCE,
        definition="a group processed a record again although the owner before had committed past it",
        allowed="with a promise of at-least-once: from the last commit of an owner to its end",
    ),
    Anomaly(
        name="processed_after_revoked",
        rank=76,
        breaks="APP-OWNER",
        definition="a process processed a record after its partition was revoked or lost",
    ),
    Anomaly(
        name="processed_out_of_order",
        rank=77,
        breaks="APP-ORDER",
        definition="an owner processed a record after a later one of the same key",
        allowed="where the order is said to be none",
    ),
    Anomaly(
        name="key_in_two_partitions",
        rank=78,
        breaks="APP-ORDER",
        definition="records with one key are in two partitions of a topic",
    ),
)
