"""The errors of administrative requests.

Owns those rows. Must not know faults.
"""

from collections.abc import Mapping

from fencepost.proxy.faults.answers.row import ADMIN_IF, LEADER, MOVES, WRITTEN, Row

CONFIG_IF = f"UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION {ADMIN_IF}"

ADMINISTRATION: Mapping[str, Row] = {
    "CreateTopics": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT THROTTLING_QUOTA_EXCEEDED",
        after="REQUEST_TIMED_OUT",
        only_if="TOPIC_ALREADY_EXISTS INVALID_TOPIC_EXCEPTION INVALID_PARTITIONS INVALID_REPLICATION_FACTOR"
        f" INVALID_REPLICA_ASSIGNMENT INVALID_CONFIG {ADMIN_IF}",
        effect=True,
    ),
    "DeleteTopics": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT THROTTLING_QUOTA_EXCEEDED",
        after="REQUEST_TIMED_OUT",
        only_if="INVALID_TOPIC_EXCEPTION TOPIC_DELETION_DISABLED UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID"
        f" UNSUPPORTED_VERSION {ADMIN_IF}",
        effect=True,
    ),
    "CreatePartitions": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT THROTTLING_QUOTA_EXCEEDED",
        after="REQUEST_TIMED_OUT",
        only_if=f"INVALID_PARTITIONS UNKNOWN_TOPIC_OR_PARTITION INVALID_REPLICA_ASSIGNMENT {ADMIN_IF}",
        effect=True,
    ),
    "DeleteRecords": Row(
        any_time=LEADER,
        after=f"REQUEST_TIMED_OUT {LEADER}",
        only_if="OFFSET_OUT_OF_RANGE INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED POLICY_VIOLATION",
        effect=True,
    ),
    "DescribeGroups": Row(
        any_time=MOVES, only_if="GROUP_AUTHORIZATION_FAILED GROUP_ID_NOT_FOUND INVALID_GROUP_ID"
    ),
    "ListGroups": Row(any_time="COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS"),
    "DeleteGroups": Row(
        any_time=MOVES,
        after=WRITTEN,
        only_if="INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED NON_EMPTY_GROUP GROUP_ID_NOT_FOUND"
        " GROUP_DELETION_FAILED",
        effect=True,
    ),
    "OffsetDelete": Row(
        any_time=MOVES,
        after=WRITTEN,
        only_if="GROUP_SUBSCRIBED_TO_TOPIC TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION"
        " GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID GROUP_ID_NOT_FOUND NON_EMPTY_GROUP",
        effect=True,
    ),
    "DescribeLogDirs": Row(any_time="KAFKA_STORAGE_ERROR", only_if="CLUSTER_AUTHORIZATION_FAILED"),
    "DescribeProducers": Row(
        any_time="NOT_LEADER_OR_FOLLOWER",
        only_if="UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED",
    ),
    "DescribeTransactions": Row(
        any_time=MOVES,
        only_if="TRANSACTIONAL_ID_NOT_FOUND TRANSACTIONAL_ID_AUTHORIZATION_FAILED INVALID_REQUEST",
    ),
    "ListTransactions": Row(
        any_time="COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS",
        only_if="INVALID_REGULAR_EXPRESSION",
        source="INVALID_REGULAR_EXPRESSION: KIP-1152",
    ),
    "DescribeCluster": Row(
        only_if="CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_ENDPOINT_TYPE MISMATCHED_ENDPOINT_TYPE"
    ),
    "DescribeConfigs": Row(only_if=CONFIG_IF),
    "AlterConfigs": Row(any_time="NOT_CONTROLLER", only_if=f"INVALID_CONFIG {CONFIG_IF}", effect=True),
    "IncrementalAlterConfigs": Row(
        any_time="NOT_CONTROLLER", only_if=f"INVALID_CONFIG {CONFIG_IF}", effect=True
    ),
    "ElectLeaders": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT",
        after="REQUEST_TIMED_OUT",
        only_if="PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED"
        " UNKNOWN_TOPIC_OR_PARTITION CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST",
        effect=True,
    ),
    "AlterPartitionReassignments": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT",
        after="REQUEST_TIMED_OUT",
        only_if="NO_REASSIGNMENT_IN_PROGRESS INVALID_REPLICA_ASSIGNMENT UNKNOWN_TOPIC_OR_PARTITION"
        " CLUSTER_AUTHORIZATION_FAILED",
        effect=True,
    ),
    "ListPartitionReassignments": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT", only_if="CLUSTER_AUTHORIZATION_FAILED"
    ),
    "UpdateFeatures": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT",
        after="REQUEST_TIMED_OUT",
        only_if="CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST FEATURE_UPDATE_FAILED",
        effect=True,
    ),
    "AlterReplicaLogDirs": Row(
        any_time="KAFKA_STORAGE_ERROR",
        only_if="LOG_DIR_NOT_FOUND REPLICA_NOT_AVAILABLE CLUSTER_AUTHORIZATION_FAILED INVALID_TOPIC_EXCEPTION"
        " INVALID_REPLICA_ASSIGNMENT",
        effect=True,
    ),
    "DescribeQuorum": Row(
        any_time="NOT_LEADER_OR_FOLLOWER BROKER_NOT_AVAILABLE",
        only_if="CLUSTER_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION",
    ),
}
