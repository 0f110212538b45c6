"""Which anomalies of a trace under way wait for its end, and why: later rows may excuse them, or give them
another name.

All others stand as soon as they are found in the certain prefix of a trace (traces/parts.py). That prefix of
a legal history is legal, so nothing that is found in it is withdrawn.
"""

from collections.abc import Mapping

from fencepost.traces.anomalies import BY_FAMILY

_BROKERS = "what excuses it is in events of brokers, which are written in no order with those of others"
_ABSENT = "what is missing may still come"
_REASONS: Mapping[str, tuple[str, ...]] = {
    "the append may still be written, or the record turns out to be from before the recording": (
        "phantom_record",
    ),
    "an append that failed may be part of a transaction that fails later, and others may read it": (
        "failed_append_visible",
    ),
    "a later read may show the record: it is a stale_read then": ("lost_write",),
    "a later log start, or a later record of the key, may explain it": ("skipped_offset", "poll_skip"),
    "an append, a marker of a transaction or a log start that comes to light later may explain it": (
        "unaccounted_offset",
    ),
    "a later read may show its record at another offset: it is a duplicate or inconsistent_offsets then": (
        "torn_batch",
        "nonmonotonic_send",
        "int_nonmonotonic_send",
    ),
    "later reads may close a circle that needs the order of time less, and that is its name then": (
        "circular_reads_in_process",
        "circular_reads_in_real_time",
    ),
    "a transaction names the offsets that it commits when it has completed": (
        "committed_offset_lost",
        "committed_offset_unexplained",
        "committed_offset_not_linearizable",
        "output_without_commit",
    ),
    "another process may turn out to have processed the record": ("committed_before_processed",),
    _ABSENT: (
        *("output_missing", "unseen", "processing_gap", "element_lost"),
        *("record_never_processed", "record_never_received", "record_skipped_at_start", "missing_in_sink"),
        "send_without_result",
    ),
}
UNTIL_END: Mapping[str, str] = {
    **{anomaly.name: _BROKERS for family in ("cluster", "control") for anomaly in BY_FAMILY[family]},
    **{anomaly.name: _ABSENT for anomaly in BY_FAMILY["liveness"]},
    **{name: reason for reason, names in _REASONS.items() for name in names},
}
"""The reason by the name of the anomaly."""
