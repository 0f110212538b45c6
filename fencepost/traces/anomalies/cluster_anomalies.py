"""Anomalies of what brokers and controllers do and keep: protocol events, replicas at the end, files.

Owns these rows of the table. Must not know the others.
"""

from fencepost.traces.anomalies.anomaly import Anomaly

CLUSTER: tuple[Anomaly, ...] = (
    Anomaly(
        name="fenced_controller_wrote",
        rank=10,
        breaks="CTRL-FENCE",
        definition="a controller wrote a partition's state to ZooKeeper after /controller_epoch had moved "
        "past its own",
    ),
    Anomaly(
        name="fenced_controller_obeyed",
        rank=11,
        breaks="CTRL-FENCE",
        definition="a broker acted on a control request of a lower controller epoch than one that it had "
        "already obeyed",
    ),
    Anomaly(
        name="two_leaders_one_epoch",
        rank=15,
        breaks="EPOCH-MONO",
        definition="two brokers led one partition in the same leader epoch",
    ),
    Anomaly(
        name="leader_epoch_regressed",
        rank=16,
        breaks="EPOCH-MONO",
        definition="a partition's leader epoch in ZooKeeper, or at one broker, went back",
    ),
    Anomaly(
        name="committed_record_lost",
        rank=20,
        breaks="COMMIT-SAFE",
        definition="a broker became leader without a record below a high watermark that an earlier leader "
        "had exposed",
    ),
    Anomaly(
        name="committed_record_truncated",
        rank=21,
        breaks="COMMIT-SAFE",
        definition="at the end of the run a current replica lacks a record below an exposed high watermark",
        implied_by=("committed_record_lost",),
    ),
    Anomaly(
        name="high_watermark_outside_log",
        rank=22,
        breaks="HW-BOUNDS",
        definition="a replica's high watermark is below its log start offset, above its log end offset, or "
        "negative",
    ),
    Anomaly(
        name="high_watermark_forgotten",
        rank=23,
        breaks="HW-KEPT",
        definition="a replica started with a lower high watermark than its checkpoint had held, though its "
        "log goes beyond it",
    ),
    Anomaly(
        name="log_divergence",
        rank=25,
        breaks="LOG-MATCH",
        definition="two replicas hold different records at one offset of one epoch, or differ below the "
        "lower of their high watermarks",
    ),
    Anomaly(
        name="log_gap",
        rank=26,
        breaks="LOG-MATCH",
        definition="offsets are missing inside a log that was never compacted",
    ),
    Anomaly(
        name="offset_regressed_in_log",
        rank=27,
        breaks="LOG-MATCH",
        definition="offsets do not ascend along a log: batches or segments overlap",
    ),
    Anomaly(
        name="compaction_lost_record",
        rank=28,
        breaks="COMMIT-SAFE",
        definition="compaction removed the latest record of a key from one replica",
    ),
    Anomaly(
        name="sync_not_asked",
        rank=29,
        breaks="SYNCED",
        definition="when the power failed, a broker had not asked its disk to sync what its flush.messages, "
        "a roll, its recovery point or its marker of a clean stop says is synced",
    ),
    Anomaly(
        name="synced_record_lost",
        rank=29,
        breaks="SYNCED",
        definition="after a power loss or bit rot a replica opened a shorter log than its disk surely held: "
        "the content synced, and its name too or never asked for",
    ),
    Anomaly(
        name="implementation_error",
        rank=49,
        breaks="NO-CRASH",
        definition="a broker, a controller or a client ended by an assertion or by an exception that it does "
        "not expect",
    ),
    Anomaly(
        name="corrupt_batch",
        rank=51,
        breaks="STORED",
        definition="bytes of a segment are no whole batch, or its checksum does not hold",
    ),
    Anomaly(
        name="checkpoint_outside_log",
        rank=52,
        breaks="STORED",
        definition="a checkpointed high watermark, log start or recovery point is outside its log",
    ),
    Anomaly(
        name="epoch_checkpoint_contradicts_log",
        rank=53,
        breaks="STORED",
        definition="the leader epochs of the batches are not those of the epoch checkpoint",
    ),
    Anomaly(
        name="producer_snapshot_damaged",
        rank=54,
        breaks="STORED",
        definition="a producer snapshot is not whole, or contradicts the batches before its offset",
    ),
    Anomaly(
        name="checkpoint_damaged",
        rank=55,
        breaks="STORED",
        definition="a checkpoint file is not whole",
    ),
    Anomaly(
        name="index_damaged",
        rank=56,
        breaks="STORED",
        definition="an index is missing or not whole, leads to no batch or past a record, or names other "
        "aborted transactions than its log has",
    ),
    Anomaly(
        name="replica_missing",
        rank=57,
        breaks="STORED",
        definition="a broker's checkpoint names a partition of which it has no directory",
    ),
    Anomaly(
        name="uncommitted_divergence",
        rank=58,
        breaks="STORED",
        definition="two replicas hold records of different epochs at one offset that is not below both high "
        "watermarks: one is yet to be cut",
    ),
    Anomaly(
        name="conformance",
        rank=60,
        breaks="MODEL",
        definition="an event that no action of the model explains",
    ),
    Anomaly(
        name="no_progress",
        rank=70,
        breaks="LIVE",
        definition="after the faults ended, a wait of the liveness phase never ended",
        implied_by=("deletion_incomplete", "reassignment_incomplete"),
    ),
)
