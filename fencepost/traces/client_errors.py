"""Names that clients give to errors, as Kafka's own: librdkafka's, Java's exceptions and those of
Python clients.

Owns: the names of Kafka's codes, and which name of a client means which of them. Must not know what an
error proves (`outcomes`).

Sources: org.apache.kafka.common.protocol.Errors (codes and the exception of each), rd_kafka_resp_err_t of
librdkafka. Errors that only a client knows are mapped to the code that proves as little: a request that
timed out or lost its connection may have been executed.
"""

import re

from fencepost.traces.errors import TraceError

_OF_LOGS = """
NONE UNKNOWN_SERVER_ERROR OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION INVALID_FETCH_SIZE
LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT BROKER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE
MESSAGE_TOO_LARGE STALE_CONTROLLER_EPOCH NETWORK_EXCEPTION INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE
NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS TOPIC_AUTHORIZATION_FAILED
CLUSTER_AUTHORIZATION_FAILED INVALID_TIMESTAMP UNSUPPORTED_VERSION TOPIC_ALREADY_EXISTS INVALID_PARTITIONS
INVALID_CONFIG NOT_CONTROLLER INVALID_REQUEST UNSUPPORTED_FOR_MESSAGE_FORMAT POLICY_VIOLATION
OPERATION_NOT_ATTEMPTED KAFKA_STORAGE_ERROR LOG_DIR_NOT_FOUND SASL_AUTHENTICATION_FAILED
REASSIGNMENT_IN_PROGRESS FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH LISTENER_NOT_FOUND
FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH UNSUPPORTED_COMPRESSION_TYPE STALE_BROKER_EPOCH
OFFSET_NOT_AVAILABLE PREFERRED_LEADER_NOT_AVAILABLE INVALID_RECORD THROTTLING_QUOTA_EXCEEDED
UNKNOWN_TOPIC_ID
"""
_OF_PRODUCERS = """
OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH INVALID_TXN_STATE
INVALID_PRODUCER_ID_MAPPING INVALID_TRANSACTION_TIMEOUT CONCURRENT_TRANSACTIONS
TRANSACTION_COORDINATOR_FENCED TRANSACTIONAL_ID_AUTHORIZATION_FAILED UNKNOWN_PRODUCER_ID PRODUCER_FENCED
TRANSACTIONAL_ID_NOT_FOUND TRANSACTION_ABORTABLE
"""
_OF_GROUPS = """
OFFSET_METADATA_TOO_LARGE COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR
ILLEGAL_GENERATION INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID UNKNOWN_MEMBER_ID INVALID_SESSION_TIMEOUT
REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE GROUP_AUTHORIZATION_FAILED NON_EMPTY_GROUP
GROUP_ID_NOT_FOUND MEMBER_ID_REQUIRED GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID UNSTABLE_OFFSET_COMMIT
FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID STALE_MEMBER_EPOCH GROUP_SUBSCRIBED_TO_TOPIC
"""
_OF_ADMINISTRATION = """
INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT NO_REASSIGNMENT_IN_PROGRESS ELECTION_NOT_NEEDED
ELIGIBLE_LEADERS_NOT_AVAILABLE
"""
CODES = frozenset((_OF_LOGS + _OF_PRODUCERS + _OF_GROUPS + _OF_ADMINISTRATION).split())
"""Kafka's names of what a client that produces, consumes, commits or administers may be answered."""

LIBRDKAFKA = {
    "NO_ERROR": "NONE",
    "UNKNOWN": "UNKNOWN_SERVER_ERROR",
    "INVALID_MSG": "CORRUPT_MESSAGE",
    "INVALID_MSG_SIZE": "INVALID_FETCH_SIZE",
    "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "MSG_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "STALE_CTRL_EPOCH": "STALE_CONTROLLER_EPOCH",
    "TOPIC_EXCEPTION": "INVALID_TOPIC_EXCEPTION",
    **dict.fromkeys(
        (
            "_TRANSPORT",
            "_ALL_BROKERS_DOWN",
            "_DESTROY",
            "_RESOLVE",
            "_FAIL",
            "_SSL",
            "_INTR",
            "_PURGE_INFLIGHT",
        ),
        "NETWORK_EXCEPTION",
    ),
    **dict.fromkeys(
        ("_MSG_TIMED_OUT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_PURGE_QUEUE"), "REQUEST_TIMED_OUT"
    ),
    **dict.fromkeys(("_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"), "UNKNOWN_TOPIC_OR_PARTITION"),
    **dict.fromkeys(("_AUTO_OFFSET_RESET", "_LOG_TRUNCATION"), "OFFSET_OUT_OF_RANGE"),
    "_BAD_MSG": "CORRUPT_MESSAGE",
    "_ISR_INSUFF": "NOT_ENOUGH_REPLICAS",
    "_WAIT_COORD": "COORDINATOR_NOT_AVAILABLE",
    "_UNKNOWN_GROUP": "GROUP_ID_NOT_FOUND",
    "_MAX_POLL_EXCEEDED": "UNKNOWN_MEMBER_ID",
    "_ASSIGNMENT_LOST": "REBALANCE_IN_PROGRESS",
    "_FENCED": "PRODUCER_FENCED",
    "_FATAL": "UNKNOWN_SERVER_ERROR",
    "_AUTHENTICATION": "SASL_AUTHENTICATION_FAILED",
}
"""As rd_kafka_err2name answers: without the prefix, those of the library itself with one underscore."""

EXCEPTIONS = {
    "Timeout": "REQUEST_TIMED_OUT",
    "KafkaTimeout": "REQUEST_TIMED_OUT",
    "Disconnect": "NETWORK_EXCEPTION",
    "Network": "NETWORK_EXCEPTION",
    "KafkaConnection": "NETWORK_EXCEPTION",
    "Interrupt": "NETWORK_EXCEPTION",
    "CorruptRecord": "CORRUPT_MESSAGE",
    "UnknownServer": "UNKNOWN_SERVER_ERROR",
    "NotLeaderForPartition": "NOT_LEADER_OR_FOLLOWER",
    "RecordTooLarge": "MESSAGE_TOO_LARGE",
    "MessageSizeTooLarge": "MESSAGE_TOO_LARGE",
    "RecordBatchTooLarge": "RECORD_LIST_TOO_LARGE",
    "InvalidTopic": "INVALID_TOPIC_EXCEPTION",
    "TopicAuthorization": "TOPIC_AUTHORIZATION_FAILED",
    "GroupAuthorization": "GROUP_AUTHORIZATION_FAILED",
    "ClusterAuthorization": "CLUSTER_AUTHORIZATION_FAILED",
    "TransactionalIdAuthorization": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "SaslAuthentication": "SASL_AUTHENTICATION_FAILED",
    "OutOfOrderSequence": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "DuplicateSequence": "DUPLICATE_SEQUENCE_NUMBER",
    "InvalidPidMapping": "INVALID_PRODUCER_ID_MAPPING",
    "InvalidTxnTimeout": "INVALID_TRANSACTION_TIMEOUT",
    "KafkaStorage": "KAFKA_STORAGE_ERROR",
    "GroupCoordinatorNotAvailable": "COORDINATOR_NOT_AVAILABLE",
    "GroupLoadInProgress": "COORDINATOR_LOAD_IN_PROGRESS",
    "NotCoordinatorForGroup": "NOT_COORDINATOR",
    "InvalidConfiguration": "INVALID_CONFIG",
    "CommitFailed": "ILLEGAL_GENERATION",
    "RetriableCommitFailed": "REQUEST_TIMED_OUT",
    "OffsetMetadataTooLarge": "OFFSET_METADATA_TOO_LARGE",
}
"""Classes that are not called like their code, without the ending Exception or Error."""

_PREFIX = "RD_KAFKA_RESP_ERR_"
_CODE = re.compile(r"_?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_CLASS = re.compile(r"(?:[a-z][A-Za-z0-9_]*[.$])*([A-Z][A-Za-z0-9]*?)(Exception|Error)?")
_KAFKA_PACKAGE = "org.apache.kafka."


def kafka_error(name: str, *, where: str) -> str:
    """Kafka's name of an error that a client named. Words that are no client's name of an error stay as
    they are.

    Raises TraceError for what looks like a client's name of an error and is none that is known.
    """
    if name in CODES:
        return name
    short = name.removeprefix(_PREFIX)
    code = LIBRDKAFKA.get(short, short if short in CODES else None)
    if code is not None:
        return code
    if name.startswith(_PREFIX) or (_CODE.fullmatch(name) and "_" in name):
        raise _unknown(name, where)
    match = _CLASS.fullmatch(name)
    if match is None:
        return name
    stem, ending = match.groups()
    code = EXCEPTIONS.get(stem) or _snake(stem)
    if code in CODES:
        return code
    if ending == "Exception" or name.startswith(_KAFKA_PACKAGE):
        raise _unknown(name, where)
    return name


def _snake(stem: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).upper()


def _unknown(name: str, where: str) -> TraceError:
    return TraceError(
        expected="an error of Kafka, librdkafka or Kafka's Java client", seen=repr(name[:80]), where=where
    )
