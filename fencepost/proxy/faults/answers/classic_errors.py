"""The errors of producers', consumers' and classic members' requests.

Owns those rows. Must not know faults.
"""

from collections.abc import Mapping

from attrs import evolve

from fencepost.proxy.faults.answers.row import LEADER, MOVES, READ_IF, TXN_IF, WRITTEN, Condition, Row

ACKS_ALL = -1
TRANSACTIONAL = Condition(
    holds=lambda body: body.transactional_id is not None, says="with a transactional id"
)
IN_SESSION = Condition(since=7, holds=lambda body: body.session_id != 0, says="of a session")
BY_TOPIC_ID = Condition(since=13)
"""Produce and Fetch name topics by id (KIP-516). A broker whose cache of metadata is older than the topic
does not know the id, as it does not know the name of a new topic."""

CLIENTS: Mapping[str, Row] = {
    "Produce": Row(
        any_time=f"{LEADER} NOT_ENOUGH_REPLICAS UNKNOWN_TOPIC_ID CONCURRENT_TRANSACTIONS",
        after=f"{LEADER} NOT_ENOUGH_REPLICAS_AFTER_APPEND REQUEST_TIMED_OUT",
        only_if="CORRUPT_MESSAGE MESSAGE_TOO_LARGE INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE"
        " INVALID_REQUIRED_ACKS TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_RECORD"
        " INVALID_TIMESTAMP UNSUPPORTED_COMPRESSION_TYPE INVALID_REQUEST"
        " UNSUPPORTED_FOR_MESSAGE_FORMAT OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER"
        f" UNKNOWN_PRODUCER_ID {TXN_IF}",
        source="after the effect: DelayedProduce.tryComplete and onExpiration,"
        " Partition.checkEnoughReplicasReachOffset; CONCURRENT_TRANSACTIONS: the markers of the transaction"
        " before are not written yet (KIP-890, ReplicaManager.handleProduceAppend)",
        effect=True,
        when={
            "UNKNOWN_TOPIC_ID": BY_TOPIC_ID,
            "KAFKA_STORAGE_ERROR": Condition(since=4),
            "CONCURRENT_TRANSACTIONS": evolve(TRANSACTIONAL, since=12),
        },
        after_when=Condition(holds=lambda body: body.acks == ACKS_ALL, says="with acks=all"),
    ),
    "Fetch": Row(
        any_time=f"{LEADER} UNKNOWN_TOPIC_ID OFFSET_NOT_AVAILABLE"
        " FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH",
        only_if=f"OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE UNSUPPORTED_COMPRESSION_TYPE REPLICA_NOT_AVAILABLE"
        f" INCONSISTENT_TOPIC_ID FETCH_SESSION_TOPIC_ID_ERROR {READ_IF}"
        " OFFSET_MOVED_TO_TIERED_STORAGE",
        source="OFFSET_NOT_AVAILABLE: a follower that is behind (KIP-392); sessions: KIP-227, a broker may"
        " evict any at any time",
        when={
            "UNKNOWN_TOPIC_ID": BY_TOPIC_ID,
            "KAFKA_STORAGE_ERROR": Condition(since=6),
            "OFFSET_NOT_AVAILABLE": Condition(since=11),
            "FETCH_SESSION_ID_NOT_FOUND": IN_SESSION,
            "INVALID_FETCH_SESSION_EPOCH": IN_SESSION,
        },
    ),
    "ListOffsets": Row(
        any_time=f"{LEADER} LEADER_NOT_AVAILABLE OFFSET_NOT_AVAILABLE",
        only_if=f"UNSUPPORTED_FOR_MESSAGE_FORMAT REPLICA_NOT_AVAILABLE {READ_IF} INVALID_REQUEST"
        " UNSUPPORTED_VERSION REQUEST_TIMED_OUT",
        source="LEADER_NOT_AVAILABLE, OFFSET_NOT_AVAILABLE: KIP-207; REQUEST_TIMED_OUT: of a tiered log"
        " (KIP-1075)",
        when={"LEADER_NOT_AVAILABLE": Condition(until=4), "OFFSET_NOT_AVAILABLE": Condition(since=5)},
    ),
    "OffsetForLeaderEpoch": Row(any_time=LEADER, only_if=f"REPLICA_NOT_AVAILABLE {READ_IF}"),
    "Metadata": Row(
        any_time="UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE LISTENER_NOT_FOUND",
        only_if="INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_ID REPLICA_NOT_AVAILABLE"
        " INVALID_REQUEST REBOOTSTRAP_REQUIRED",
        source="KafkaApis.handleTopicMetadataRequest, KRaftMetadataCache.getPartitionMetadata; a broker"
        " answers from a cache that is older than the state of the controller, also for topics that exist;"
        " REBOOTSTRAP_REQUIRED: KIP-1102",
        when={"LISTENER_NOT_FOUND": Condition(since=6)},
    ),
    "FindCoordinator": Row(
        any_time="COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS",
        only_if="GROUP_AUTHORIZATION_FAILED INVALID_REQUEST TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
        " TRANSACTION_ABORTABLE",
    ),
    "JoinGroup": Row(
        any_time=MOVES,
        after="COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR REBALANCE_IN_PROGRESS",
        only_if="UNKNOWN_MEMBER_ID MEMBER_ID_REQUIRED INCONSISTENT_GROUP_PROTOCOL INVALID_SESSION_TIMEOUT"
        " INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID",
        source="GroupCoordinator.handleJoinGroup; after: GroupMetadataManager.storeGroup",
        effect=True,
    ),
    "SyncGroup": Row(
        any_time="NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE REBALANCE_IN_PROGRESS",
        after="COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR REBALANCE_IN_PROGRESS",
        only_if="UNKNOWN_MEMBER_ID ILLEGAL_GENERATION INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID"
        " GROUP_AUTHORIZATION_FAILED FENCED_INSTANCE_ID COORDINATOR_LOAD_IN_PROGRESS",
        source="GroupCoordinator.doSyncGroup; a coordinator that loads lets members join again (KIP-848's"
        " answers COORDINATOR_LOAD_IN_PROGRESS, which Kafka's own consumers do not expect here); after:"
        " GroupMetadataManager.storeGroup",
        effect=True,
    ),
    "Heartbeat": Row(
        any_time="NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE REBALANCE_IN_PROGRESS",
        after=WRITTEN,
        only_if="UNKNOWN_MEMBER_ID ILLEGAL_GENERATION INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED"
        " FENCED_INSTANCE_ID",
        source="GroupCoordinator.handleHeartbeat; a coordinator that loads answers a heartbeat with success;"
        " after: KIP-848's coordinator answers when what was written before is replicated",
        effect=True,
    ),
    "LeaveGroup": Row(
        any_time=MOVES,
        after=WRITTEN,
        only_if="UNKNOWN_MEMBER_ID INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED FENCED_INSTANCE_ID",
        effect=True,
    ),
    "OffsetCommit": Row(
        any_time=f"{MOVES} REBALANCE_IN_PROGRESS UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID",
        after="COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR REQUEST_TIMED_OUT",
        only_if="UNKNOWN_MEMBER_ID ILLEGAL_GENERATION OFFSET_METADATA_TOO_LARGE INVALID_COMMIT_OFFSET_SIZE"
        " INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED GROUP_ID_NOT_FOUND"
        " STALE_MEMBER_EPOCH FENCED_MEMBER_EPOCH FENCED_INSTANCE_ID INVALID_PRODUCER_ID_MAPPING"
        " INVALID_TXN_STATE UNSUPPORTED_VERSION",
        source="after: GroupMetadataManager.storeOffsets maps errors of its append; UNSUPPORTED_VERSION: a"
        " consumer of KIP-848 that commits by version 8",
        when={"UNKNOWN_TOPIC_ID": Condition(since=10)},
        effect=True,
    ),
    "OffsetFetch": Row(
        any_time=f"{MOVES} UNSTABLE_OFFSET_COMMIT UNKNOWN_TOPIC_ID",
        only_if="UNKNOWN_TOPIC_OR_PARTITION GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED"
        " INVALID_GROUP_ID UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH GROUP_ID_NOT_FOUND",
        source="UNSTABLE_OFFSET_COMMIT: KIP-447",
        when={
            "UNSTABLE_OFFSET_COMMIT": Condition(
                since=7, holds=lambda body: body.require_stable, says="that asks for stable offsets"
            ),
            "UNKNOWN_TOPIC_ID": Condition(since=10),
        },
    ),
    "InitProducerId": Row(
        any_time=f"{MOVES} CONCURRENT_TRANSACTIONS",
        after=WRITTEN,
        only_if=TXN_IF + " CLUSTER_AUTHORIZATION_FAILED INVALID_TRANSACTION_TIMEOUT INVALID_REQUEST"
        " UNSUPPORTED_VERSION",
        source="TransactionCoordinator.handleInitProducerId; without a transactional id there is no"
        " coordinator, and a broker may wait for producer ids (KIP-730); UNSUPPORTED_VERSION: KIP-939",
        effect=True,
        when=dict.fromkeys(
            ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "CONCURRENT_TRANSACTIONS"), TRANSACTIONAL
        ),
        after_when=TRANSACTIONAL,
    ),
    "AddPartitionsToTxn": Row(
        any_time=f"{MOVES} CONCURRENT_TRANSACTIONS UNKNOWN_TOPIC_OR_PARTITION",
        after=WRITTEN,
        only_if=f"{TXN_IF} TOPIC_AUTHORIZATION_FAILED OPERATION_NOT_ATTEMPTED INVALID_REQUEST",
        source="TransactionCoordinator.handleAddPartitionsToTransaction",
        effect=True,
    ),
    "AddOffsetsToTxn": Row(
        any_time=f"{MOVES} CONCURRENT_TRANSACTIONS",
        after=WRITTEN,
        only_if=f"{TXN_IF} GROUP_AUTHORIZATION_FAILED INVALID_REQUEST",
        effect=True,
    ),
    "EndTxn": Row(
        any_time=f"{MOVES} CONCURRENT_TRANSACTIONS",
        after="COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR CONCURRENT_TRANSACTIONS",
        only_if=f"{TXN_IF} INVALID_REQUEST",
        source="after: TransactionStateManager.appendTransactionToLog maps errors of its append",
        effect=True,
    ),
    "TxnOffsetCommit": Row(
        any_time=f"{MOVES} UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID CONCURRENT_TRANSACTIONS",
        after="COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR REQUEST_TIMED_OUT",
        only_if=f"{TXN_IF} OFFSET_METADATA_TOO_LARGE GROUP_AUTHORIZATION_FAILED INVALID_COMMIT_OFFSET_SIZE"
        " UNSUPPORTED_FOR_MESSAGE_FORMAT UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID ILLEGAL_GENERATION"
        " INVALID_GROUP_ID TOPIC_AUTHORIZATION_FAILED GROUP_ID_NOT_FOUND STALE_MEMBER_EPOCH",
        source="CONCURRENT_TRANSACTIONS: the markers of the transaction before are not written yet (KIP-890);"
        " topic ids: KIP-1319; COORDINATOR_LOAD_IN_PROGRESS: KAFKA-7296",
        effect=True,
        when={
            "COORDINATOR_LOAD_IN_PROGRESS": Condition(since=2),
            "CONCURRENT_TRANSACTIONS": Condition(since=5),
            "UNKNOWN_TOPIC_ID": Condition(since=6),
        },
    ),
    "ApiVersions": Row(
        only_if="UNSUPPORTED_VERSION INVALID_REQUEST REBOOTSTRAP_REQUIRED",
        source="INVALID_REQUEST: KIP-511; REBOOTSTRAP_REQUIRED: KIP-1242",
    ),
    "SaslHandshake": Row(only_if="UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE"),
    "SaslAuthenticate": Row(only_if="SASL_AUTHENTICATION_FAILED ILLEGAL_SASL_STATE"),
    "DescribeTopicPartitions": Row(
        any_time="UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE LISTENER_NOT_FOUND",
        only_if="INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED INVALID_REQUEST",
        source="KIP-966; as Metadata",
    ),
}
