"""Which columns of operations a check reads. Light: a command line names them without loading a check."""

LOG_COLUMNS = (
    *("trace_id", "op_id", "process", "session", "clock_id", "function", "outcome", "invoke_time"),
    *("completion_time", "topic", "partition", "acks", "offset", "end_offset", "leader_epoch"),
    *("strong", "records", "positions"),
    *("key", "argument", "isolation", "last_stable_offset", "log_start_offset"),
)
"""What the log check reads of operations."""

SHOWN_COLUMNS = (
    *("trace_id", "op_id", "process", "clock_id", "function", "outcome", "invoke_time", "completion_time"),
    *(
        "topic",
        "partition",
        "key",
        "argument",
        "offset",
        "end_offset",
        "leader_epoch",
        "records",
        "positions",
    ),
    "isolation",
)
"""What the invariants read of operations: ends that clients were shown, and the keys of records."""
