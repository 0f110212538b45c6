"""Anomalies of the control plane: who is in the ISR, who is assigned, and what is left of a deleted topic.

Owns these rows of the table. Must not know the others.
"""

from fencepost.traces.anomalies.anomaly import Anomaly

CONTROL: tuple[Anomaly, ...] = (
    Anomaly(
        name="earlier_incarnation_obeyed",
        rank=11,
        breaks="INCARNATION",
        definition="a broker, or a controller, acted on a request for an incarnation of a broker that it "
        "knew to be gone",
    ),
    Anomaly(
        name="empty_isr",
        rank=12,
        breaks="ISR-NONEMPTY",
        definition="a partition's state with an empty ISR was written to ZooKeeper",
    ),
    Anomaly(
        name="isr_disagrees",
        rank=12,
        breaks="ISR-AGREE",
        definition="a leader goes by an ISR that lacks a member of ZooKeeper's, in the same leader epoch",
    ),
    Anomaly(
        name="isr_outside_assignment",
        rank=13,
        breaks="ISR-IN-AR",
        definition="the ISR holds a broker that is not among the partition's assigned replicas",
    ),
    Anomaly(
        name="stopping_member_joined_isr",
        rank=13,
        breaks="STOP-SAFE",
        definition="a leader proposed a broker for the ISR although it knew that the broker is gone or "
        "about to stop",
    ),
    Anomaly(
        name="dead_member_left_in_isr",
        rank=13,
        breaks="ISR-ALIVE",
        definition="a controller has taken over, and an ISR still holds a broker that was gone before it "
        "was elected",
    ),
    Anomaly(
        name="isr_member_deleted",
        rank=14,
        breaks="COMMIT-SAFE",
        definition="a broker deleted its replica while it was in the ISR, and its topic was not to be "
        "deleted",
    ),
    Anomaly(
        name="stale_reassignment",
        rank=14,
        breaks="ASSIGN",
        definition="a controller changed a partition's replicas to an assignment that was not requested in "
        "its reign",
    ),
    Anomaly(
        name="reassignment_forgotten",
        rank=14,
        breaks="ASSIGN",
        definition="a controller took out the request of a reassignment that was neither done nor refused",
    ),
    Anomaly(
        name="assigned_replica_deleted",
        rank=15,
        breaks="COMMIT-SAFE",
        definition="a broker deleted a replica that is assigned to it, and that neither a reassignment nor "
        "a deletion takes away",
    ),
    Anomaly(
        name="leader_epoch_repeated",
        rank=16,
        breaks="EPOCH-MONO",
        definition="a broker took a role a second time in one leader epoch, without a restart in between",
    ),
    Anomaly(
        name="deleted_topic_left_behind",
        rank=29,
        breaks="DEL-COMPLETE",
        definition="at the end of the run a broker holds a replica of a topic whose deletion was completed",
    ),
    Anomaly(
        name="unclean_election",
        rank=15,
        breaks="JUSTIFIED",
        definition="a controller elected a leader from outside of the ISR although the topic does not "
        "allow it, or a member of the ISR was "
        "healthy",
    ),
    Anomaly(
        name="needless_election",
        rank=70,
        breaks="JUSTIFIED",
        definition="a controller took a leader away, or raised its epoch, without any reason on record",
    ),
    Anomaly(
        name="needless_removal",
        rank=70,
        breaks="JUSTIFIED",
        definition="a controller took a broker out of an ISR that was neither gone, nor stopping, nor moved "
        "away",
    ),
    Anomaly(
        name="needless_shrink",
        rank=70,
        breaks="JUSTIFIED",
        definition="a leader took a follower out of its ISR sooner than it can have lagged for "
        "replica.lag.time.max.ms",
    ),
    Anomaly(
        name="idle_isr_change",
        rank=70,
        breaks="JUSTIFIED",
        definition="a leader proposed an ISR that is not smaller than its own as a shrink, or not larger as "
        "an expansion",
    ),
    Anomaly(
        name="stopping_member_left_in_isr",
        rank=13,
        breaks="STOP-SAFE",
        definition="a controller answered a broker that stops, and left it in an ISR that has other members "
        "and another leader",
    ),
    Anomaly(
        name="late_decision",
        rank=70,
        breaks="LIVENESS",
        definition="nothing was broken since a state was written, and after the bound a broker did not "
        "know it, or had no role in "
        "it",
    ),
    Anomaly(
        name="late_removal",
        rank=70,
        breaks="LIVENESS",
        definition="nothing else was broken for longer than it takes, and a broker that was gone was in an "
        "ISR that another one led",
    ),
    Anomaly(
        name="stale_checkpoint",
        rank=70,
        breaks="HW-KEPT",
        definition="a broker started with a lower high watermark than it had an interval of checkpoints "
        "before its end",
    ),
    Anomaly(
        name="needless_failure",
        rank=70,
        breaks="JUSTIFIED",
        definition="a client gave an operation up before delivery.timeout.ms, for an error that another "
        "attempt might not have got, or went on after it",
    ),
    Anomaly(
        name="needless_refusal",
        rank=70,
        breaks="JUSTIFIED",
        definition="a member of a group was refused with an error that no step of the protocol explains, in "
        "calm",
    ),
    Anomaly(
        name="misplaced_group",
        rank=70,
        breaks="PLACED",
        definition="a coordinator served a group or a transactional id in another partition than the hash of "
        "its name says",
    ),
    Anomaly(
        name="early_deletion",
        rank=14,
        breaks="RETENTION",
        definition="retention deleted a record that was younger than retention.ms, of a topic without "
        "another bound",
    ),
    Anomaly(
        name="late_deletion",
        rank=70,
        breaks="RETENTION",
        definition="a log still held records two checks of retention after all of them were older than "
        "retention.ms, on a broker that nothing was wrong with",
    ),
    Anomaly(
        name="needless_retry",
        rank=70,
        breaks="JUSTIFIED",
        definition="a client's operation was sent again, or failed, although nothing was broken and nobody "
        "asked for anything since the same client was served at that partition",
    ),
    Anomaly(
        name="needless_timeout",
        rank=70,
        breaks="JUSTIFIED",
        definition="a client or a consumer waited in vain for an answer although nothing was broken and "
        "every broker ran",
    ),
    Anomaly(
        name="missing_commit",
        rank=70,
        breaks="LIVENESS",
        definition="a consumer did not commit what its poll returned when its mode says so, and nothing was "
        "broken",
    ),
    Anomaly(
        name="needless_reprocessing",
        rank=70,
        breaks="JUSTIFIED",
        definition="a group got a record again although the member that had got it commits before it gives a "
        "partition up, and nothing was broken",
    ),
    Anomaly(
        name="latest_value_lost",
        rank=14,
        breaks="COMPACTION",
        definition="the last record of a key, acknowledged, was in no dump of a log that begins before it "
        "and ends after it",
    ),
    Anomaly(
        name="slow_commit",
        rank=70,
        breaks="LIVENESS",
        definition="nothing was broken for longer than it takes, and a leader did not commit what it had "
        "appended",
    ),
    Anomaly(
        name="needless_rebalance",
        rank=70,
        breaks="JUSTIFIED",
        definition="a group rebalanced although nothing was broken and no consumer had come, stopped or left",
    ),
    Anomaly(
        name="slow_rebalance",
        rank=70,
        breaks="LIVENESS",
        definition="nothing was broken, and members took longer to join a rebalance than it takes to learn "
        "of "
        "it",
    ),
    Anomaly(
        name="slow_registration",
        rank=70,
        breaks="LIVENESS",
        definition="nothing was broken for longer than it takes, and a broker was not registered",
    ),
    Anomaly(
        name="slow_election",
        rank=70,
        breaks="LIVENESS",
        definition="nothing was broken for longer than it takes, and a partition's leader did not lead",
    ),
    Anomaly(
        name="slow_recovery",
        rank=70,
        breaks="LIVENESS",
        definition="nothing was broken for longer than it takes, and a replica was not in the ISR",
    ),
    Anomaly(
        name="deletion_incomplete",
        rank=69,
        breaks="DEL-COMPLETE",
        definition="after the faults ended, the deletion of a topic never did, or its request went before "
        "the topic",
    ),
    Anomaly(
        name="reassignment_incomplete",
        rank=69,
        breaks="ASSIGN",
        definition="after the faults ended, a requested reassignment never did",
    ),
)
