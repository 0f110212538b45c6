"""Planted bugs of transactions: each removes one protection by swapping one part.

Owns the rows of the zoo's table that concern them: (bug, role, part, anomalies, profile, what these break).
All are hunted in the profile `transactions`.
"""

from fencepost.campaign.bugs.transactions import clients, coordinators, offsets, readers

PROFILE = "transactions"
LIVE = frozenset({"no_progress"})
READS = frozenset({"aborted_read", "open_transaction_read", "torn_transaction", "uncommitted_read"})
ONCE = frozenset(
    {
        *("output_twice", "output_missing", "output_without_commit", "zombie_write", "torn_transaction"),
        *("committed_offset_lost", "committed_offset_unexplained", "committed_offset_not_linearizable"),
        *("reprocessed_after_commit", "stale_commit_accepted"),
    }
)
ATOM, EXACTLY, STUCK = "TXN-ATOM", "EXACTLY-ONCE", "LIVE"

ROWS: tuple[tuple[str, str, type, frozenset[str], str, str], ...] = (
    ("T1", "transaction_coordinator", coordinators.ObeysAnyEpoch, ONCE | LIVE, PROFILE, EXACTLY),
    ("T2", "transaction_loading", coordinators.ForgetsTheLastEpoch, ONCE | LIVE, PROFILE, EXACTLY),
    ("KAFKA-16352", "transaction_loading", coordinators.LeavesEndsToOthers, LIVE, PROFILE, STUCK),
    ("T3", "transaction_markers", coordinators.ForgetsAPartition, ONCE | LIVE, PROFILE, STUCK),
    ("T4", "transaction_markers", coordinators.SendsMarkersOnce, ONCE | LIVE, PROFILE, STUCK),
    ("T5", "log", readers.ShowsOpenTransactions, READS, PROFILE, ATOM),
    ("T6", "log", readers.ForgetsAborted, READS | ONCE, PROFILE, ATOM),
    ("T7", "transactional_offsets", offsets.CommitsWithoutOffsets, ONCE, PROFILE, EXACTLY),
    ("T8", "transactional_offsets", offsets.OffsetsWithoutCommit, ONCE, PROFILE, EXACTLY),
    ("KIP-447", "transactional_offsets", offsets.TakesAnyMember, ONCE, PROFILE, EXACTLY),
    ("T9", "group_offsets", offsets.ShowsUnstableOffsets, ONCE, PROFILE, EXACTLY),
    ("T11", "transform_loop", clients.TransformsWhatIsNotItsOwn, ONCE, PROFILE, EXACTLY),
    ("KIP-890", "transaction_verification", offsets.BelievesBatches, ONCE | LIVE, PROFILE, STUCK),
    ("T10", "transaction_verification", offsets.BelievesOldAnswers, ONCE | LIVE, PROFILE, STUCK),
)
