"""Anomalies of liveness: what did not come true, what happened without a cause, what was said too early.

Owns these rows of the table. Must not know the others.
"""

from fencepost.traces.anomalies.anomaly import Anomaly


def _row(name: str, definition: str, breaks: str = "LIVENESS", rank: int = 70) -> Anomaly:
    return Anomaly(name=name, rank=rank, breaks=breaks, definition=definition)


LIVENESS: tuple[Anomaly, ...] = (
    _row("session_lost", "a broker whose process ran lost its registration, and nothing explains it"),
    _row("no_controller", "for longer than an election takes there was no controller"),
    _row("controller_moved", "another broker became controller, and nothing explains it"),
    _row("late_stop", "a broker that was asked to stop ran on for longer than a controlled shutdown takes"),
    _row(
        "stopped_as_leader",
        "a broker that was asked to stop went as leader of a partition that another member of the ISR could "
        "have led",
    ),
    _row(
        "late_preferred_election",
        "a preferred replica was in the ISR for longer than the balance interval, and another one led",
    ),
    _row("late_reassignment", "a reassignment that was accepted did not complete within its bound"),
    _row("needless_truncation", "a replica cut its log long after the last election, or anything else"),
    _row(
        "record_of_another_time",
        "asked for the first record since a time, a broker named one that is older, or gave it another time "
        "than that of its append",
    ),
    _row(
        "record_skipped_by_time",
        "asked for the first record since a time, a broker named a later one than one it had acknowledged",
    ),
    _row(
        "wrong_epoch_end",
        "a leader named another epoch or another end than those of its log, asked where an epoch ends",
    ),
    _row("late_topic_deletion", "a deletion of a topic that was accepted was not done within its bound"),
    _row("late_topic_creation", "a partition that was created got no leader within its bound"),
    _row("late_topic_settings", "settings of a topic that one broker applied were not applied by another"),
    _row("partition_vanished", "a partition was gone, and nobody had asked for its deletion", rank=14),
    _row(
        "replica_deleted_early",
        "a broker deleted a replica that every assignment and every reassignment gives to it",
        rank=14,
    ),
    _row(
        "reassigned_out_of_sync",
        "an old replica was taken out of an assignment before all of the new ones were in the ISR",
        rank=14,
    ),
    _row("waited_for_no_answer", "a client waited for the answer to an append with acks=0, which has none"),
    _row(
        "late_delivery", "a record that was acknowledged did not reach the owner of its partition in a group"
    ),
    _row("late_marker", "a decided transaction had no marker in one of its partitions within the bound"),
    _row("late_completion", "a decided transaction was not complete within the bound"),
    _row(
        "completed_without_marker",
        "a coordinator said that a transaction was complete before each of its partitions had the marker",
        rank=30,
    ),
    _row("aborted_early", "a coordinator aborted a transaction whose time was not over, as timed out"),
    _row(
        "fenced_by_itself",
        "a static member was fenced by its group's coordinator although no other process has its instance",
        breaks="ONE-INSTANCE",
        rank=60,
    ),
    _row("broker_not_known", "a broker's Metadata did not name the brokers that are registered"),
    _row("stale_metadata", "a broker named another leader than the one that was decided, after the bound"),
    _row(
        "committed_record_missing",
        "a member of the ISR did not have what its leader had shown as committed",
        breaks="COMMIT-SAFE",
        rank=22,
    ),
    _row("directory_not_as_assigned", "a broker held other replicas than those that are assigned to it"),
    _row(
        "last_stable_offset_stuck", "no transaction was open, and readers of committed records were held up"
    ),
    _row("group_not_stable", "a group was in the middle of a rebalance, or gave a partition to two members"),
    _row("commit_not_served", "a coordinator served another offset than the last acknowledged commit"),
    _row("commit_not_stored", "a coordinator's log held another offset than the last acknowledged commit"),
    _row("replicas_differ", "two replicas had other records at the same committed offsets", rank=22),
    _row("decision_stands", "a coordinator was still at the same decided transaction after the bound"),
    _row(
        "last_stable_offset_stands",
        "readers of committed records were held up by one transaction for longer than any may be open",
    ),
    _row(
        "high_watermark_stands",
        "for longer than a stall may last, readers were shown an end that a committed append had passed",
    ),
    _row("consumer_starved", "polls went on to get nothing from where a committed record was"),
    _row("next_sequence_refused", "a broker refused the next sequence of a producer as out of order"),
    _row(
        "offsets_stay_unstable",
        "offsets of a group were refused as unstable for longer than any transaction may be open",
    ),
)
