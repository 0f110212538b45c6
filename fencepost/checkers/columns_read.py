"""The columns of operations that each check reads. Importing this module is cheap: the command line gets the
names without loading a check."""

LOG_COLUMNS = (
    *("trace_id", "op_id", "process", "session", "clock_id", "function", "outcome", "invoke_time"),
    *("completion_time", "topic", "partition", "acks", "offset", "end_offset", "leader_epoch"),
    *("strong", "records", "positions"),
    *("key", "argument", "isolation", "last_stable_offset", "log_start_offset"),
)
"""The columns of operations that the log check reads."""

SHOWN_COLUMNS = (
    *("trace_id", "op_id", "process", "clock_id", "function", "outcome", "invoke_time", "completion_time"),
    *("topic", "partition", "key", "argument", "offset", "end_offset", "leader_epoch", "records"),
    *("positions", "isolation", "acks", "node", "attempts", "last_stable_offset"),
)
"""The columns of operations that the invariants read: log ends that clients were shown, the keys of records,
and the bounds of reads."""

LIVENESS_COLUMNS = (
    *("trace_id", "op_id", "process", "session", "function", "outcome", "invoke_time", "completion_time"),
    *(
        "topic",
        "partition",
        "key",
        "argument",
        "error",
        "acks",
        "offset",
        "producer_epoch",
        "group",
        "member",
    ),
    *("generation", "node", "attempts", "records", "positions"),
    *("clock_id", "isolation", "end_offset", "last_stable_offset", "producer_id", "sequence", "leader_epoch"),
)
"""The columns of operations that the check of liveness reads."""
