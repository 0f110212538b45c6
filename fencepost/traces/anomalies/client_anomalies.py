"""Anomalies of consumers, producers, transactions and consumer groups, and of any history against a
sequential model.

Owns these rows of the table. Must not know the others.
"""

from fencepost.traces.anomalies.anomaly import Anomaly

CLIENTS: tuple[Anomaly, ...] = (
    Anomaly(
        name="torn_transaction",
        rank=46,
        breaks="TXN-ATOM",
        definition="readers of committed records were shown one record of a transaction and passed over "
        "another",
        allowed="where the claims allow loss",
    ),
    Anomaly(
        name="zombie_write",
        rank=46,
        breaks="EXACTLY-ONCE",
        definition="a record became visible that an epoch of a producer sent after a later epoch had begun a "
        "transaction",
        allowed="where the claims allow loss",
    ),
    Anomaly(
        name="output_twice",
        rank=47,
        breaks="EXACTLY-ONCE",
        definition="a record that was consumed in transactions has two visible records of output",
        implied_by=("zombie_write",),
        allowed="where the claims allow loss",
    ),
    Anomaly(
        name="output_without_commit",
        rank=47,
        breaks="EXACTLY-ONCE",
        definition="a record's output is visible, and no transaction can have committed the offset after it",
        implied_by=("torn_transaction",),
        allowed="where the claims allow loss",
    ),
    Anomaly(
        name="output_missing",
        rank=47,
        breaks="EXACTLY-ONCE",
        definition="a transaction committed the offset after a record, and no output of it is visible",
        implied_by=("torn_transaction",),
        allowed="where the claims allow loss",
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
        definition="a fetch that began after a commit was acknowledged returned what that commit had "
        "replaced",
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
        definition="no order of the commits, generations and fetches of one partition explains what was "
        "read back",
        implied_by=(
            "stale_commit_accepted",
            "committed_offset_lost",
        ),
    ),
    Anomaly(
        name="commit_sent_again",
        rank=30,
        breaks="OFFSET-SAFE",
        definition="a member sent a commit again although a later one, of a higher offset, was acknowledged "
        "already",
    ),
    Anomaly(
        name="position_regressed",
        rank=46,
        breaks="SESSION",
        definition="a process read from a lower offset than before within one leader epoch (session "
        "profile), or a consumer polled at or below its last poll",
        jepsen="nonmonotonic-poll",
        allowed="of consumers: between two assignments, as poll_skip; loss of what it read last (it starts "
        "again: at the first record, or "
        "where the loss began)",
    ),
    Anomaly(
        name="sequence_regressed",
        rank=47,
        breaks="IDEMP",
        definition="the epoch or the sequence numbers of an idempotent producer go back along a log",
    ),
    Anomaly(
        name="circular_reads",
        rank=46,
        breaks="TXN-ATOM",
        jepsen="G1c",
        definition="transactions read each other's records in a circle, though each is visible only after "
        "its commit",
    ),
    Anomaly(
        name="circular_reads_in_process",
        rank=46,
        breaks="TXN-ATOM",
        jepsen="G1c-process",
        definition="transactions read each other's records in a circle that the order of a process closes",
    ),
    Anomaly(
        name="circular_reads_in_real_time",
        rank=46,
        breaks="TXN-ATOM",
        jepsen="G1c-realtime",
        definition="transactions read each other's records in a circle that the order of time closes",
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
        definition="a record is at or below another of its partition that the same transaction sent before",
        jepsen="int-nonmonotonic-send",
        allowed="loss of its offsets",
    ),
    Anomaly(
        name="nonmonotonic_send",
        rank=49,
        breaks="IDEMP",
        definition="a record is at or below one that its process had sent earlier, with a known outcome",
        implied_by=("append_inversion",),
        jepsen="nonmonotonic-send",
        allowed="the claim duplicates; an unknown outcome or acks=0 without idempotence; acks=1 if its "
        "record was never read; loss of its "
        "offsets",
    ),
    Anomaly(
        name="not_linearizable",
        rank=50,
        breaks="LIN",
        definition="no order of the operations that keeps their real-time order is one that the sequential "
        "model allows",
    ),
    Anomaly(
        name="element_lost",
        rank=50,
        breaks="WORKLOAD",
        definition="an element of a workload was acknowledged, and nobody ever got it although the history "
        "ends with taking or reading everything",
    ),
    Anomaly(
        name="element_from_nowhere",
        rank=50,
        breaks="WORKLOAD",
        definition="an element came out that nobody may have put in by then",
    ),
    Anomaly(
        name="element_repeated",
        rank=50,
        breaks="WORKLOAD",
        definition="an element came out more often than it was put in",
        allowed="at-least-once delivery, unless the workload is asked with once=true",
    ),
    Anomaly(
        name="id_repeated",
        rank=50,
        breaks="WORKLOAD",
        definition="a generated id was given out twice",
    ),
    Anomaly(
        name="total_changed",
        rank=50,
        breaks="WORKLOAD",
        definition="a read of all accounts has another total than the transfers between them leave",
    ),
    Anomaly(
        name="value_regressed",
        rank=50,
        breaks="WORKLOAD",
        definition="a value that only grows was answered lower than it had been answered before",
    ),
    Anomaly(
        name="long_fork",
        rank=50,
        breaks="WORKLOAD",
        definition="two readers saw two writes in opposite orders",
    ),
    Anomaly(
        name="own_write_missed",
        rank=50,
        breaks="WORKLOAD",
        definition="a transaction read something else than it had itself written or read just before",
    ),
    Anomaly(
        name="failed_write_read",
        rank=50,
        breaks="WORKLOAD",
        definition="a transaction read what a transaction wrote that did not happen",
    ),
    Anomaly(
        name="intermediate_read",
        rank=50,
        breaks="WORKLOAD",
        definition="a transaction read what another one wrote and then wrote over",
    ),
    Anomaly(
        name="not_serializable",
        rank=50,
        breaks="WORKLOAD",
        definition="no order of whole transactions explains what they read",
    ),
    Anomaly(
        name="poll_skip",
        rank=51,
        breaks="SESSION",
        definition="a consumer continued polling beyond a record that is known to be "
        "where its last poll ended",
        implied_by=("lost_write",),
        jepsen="poll-skip",
        allowed="after assign elsewhere, after a join, after subscribe if rebalances are not recorded (then "
        "counted); loss, retention, compaction",
    ),
    Anomaly(
        name="unseen",
        rank=52,
        breaks="LIVE",
        definition="an acknowledged record (acks=all) was never polled, although a "
        "consumer sought the beginning after that and polled",
        implied_by=(
            "lost_write",
            "no_progress",
        ),
        jepsen="unseen",
        allowed="acks=0 and 1; loss, retention, compaction; without such a last look it is only counted, "
        "over time",
    ),
    Anomaly(
        name="reprocessed_after_commit",
        rank=61,
        breaks="OFFSET-SAFE",
        definition="a group got a record again although a commit beyond it was acknowledged before the "
        "member joined",
        implied_by=("committed_offset_lost",),
        allowed="without such a commit it is a fact with its cause: a crash, a rebalance",
    ),
    Anomaly(
        name="processing_gap",
        rank=62,
        breaks="OFFSET-SAFE",
        definition="a group got records beyond one that it never got, and no commit made before processing "
        "had passed that one",
        implied_by=("poll_skip",),
        allowed="a commit before processing, loss, retention and compaction explain a gap: then it is a "
        "fact with its cause",
    ),
    Anomaly(
        name="commit_beyond_position",
        rank=61,
        breaks="OFFSET-SAFE",
        definition="a member committed an offset beyond what polls had returned to it, and it does not "
        "commit before processing",
    ),
    Anomaly(
        name="assertion_failed",
        rank=80,
        breaks="SERVICE",
        definition="a service did not do what its test asserts of it; no promise of Kafka is broken by that",
    ),
    Anomaly(
        name="int_send_skip",
        rank=90,
        breaks="IDEMP",
        definition="another sender's record is between two records that one transaction "
        "sent to one partition one after the other",
        jepsen="int-send-skip",
        allowed="always: transactions of Kafka interleave; only counted (within one batch it is torn_batch)",
    ),
)
