"""What a correct broker may answer: for each API, the errors of its answers, and when they may come.

Owns the table, and whether a fault is within it. Must not know how a fault is carried out.

Sources, per row: Kafka's source (trunk of October 2024, between 3.9 and 4.0), the list "Possible error codes"
of the class `API`Response in clients/.../common/requests, the lists in clients/.../common/message/`API`
Response.json, and for what has no list the code named in the row. Three columns:

- at any time: a broker may answer it whatever the state of its log or group is, because of something that the
  client cannot see (a leader moved, a disk failed, a coordinator loads). The request had no effect.
- after the effect: it may come although the request took effect.
- only if: true only in a state that a fault at the level of requests does not bring about. Answered without
  it, a correct client may lose records by it (OFFSET_OUT_OF_RANGE resets a position), so that a fault that
  answers it is illegal.

UNKNOWN_SERVER_ERROR is what KafkaApis.handleError makes of any exception, before the effect or after it.
"""

from collections.abc import Iterator, Mapping

from attrs import field, frozen

from fencepost.proxy.faults.fault import RequestFault
from fencepost.proxy.faults.verbs import ANY, ILLEGAL_SHAPES, VERBS
from fencepost.traces.errors import PlanError
from fencepost.wire.names import asks_for_retry, error_names

EVERYWHERE = ("UNKNOWN_SERVER_ERROR",)
"""Any request, at any time, and after the effect of what has one."""
MOVES = "NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS"
"""What every request to a coordinator may be answered: GroupCoordinator.validateGroupStatus."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@frozen(kw_only=True)
class Row:
    """The errors of one API."""

    any_time: tuple[str, ...] = field(default="", converter=_words)
    after: tuple[str, ...] = field(default="", converter=_words)
    only_if: tuple[str, ...] = field(default="", converter=_words)
    source: str = ""
    """Beyond the class of its response."""
    effect: bool = False
    """Whether the request changes anything."""


_LEADER = "NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION KAFKA_STORAGE_ERROR"
_READ_IF = "TOPIC_AUTHORIZATION_FAILED FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH"
_TXN_IF = (
    "INVALID_TXN_STATE INVALID_PRODUCER_ID_MAPPING INVALID_PRODUCER_EPOCH PRODUCER_FENCED"
    " TRANSACTIONAL_ID_AUTHORIZATION_FAILED TRANSACTION_ABORTABLE"
)
_ADMIN_IF = "TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST POLICY_VIOLATION"

ALLOWED: Mapping[str, Row] = {
    "Produce": Row(
        any_time=f"{_LEADER} NOT_ENOUGH_REPLICAS",
        after=f"{_LEADER} NOT_ENOUGH_REPLICAS_AFTER_APPEND REQUEST_TIMED_OUT",
        only_if="CORRUPT_MESSAGE MESSAGE_TOO_LARGE INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE"
        " INVALID_REQUIRED_ACKS TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_RECORD"
        " UNSUPPORTED_FOR_MESSAGE_FORMAT OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER"
        f" UNKNOWN_PRODUCER_ID {_TXN_IF}",
        source="after the effect: DelayedProduce.tryComplete and onExpiration,"
        " Partition.checkEnoughReplicasReachOffset; acks=all only",
        effect=True,
    ),
    "Fetch": Row(
        any_time=f"{_LEADER} OFFSET_NOT_AVAILABLE FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH",
        only_if=f"OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE UNSUPPORTED_COMPRESSION_TYPE REPLICA_NOT_AVAILABLE"
        f" UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID FETCH_SESSION_TOPIC_ID_ERROR {_READ_IF}"
        " OFFSET_MOVED_TO_TIERED_STORAGE",
        source="OFFSET_NOT_AVAILABLE: KIP-207; sessions: KIP-227, a broker may evict any at any time",
    ),
    "ListOffsets": Row(
        any_time=f"{_LEADER} LEADER_NOT_AVAILABLE OFFSET_NOT_AVAILABLE",
        only_if=f"UNSUPPORTED_FOR_MESSAGE_FORMAT REPLICA_NOT_AVAILABLE {_READ_IF}",
        source="LEADER_NOT_AVAILABLE up to version 4, OFFSET_NOT_AVAILABLE from 5 on (KIP-207)",
    ),
    "OffsetForLeaderEpoch": Row(
        any_time=_LEADER,
        only_if=f"REPLICA_NOT_AVAILABLE {_READ_IF}",
        source="OffsetsForLeaderEpochResponse",
    ),
    "Metadata": Row(
        any_time="UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE LISTENER_NOT_FOUND",
        only_if="INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_ID REPLICA_NOT_AVAILABLE",
        source="KafkaApis.handleTopicMetadataRequest, KRaftMetadataCache.getPartitionMetadata; a broker "
        "answers"
        " from a cache that is older than the state of the controller, also for topics that exist",
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
        " GROUP_AUTHORIZATION_FAILED FENCED_INSTANCE_ID",
        source="GroupCoordinator.doSyncGroup; a coordinator that loads lets members join again; after:"
        " GroupMetadataManager.storeGroup",
        effect=True,
    ),
    "Heartbeat": Row(
        any_time="NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE REBALANCE_IN_PROGRESS",
        only_if="UNKNOWN_MEMBER_ID ILLEGAL_GENERATION INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED"
        " FENCED_INSTANCE_ID",
        source="GroupCoordinator.handleHeartbeat; a coordinator that loads answers a heartbeat with success",
        effect=True,
    ),
    "LeaveGroup": Row(
        any_time=MOVES,
        only_if="UNKNOWN_MEMBER_ID INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED FENCED_INSTANCE_ID",
        effect=True,
    ),
    "OffsetCommit": Row(
        any_time=f"{MOVES} REBALANCE_IN_PROGRESS UNKNOWN_TOPIC_OR_PARTITION",
        after="COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR REQUEST_TIMED_OUT",
        only_if="UNKNOWN_MEMBER_ID ILLEGAL_GENERATION OFFSET_METADATA_TOO_LARGE INVALID_COMMIT_OFFSET_SIZE"
        " INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED GROUP_ID_NOT_FOUND"
        " STALE_MEMBER_EPOCH FENCED_MEMBER_EPOCH FENCED_INSTANCE_ID",
        source="after: GroupMetadataManager.storeOffsets maps errors of its append",
        effect=True,
    ),
    "OffsetFetch": Row(
        any_time=f"{MOVES} UNSTABLE_OFFSET_COMMIT",
        only_if="UNKNOWN_TOPIC_OR_PARTITION GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED"
        " INVALID_GROUP_ID UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH GROUP_ID_NOT_FOUND",
        source="UNSTABLE_OFFSET_COMMIT from version 7 on, if the request asks for stable offsets (KIP-447)",
    ),
    "InitProducerId": Row(
        any_time=f"{MOVES} CONCURRENT_TRANSACTIONS",
        only_if=_TXN_IF + " CLUSTER_AUTHORIZATION_FAILED INVALID_TRANSACTION_TIMEOUT",
        source="TransactionCoordinator.handleInitProducerId",
        effect=True,
    ),
    "AddPartitionsToTxn": Row(
        any_time=f"{MOVES} CONCURRENT_TRANSACTIONS UNKNOWN_TOPIC_OR_PARTITION",
        only_if=f"{_TXN_IF} TOPIC_AUTHORIZATION_FAILED OPERATION_NOT_ATTEMPTED",
        source="TransactionCoordinator.handleAddPartitionsToTransaction",
        effect=True,
    ),
    "AddOffsetsToTxn": Row(
        any_time=f"{MOVES} CONCURRENT_TRANSACTIONS",
        only_if=f"{_TXN_IF} GROUP_AUTHORIZATION_FAILED",
        effect=True,
    ),
    "EndTxn": Row(
        any_time=f"{MOVES} CONCURRENT_TRANSACTIONS",
        after="COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR CONCURRENT_TRANSACTIONS",
        only_if=_TXN_IF,
        source="after: TransactionStateManager.appendTransactionToLog maps errors of its append",
        effect=True,
    ),
    "TxnOffsetCommit": Row(
        any_time=f"{MOVES} UNKNOWN_TOPIC_OR_PARTITION",
        after="COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR REQUEST_TIMED_OUT",
        only_if=f"{_TXN_IF} OFFSET_METADATA_TOO_LARGE GROUP_AUTHORIZATION_FAILED INVALID_COMMIT_OFFSET_SIZE"
        " UNSUPPORTED_FOR_MESSAGE_FORMAT UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID ILLEGAL_GENERATION",
        effect=True,
    ),
    "CreateTopics": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT THROTTLING_QUOTA_EXCEEDED",
        after="REQUEST_TIMED_OUT",
        only_if="TOPIC_ALREADY_EXISTS INVALID_TOPIC_EXCEPTION INVALID_PARTITIONS INVALID_REPLICATION_FACTOR"
        f" INVALID_REPLICA_ASSIGNMENT INVALID_CONFIG {_ADMIN_IF}",
        effect=True,
    ),
    "DeleteTopics": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT THROTTLING_QUOTA_EXCEEDED",
        after="REQUEST_TIMED_OUT",
        only_if="INVALID_TOPIC_EXCEPTION TOPIC_DELETION_DISABLED UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID"
        f" {_ADMIN_IF}",
        effect=True,
    ),
    "CreatePartitions": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT THROTTLING_QUOTA_EXCEEDED",
        after="REQUEST_TIMED_OUT",
        only_if=f"INVALID_PARTITIONS UNKNOWN_TOPIC_OR_PARTITION INVALID_REPLICA_ASSIGNMENT {_ADMIN_IF}",
        effect=True,
    ),
    "DeleteRecords": Row(
        any_time="NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION",
        after="REQUEST_TIMED_OUT NOT_LEADER_OR_FOLLOWER",
        only_if="OFFSET_OUT_OF_RANGE TOPIC_AUTHORIZATION_FAILED POLICY_VIOLATION",
        effect=True,
    ),
    "DescribeGroups": Row(any_time=MOVES, only_if="GROUP_AUTHORIZATION_FAILED GROUP_ID_NOT_FOUND"),
    "ListGroups": Row(any_time="COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS"),
    "DeleteGroups": Row(
        any_time=MOVES,
        only_if="INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED NON_EMPTY_GROUP GROUP_ID_NOT_FOUND",
        effect=True,
    ),
    "OffsetDelete": Row(
        any_time=MOVES,
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
        any_time=MOVES, only_if="TRANSACTIONAL_ID_NOT_FOUND TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    ),
    "ListTransactions": Row(any_time="COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS"),
    "DescribeCluster": Row(only_if="CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_ENDPOINT_TYPE"),
    "DescribeConfigs": Row(only_if=f"UNKNOWN_TOPIC_OR_PARTITION {_ADMIN_IF}"),
    "AlterConfigs": Row(any_time="NOT_CONTROLLER", only_if=f"INVALID_CONFIG {_ADMIN_IF}", effect=True),
    "IncrementalAlterConfigs": Row(
        any_time="NOT_CONTROLLER", only_if=f"INVALID_CONFIG {_ADMIN_IF}", effect=True
    ),
    "ElectLeaders": Row(
        any_time="NOT_CONTROLLER REQUEST_TIMED_OUT",
        after="REQUEST_TIMED_OUT",
        only_if="PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED"
        " UNKNOWN_TOPIC_OR_PARTITION CLUSTER_AUTHORIZATION_FAILED",
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
}
"""Of an API that is not here nothing is known: every error but those of EVERYWHERE is illegal."""


def rows() -> Iterator[tuple[str, str, str, bool]]:
    """API, error, column (at any time, after the effect, only if), whether clients try again."""
    for api, row in ALLOWED.items():
        for column, errors in (
            ("at any time", (*row.any_time, *EVERYWHERE)),
            ("after the effect", (*row.after, *(EVERYWHERE if row.effect else ()))),
            ("only if", row.only_if),
        ):
            for error in errors:
                yield api, error, column, asks_for_retry(error)


def may_answer(api: str, *, after_effect: bool) -> tuple[str, ...]:
    """The errors that a correct broker may answer to a request at this moment, whatever its state.

    Args:
        api: Kafka's name of the request.
        after_effect: whether the request was carried out.
    """
    row = ALLOWED.get(api, Row())
    if after_effect:
        return (*row.after, *(EVERYWHERE if row.effect else ()))
    return (*row.any_time, *EVERYWHERE)


def why_illegal(fault: RequestFault) -> str:
    """Why no correct broker does it; empty where one may."""
    verb = VERBS[fault.verb]
    if verb.illegal:
        return verb.illegal
    if fault.shape in ILLEGAL_SHAPES:
        return ILLEGAL_SHAPES[fault.shape]
    if fault.verb != "answer":
        return ""
    if fault.api == ANY:
        return "" if fault.error in EVERYWHERE else f"not every request may be answered {fault.error}"
    when = "after its effect" if fault.after_effect else "without an effect"
    if fault.error in may_answer(fault.api, after_effect=fault.after_effect):
        return ""
    if fault.error in ALLOWED.get(fault.api, Row()).only_if:
        return f"{fault.api} is answered {fault.error} only in a state that the fault does not bring about"
    return f"{fault.api} is never answered {fault.error} {when}"


def refuse_illegal(fault: RequestFault) -> None:
    """Raises PlanError for an illegal fault that does not say that it is one."""
    reason = why_illegal(fault)
    if reason and fault.legal:
        allowed = may_answer(fault.api, after_effect=fault.after_effect) if fault.verb == "answer" else ()
        one_of = f", such as {', '.join(allowed)}" if allowed else ""
        raise PlanError(
            expected=f"what a correct broker may do{one_of}",
            seen=reason,
            where=f"the fault {str(fault)!r}",
            hint="add `, illegal` to the text (legal=False in Python) if it is meant so",
        )


assert {error for _, error, _, _ in rows()} <= set(error_names())
