"""Planted bugs of transactions: each removes one protection by swapping one part.

Owns the rows of the zoo's table that concern them: (bug, role, part, anomalies, what these break).
"""

from fencepost.bugs.transactions import (
    coordinators,
    readers,
    transaction_offset_bugs,
    transform_bugs,
    verifications,
)

LIVE, OVERDUE = frozenset({"no_progress"}), frozenset({"transaction_outlives_timeout"})
ATOM = frozenset({"open_transaction_read", "torn_transaction"})
ABORTED = frozenset({"failed_append_visible"})
ONCE = frozenset({"output_twice", "output_missing", "output_without_commit", "zombie_write"})
UNDECIDED = frozenset({"transaction_forgotten", "completed_without_marker", "committed_offset_lost"})
"""What was decided and answered is decided otherwise by the next coordinator."""
OFFSETS = frozenset(
    {
        *("committed_offset_lost", "committed_offset_unexplained", "committed_offset_not_linearizable"),
        *("reprocessed_after_commit", "stale_commit_accepted"),
    }
)

ROWS: tuple[tuple[str, str, type, frozenset[str], str], ...] = (
    ("T1", "transaction_coordinator", coordinators.ObeysAnyEpoch, ONCE | ATOM, "TXN-ATOM"),
    ("T2", "transaction_loading", coordinators.ForgetsTheLastEpoch, ONCE | ATOM, "TXN-ATOM"),
    ("KAFKA-16352", "transaction_loading", coordinators.LeavesEndsToOthers, LIVE, "LIVE"),
    ("T3", "transaction_markers", coordinators.ForgetsAPartition, LIVE, "LIVE"),
    ("T4", "transaction_markers", coordinators.SendsMarkersOnce, LIVE | ATOM, "TXN-ATOM"),
    ("T5", "log", readers.ShowsOpenTransactions, ATOM | ONCE, "EXACTLY-ONCE"),
    ("T6", "log", readers.ForgetsAborted, ATOM | ONCE, "EXACTLY-ONCE"),
    (
        "T7",
        "transactional_offsets",
        transaction_offset_bugs.CommitsWithoutOffsets,
        ONCE | OFFSETS,
        "OFFSET-SAFE",
    ),
    (
        "T8",
        "transactional_offsets",
        transaction_offset_bugs.OffsetsWithoutCommit,
        ONCE | OFFSETS,
        "OFFSET-SAFE",
    ),
    (
        "KIP-447",
        "transactional_offsets",
        transaction_offset_bugs.TakesAnyMember,
        ONCE | OFFSETS,
        "OFFSET-SAFE",
    ),
    ("T9", "group_offsets", transaction_offset_bugs.ShowsUnstableOffsets, ONCE | OFFSETS, "OFFSET-SAFE"),
    ("T13", "marker_writer", coordinators.AnswersBeforeReplicas, LIVE | ATOM, "TXN-ATOM"),
    ("T14", "transaction_coordinator", coordinators.GivesTheSameEpochAgain, ONCE | ATOM, "TXN-ATOM"),
    ("T15", "transaction_coordinator", coordinators.WaitsForEver, LIVE | OVERDUE, "LIVENESS"),
    ("T26", "transaction_coordinator", coordinators.BeginsEpochsAgain, LIVE | ONCE, "EXACTLY-ONCE"),
    ("T11", "transform_loop", transform_bugs.TransformsWhatIsNotItsOwn, ONCE, "EXACTLY-ONCE"),
)
LATE: tuple[tuple[str, str, type, frozenset[str], *tuple[str, ...]], ...] = (
    (
        *("T12", "transaction_log", coordinators.DecidesBeforeReplicas, LIVE | ONCE | UNDECIDED),
        *("TXN-ATOM", "EXACTLY-ONCE", "OFFSET-SAFE", "LIVENESS"),
    ),
    (
        *("KIP-890", "transaction_verification", verifications.WritesUnasked, LIVE | ONCE | ABORTED),
        *("EXACTLY-ONCE", "COMMIT-SAFE"),
    ),
    (
        *("T10", "transaction_verification", verifications.BelievesOldAnswers, LIVE | ONCE | ABORTED),
        *("EXACTLY-ONCE", "COMMIT-SAFE"),
    ),
)
"""Rows in the same form, with more of what they break. Of the last two: a batch that comes after the end of
its transaction opens the next one: nobody ends it, or the next commit shows it."""
