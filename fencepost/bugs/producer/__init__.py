"""Planted bugs of idempotent producers, on both sides of the wire: each removes one protection by swapping
one part.

Owns the rows of the zoo's table that concern them: (bug, role, part, anomalies, breaks). KAFKA-5490
needs a cleaning at the one moment that counts; the log machine finds it (bugs/storage), the swarm
has not.
"""

from fencepost.bugs.producer import numbers, producer_log_bugs
from fencepost.bugs.storage import appending

TWICE = frozenset({"appended_again", "duplicate", "nonmonotonic_send"})
TAKEN_FOR_ANOTHER = frozenset({"inconsistent_offsets"})
"""A batch that is taken for the retry of another, and acknowledged with the offset of that one."""
NEVER_WRITTEN = frozenset({"inconsistent_offsets", "lost_write"})
"""A batch that is taken for its own retry, and acknowledged where it never stood."""

ROWS: tuple[tuple[str, str, type, frozenset[str], str], ...] = (
    ("KIP-98", "log", producer_log_bugs.KnowsNoProducers, TWICE, ""),
    ("KIP-360", "producer_sequences", numbers.SendsAgainUnderANewEpoch, TWICE, ""),
    ("R10", "producer_ids", numbers.ClaimsAnyBlock, TAKEN_FOR_ANOTHER, "LOG-MATCH"),
    ("KAFKA-7298", "log", producer_log_bugs.ForgetsDeletedProducers, TWICE, ""),
    (
        "KAFKA-8484",
        "producer_sequences",
        numbers.NumbersAgainOutOfOrder,
        frozenset({"nonmonotonic_send"}),
        "",
    ),
    ("KIP-126", "producer_sequences", numbers.NumbersHalvesAlike, NEVER_WRITTEN | TWICE, "COMMIT-SAFE"),
    ("R1-COPIES", "log", appending.RefusesLargeCopies, frozenset({"no_progress"}), ""),
    ("KAFKA-6003", "log", appending.ChecksItsLeader, frozenset({"no_progress"}), ""),
    ("KAFKA-6683", "log", appending.ProducersFirst, NEVER_WRITTEN, "COMMIT-SAFE"),
)
