"""The registry of protection names, continued: the guards of a log on its disk (impl/log).

As in traces/protections the name is that of the method that protects, and the key the id of the bug that
its absence brings back. Ids that are not Kafka's begin with LOG.
"""

from fencepost.traces.protections import BY_BUG, Protection


def _row(bug: str, name: str, breaks: str, says: str) -> Protection:
    return Protection(name=name, bug=bug, breaks=breaks, says=says)


STORAGE_PROTECTIONS: tuple[Protection, ...] = (
    _row(
        "KAFKA-10471", "take_marker_first", "STORED", "the clean-shutdown marker goes before a log is touched"
    ),
    _row("KAFKA-5634", "below_high_watermark", "HW-BOUNDS", "retention removes only what is committed"),
    _row("KAFKA-7866", "advance_log_end", "OFFSETS-UNIQUE", "the log end moves right after the write"),
    _row(
        "KAFKA-6975", "log_start_inside_batch", "LIVE", "the first batch of a log may begin below its start"
    ),
    _row("KAFKA-13194", "clean_below", "COMMIT-SAFE", "compaction stops at the high watermark"),
    _row(
        "KAFKA-4529",
        "tombstone_may_go",
        "COMPACTION",
        "a tombstone stays delete.retention.ms after it became clean",
    ),
    _row(
        "KAFKA-5490",
        "last_of_producer",
        "IDEMP",
        "compaction keeps the last batch of a producer, empty if need be",
    ),
    _row(
        "KAFKA-17076",
        "last_of_pass",
        "LIVE",
        "compaction keeps the last batch of a pass, empty if need be, so that a replica has the log's end",
    ),
    _row("KAFKA-6683", "update_producers", "IDEMP", "producers learn only of batches that are in the log"),
    _row("KAFKA-5249", "take_snapshot", "IDEMP", "a snapshot is of the offset that it is named by"),
    _row(
        "KAFKA-5829",
        "remove_snapshots_beyond",
        "IDEMP",
        "recovery removes snapshots beyond the end and no others",
    ),
    _row("KAFKA-7400", "below_log_start", "RETENTION", "segments below the log start go whatever the policy"),
    _row("KAFKA-6003", "trust_the_leader", "LIVE", "a follower does not check sequence numbers"),
    _row(
        "KAFKA-10706", "cut_epochs", "LIVE", "a truncation cuts the epoch cache even where it cuts no record"
    ),
    _row(
        "KAFKA-2477", "bounded_read", "STORED", "a read is bounded by the log as it was when the read began"
    ),
    _row(
        "LOG-FSYNCGATE", "make_durable", "STORED", "recovery writes anew what a failed sync may have given up"
    ),
    _row("LOG-NO-CHECKSUM", "recover_segment", "STORED", "recovery compares every checksum"),
    _row("LOG-LAZY-FLUSH", "flush", "STORED", "the recovery point moves after the sync"),
    _row("LOG-GOES-ON", "in_service", "STORED", "after an error of the disk the log is out of service"),
)

STORAGE_BY_BUG: dict[str, Protection] = {
    protection.bug: BY_BUG.get(protection.bug, protection) for protection in STORAGE_PROTECTIONS
}
