"""Planted bugs of transactions: each removes one protection by swapping one part.

Owns the rows of the zoo's table that concern them: (bug, role, part, anomalies, profile, what these break).
All are hunted in the profile `transactions`.
"""

from fencepost.bugs.transactions import (
    coordinators,
    readers,
    transaction_offset_bugs,
    transform_bugs,
    verifications,
)

PROFILE = "transactions"
LIVE = frozenset({"no_progress"})
ATOM = frozenset({"open_transaction_read", "torn_transaction"})
ABORTED = frozenset({"failed_append_visible"})
ONCE = frozenset({"output_twice", "output_missing", "output_without_commit", "zombie_write"})
OFFSETS = frozenset(
    {
        *("committed_offset_lost", "committed_offset_unexplained", "committed_offset_not_linearizable"),
        *("reprocessed_after_commit", "stale_commit_accepted"),
    }
)

ROWS: tuple[tuple[str, str, type, frozenset[str], str, str], ...] = (
    ("T1", "transaction_coordinator", coordinators.ObeysAnyEpoch, ONCE | ATOM, PROFILE, "TXN-ATOM"),
    ("T2", "transaction_loading", coordinators.ForgetsTheLastEpoch, ONCE | ATOM, PROFILE, "TXN-ATOM"),
    ("KAFKA-16352", "transaction_loading", coordinators.LeavesEndsToOthers, LIVE, PROFILE, "LIVE"),
    ("T3", "transaction_markers", coordinators.ForgetsAPartition, LIVE, PROFILE, "LIVE"),
    ("T4", "transaction_markers", coordinators.SendsMarkersOnce, LIVE | ATOM, PROFILE, "TXN-ATOM"),
    ("T5", "log", readers.ShowsOpenTransactions, ATOM | ONCE, PROFILE, "EXACTLY-ONCE"),
    ("T6", "log", readers.ForgetsAborted, ATOM | ONCE, PROFILE, "EXACTLY-ONCE"),
    (
        "T7",
        "transactional_offsets",
        transaction_offset_bugs.CommitsWithoutOffsets,
        ONCE | OFFSETS,
        PROFILE,
        "OFFSET-SAFE",
    ),
    (
        "T8",
        "transactional_offsets",
        transaction_offset_bugs.OffsetsWithoutCommit,
        ONCE | OFFSETS,
        PROFILE,
        "OFFSET-SAFE",
    ),
    (
        "KIP-447",
        "transactional_offsets",
        transaction_offset_bugs.TakesAnyMember,
        ONCE | OFFSETS,
        PROFILE,
        "OFFSET-SAFE",
    ),
    (
        "T9",
        "group_offsets",
        transaction_offset_bugs.ShowsUnstableOffsets,
        ONCE | OFFSETS,
        PROFILE,
        "OFFSET-SAFE",
    ),
    ("T13", "marker_writer", coordinators.AnswersBeforeReplicas, LIVE | ATOM, PROFILE, "TXN-ATOM"),
    ("T14", "transaction_coordinator", coordinators.GivesTheSameEpochAgain, ONCE | ATOM, PROFILE, "TXN-ATOM"),
    ("T15", "transaction_coordinator", coordinators.WaitsForEver, LIVE, PROFILE, "LIVE"),
    ("T12", "transaction_log", coordinators.DecidesBeforeReplicas, LIVE | ONCE, PROFILE, "EXACTLY-ONCE"),
    ("T26", "transaction_coordinator", coordinators.BeginsEpochsAgain, LIVE | ONCE, PROFILE, "EXACTLY-ONCE"),
    ("T11", "transform_loop", transform_bugs.TransformsWhatIsNotItsOwn, ONCE, PROFILE, "EXACTLY-ONCE"),
)
LATE: tuple[tuple[str, str, type, frozenset[str], str, str, str], ...] = (
    (
        *("KIP-890", "transaction_verification", verifications.WritesUnasked, LIVE | ONCE | ABORTED),
        *(PROFILE, "EXACTLY-ONCE", "COMMIT-SAFE"),
    ),
    (
        *("T10", "transaction_verification", verifications.BelievesOldAnswers, LIVE | ONCE | ABORTED),
        *(PROFILE, "EXACTLY-ONCE", "COMMIT-SAFE"),
    ),
)
"""Rows in the same form. A batch that comes after the end of its transaction opens the next one: nobody ends
it, or the next commit shows it."""
