"""Anomalies of one log as its clients see it: which records are where, and in which order of time.

Owns these rows of the table. Must not know the others.
"""

from fencepost.traces.anomalies.anomaly import Anomaly

LOGS: tuple[Anomaly, ...] = (
    Anomaly(
        name="lost_write",
        rank=30,
        breaks="COMMIT-SAFE",
        definition="an acknowledged record (acks=all) is in no later read, though a read ended at or before "
        "its offset, or went beyond it from the start",
        implied_by=("committed_record_lost",),
        jepsen="lost-write",
        allowed="acks=0 and 1; loss, retention, compaction of its offset",
    ),
    Anomaly(
        name="inconsistent_offsets",
        rank=31,
        breaks="LOG-MATCH",
        definition="two values were seen or acknowledged at one offset",
        implied_by=("log_divergence", "committed_record_lost"),
        jepsen="inconsistent-offsets",
        allowed="loss of the offset, then it is keyed by the leader epoch",
    ),
    Anomaly(
        name="duplicate",
        rank=32,
        breaks="IDEMP",
        definition="one value was seen or acknowledged at two offsets",
        jepsen="duplicate",
        allowed="retries without idempotence (the claim duplicates); loss of the offset",
    ),
    Anomaly(
        name="phantom_record",
        rank=33,
        breaks="LOG-MATCH",
        definition="a read returned a record that no client sent",
    ),
    Anomaly(
        name="failed_append_visible",
        rank=34,
        breaks="COMMIT-SAFE",
        definition="a read returned a record whose append had failed",
        jepsen="G1a",
    ),
    Anomaly(
        name="unordered_read",
        rank=35,
        breaks="LOG-MATCH",
        definition="the records of one read, or of the polls of one transaction, are not in increasing "
        "offset order",
        jepsen="int-nonmonotonic-poll",
        allowed="in a transaction: a rebalance within it, or loss as for position_regressed",
    ),
    Anomaly(
        name="skipped_offset",
        rank=36,
        breaks="LOG-MATCH",
        definition="a read, or the polls of one transaction, jumped over an offset that holds a record",
        jepsen="int-poll-skip",
        allowed="loss, retention, compaction; in a transaction: a rebalance within it",
    ),
    Anomaly(
        name="read_outside_bounds",
        rank=37,
        breaks="HW-MONO",
        definition="a read returned a record below the offset it asked for, or at or above the end that it "
        "claimed",
    ),
    Anomaly(
        name="torn_batch",
        rank=38,
        breaks="LOG-MATCH",
        definition="a claimed end is inside a batch, or the records of one batch are not together in order",
    ),
    Anomaly(
        name="epoch_regressed_in_log",
        rank=39,
        breaks="EPOCH-MONO",
        definition="leader epochs decrease along the offsets of a log",
    ),
    Anomaly(
        name="append_inversion",
        rank=40,
        breaks="COMMIT-SAFE",
        definition="an append that began after another's acknowledgement is at the same or a lower offset",
        jepsen="nonmonotonic-send",
        allowed="acks=0 and 1; loss of its offsets; the profile content",
    ),
    Anomaly(
        name="read_before_sent",
        rank=41,
        breaks="LOG-MATCH",
        definition="a read that completed before an append began returned that append's record",
    ),
    Anomaly(
        name="append_below_shown_end",
        rank=42,
        breaks="HW-MONO",
        definition="an append that began after a read had shown a later offset or end is below it",
    ),
    Anomaly(
        name="stale_read",
        rank=43,
        breaks="HW-MONO",
        definition="a strong read that began after an append's acknowledgement claimed an end at or below "
        "its offset",
    ),
    Anomaly(
        name="high_watermark_regressed",
        rank=44,
        breaks="HW-MONO",
        definition="an end that was shown is above the end of a read that began later",
    ),
    Anomaly(
        name="unaccounted_offset",
        rank=45,
        breaks="LOG-MATCH",
        definition="with dense offsets, more holes below a known end than unknown appends that could fill "
        "them in time",
    ),
    Anomaly(
        name="log_start_regressed",
        rank=63,
        breaks="HW-MONO",
        definition="a log start that was shown is above the log start of a read that began later (session: "
        "of one process within one leader epoch)",
    ),
    Anomaly(
        name="log_start_above_end",
        rank=64,
        breaks="HW-MONO",
        definition="a reply claims a log start above the end that it claims",
    ),
    Anomaly(
        name="read_below_log_start",
        rank=65,
        breaks="HW-MONO",
        definition="in the strong profile, a read that began after a log start was shown returned a record "
        "below it",
    ),
    Anomaly(
        name="last_stable_offset_regressed",
        rank=66,
        breaks="TXN-ATOM",
        definition="a last stable offset that was shown is above that of a read that began later (session: "
        "of one process within one leader epoch)",
    ),
    Anomaly(
        name="last_stable_above_end",
        rank=67,
        breaks="TXN-ATOM",
        definition="a reply claims a last stable offset above the end that it claims",
    ),
    Anomaly(
        name="open_transaction_read",
        rank=68,
        breaks="TXN-ATOM",
        definition="a read_committed read, or a claimed last stable offset, went beyond a record whose "
        "transaction was still being written",
    ),
)
