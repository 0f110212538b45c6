"""The one table of anomalies: name, definition, the invariant it breaks, what implies it, and which wins.

Judges name their findings by this table only. When several anomalies hold for one trace, the one with the lowest `rank` is the
trace's name: shrinking keeps *that* anomaly.
"""

from attrs import frozen


@frozen(kw_only=True)
class Anomaly:
    """rank: precedence, lower wins. implied_by: anomalies of which this one is a consequence. jepsen: its name in Jepsen's Kafka workload.
    allowed: under which claims or recorded facts it is no finding ("": never); where it is only counted, and never a finding, says so."""

    name: str
    rank: int
    definition: str
    breaks: str
    implied_by: tuple[str, ...] = ()
    jepsen: str | None = None
    allowed: str = ""


ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly(
        name="fenced_controller_wrote",
        rank=10,
        breaks="CTRL-FENCE",
        definition="a controller wrote a partition's state to ZooKeeper after /controller_epoch had moved past its own",
    ),
    Anomaly(
        name="fenced_controller_obeyed",
        rank=11,
        breaks="CTRL-FENCE",
        definition="a broker acted on a control request of a lower controller epoch than one that it had already obeyed",
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
        name="partition_assigned_twice",
        rank=17,
        breaks="GROUP-ONE",
        definition="two members of a group had one partition in the same generation",
    ),
    Anomaly(
        name="generation_regressed",
        rank=18,
        breaks="GROUP-ONE",
        definition="a member that joined after a generation was known joined a lower one",
    ),
    Anomaly(
        name="unassigned_poll",
        rank=19,
        breaks="GROUP-ONE",
        definition="a member got records of a partition that its generation had not assigned to it",
    ),
    Anomaly(
        name="committed_record_lost",
        rank=20,
        breaks="COMMIT-SAFE",
        definition="a broker became leader without a record below a high watermark that an earlier leader had exposed",
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
        definition="a replica's high watermark is below its log start offset, above its log end offset, or negative",
    ),
    Anomaly(
        name="log_divergence",
        rank=25,
        breaks="LOG-MATCH",
        definition="two replicas hold different records at one offset of one epoch, or differ below the lower of their high watermarks",
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
        name="stale_commit_accepted",
        rank=26,
        breaks="OFFSET-SAFE",
        definition="a commit that began after a higher generation was known was acknowledged",
        allowed="a commit without a generation (a consumer that assigns itself) is not fenced",
    ),
    Anomaly(
        name="committed_offset_lost",
        rank=27,
        breaks="OFFSET-SAFE",
        definition="a fetch that began after a commit was acknowledged returned what that commit had replaced",
        implied_by=("stale_commit_accepted",),
        allowed="an unknown commit may take effect at any later time, until a higher generation is known",
    ),
    Anomaly(
        name="committed_offset_unexplained",
        rank=28,
        breaks="OFFSET-SAFE",
        definition="a fetch returned an offset that no commit had carried when it completed",
    ),
    Anomaly(
        name="committed_offset_not_linearizable",
        rank=29,
        breaks="OFFSET-SAFE",
        definition="no order of the commits, generations and fetches of one partition explains what was read back",
        implied_by=(
            "stale_commit_accepted",
            "committed_offset_lost",
        ),
    ),
    Anomaly(
        name="lost_write",
        rank=30,
        breaks="COMMIT-SAFE",
        definition="an acknowledged record (acks=all) is in no later read, though a read ended at or before its offset, or went beyond it from the start",
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
        definition="a read returned a record that nobody sent",
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
        definition="the records of one read, or of the polls of one transaction, are not in increasing offset order",
        jepsen="int-nonmonotonic-poll",
        allowed="in a transaction: a rebalance within it",
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
        definition="a read returned a record below the offset it asked for, or at or above the end that it claimed",
    ),
    Anomaly(
        name="torn_batch",
        rank=38,
        breaks="LOG-MATCH",
        definition="a claimed end lies inside a batch, or the records of one batch do not stand together in order",
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
        definition="an append that began after another's acknowledgement stands at a lower offset",
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
        definition="an append that began after a read had shown a later offset or end stands below it",
    ),
    Anomaly(
        name="stale_read",
        rank=43,
        breaks="HW-MONO",
        definition="a strong read that began after an append's acknowledgement claimed an end at or below its offset",
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
        definition="with dense offsets, more holes below a known end than unknown appends that could fill them in time",
    ),
    Anomaly(
        name="position_regressed",
        rank=46,
        breaks="SESSION",
        definition="a process read from a lower offset than before within one leader epoch (session profile), or a consumer polled at or below its last poll",
        jepsen="nonmonotonic-poll",
        allowed="of consumers: between two assignments, as poll_skip",
    ),
    Anomaly(
        name="sequence_regressed",
        rank=47,
        breaks="IDEMP",
        definition="the epoch or the sequence numbers of an idempotent producer go back along a log",
    ),
    Anomaly(
        name="precommitted_read",
        rank=47,
        breaks="TXN-ATOM",
        definition="a transaction polled a record that it had sent itself",
        jepsen="precommitted-read",
    ),
    Anomaly(
        name="int_nonmonotonic_send",
        rank=48,
        breaks="IDEMP",
        definition="a record stands at or below another of its partition that the same transaction sent before",
        jepsen="int-nonmonotonic-send",
        allowed="loss of its offsets",
    ),
    Anomaly(
        name="nonmonotonic_send",
        rank=49,
        breaks="IDEMP",
        definition="a record stands at or below one that its process had sent, and knew the end of, before",
        implied_by=("append_inversion",),
        jepsen="nonmonotonic-send",
        allowed="retries without idempotence; an unknown outcome or acks=0 without idempotence; acks=1 whose record nobody read; loss of its offsets",
    ),
    Anomaly(
        name="not_linearizable",
        rank=50,
        breaks="LIN",
        definition="no order of the operations that keeps their real-time order is one that the sequential model allows",
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
        definition="a checkpointed high watermark, log start or recovery point lies outside of its log",
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
        definition="an index is missing or not whole, or leads to no batch or past a record",
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
        definition="two replicas hold records of different epochs at one offset that is not below both high watermarks: one is yet to be cut",
    ),
    Anomaly(
        name="poll_skip",
        rank=51,
        breaks="SESSION",
        definition="a consumer went on polling beyond a record that is known to stand where its last poll ended",
        implied_by=("lost_write",),
        jepsen="poll-skip",
        allowed="after assign elsewhere, after a join, after subscribe if rebalances are not recorded (then counted); loss, retention, compaction",
    ),
    Anomaly(
        name="unseen",
        rank=52,
        breaks="LIVE",
        definition="an acknowledged record (acks=all) was polled by nobody, though a consumer sought the beginning after that and polled",
        implied_by=(
            "lost_write",
            "no_progress",
        ),
        jepsen="unseen",
        allowed="acks=0 and 1; loss, retention, compaction; without such a last look it is only counted, over time",
    ),
    Anomaly(
        name="conformance",
        rank=60,
        breaks="MODEL",
        definition="an event that no action of the model explains",
    ),
    Anomaly(
        name="reprocessed_after_commit",
        rank=61,
        breaks="OFFSET-SAFE",
        definition="a group got a record again although a commit beyond it was acknowledged before the member joined",
        implied_by=("committed_offset_lost",),
        allowed="without such a commit it is a fact with its cause: a crash, a rebalance",
    ),
    Anomaly(
        name="processing_gap",
        rank=62,
        breaks="OFFSET-SAFE",
        definition="a group got records beyond one that it never got, and nobody had committed beyond that one before it was processed",
        implied_by=("poll_skip",),
        allowed="a commit before processing, loss, retention and compaction explain a gap: then it is a fact with its cause",
    ),
    Anomaly(
        name="log_start_regressed",
        rank=63,
        breaks="HW-MONO",
        definition="a log start that was shown is above the log start of a read that began later (session: of one process within one leader epoch)",
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
        definition="in the strong profile, a read that began after a log start was shown returned a record below it",
    ),
    Anomaly(
        name="last_stable_offset_regressed",
        rank=66,
        breaks="TXN-ATOM",
        definition="a last stable offset that was shown is above that of a read that began later (session: of one process within one leader epoch)",
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
        definition="a read_committed read, or a claimed last stable offset, went beyond a record whose transaction was still being written",
    ),
    Anomaly(
        name="no_progress",
        rank=70,
        breaks="LIVE",
        definition="after the faults ended, a wait of the liveness phase never ended",
    ),
    Anomaly(
        name="int_send_skip",
        rank=90,
        breaks="IDEMP",
        definition="a record of another stands between two of one partition that one transaction sent one after the other",
        jepsen="int-send-skip",
        allowed="always: transactions of Kafka interleave; only counted (within one batch it is torn_batch)",
    ),
)

BY_NAME: dict[str, Anomaly] = {anomaly.name: anomaly for anomaly in ANOMALIES}


def first_by_rank(names: "set[str]") -> str | None:
    """The anomaly that names the trace: the lowest rank among `names`, the first in the alphabet among equals; None for an empty set."""
    return min(names, key=lambda name: (BY_NAME[name].rank, name), default=None)
