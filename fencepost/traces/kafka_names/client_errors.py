"""Names that clients give to errors, as Kafka's own: librdkafka's, Java's exceptions and those of
Python clients.

Owns: which name of a client means which of Kafka's codes (protocol.py). Must not know what an error
proves (`outcomes`).

Source: rd_kafka_resp_err_t of librdkafka. Errors that only a client knows are mapped to the code that proves
as little: a request that timed out or lost its connection may have been executed.
"""

import re

from fencepost.traces.errors import TraceError
from fencepost.traces.kafka_names.protocol import ERRORS

CODES = frozenset(error.name for error in ERRORS)
"""Kafka's names."""
_BY_NUMBER = {error.code: error.name for error in ERRORS}

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

OTHER_CLASSES = {
    "KafkaTimeout": "REQUEST_TIMED_OUT",
    "Disconnect": "NETWORK_EXCEPTION",
    "KafkaConnection": "NETWORK_EXCEPTION",
    "Interrupt": "NETWORK_EXCEPTION",
    "NotLeaderForPartition": "NOT_LEADER_OR_FOLLOWER",
    "MessageSizeTooLarge": "MESSAGE_TOO_LARGE",
    "GroupCoordinatorNotAvailable": "COORDINATOR_NOT_AVAILABLE",
    "GroupLoadInProgress": "COORDINATOR_LOAD_IN_PROGRESS",
    "NotCoordinatorForGroup": "NOT_COORDINATOR",
    "CommitFailed": "ILLEGAL_GENERATION",
    "RetriableCommitFailed": "REQUEST_TIMED_OUT",
}
"""Classes of clients that Kafka has no code for, and those of Python clients and of older Java clients that
Kafka's code has another name for now; without the ending Exception or Error."""
EXCEPTIONS = {
    error.exception.removesuffix("Exception"): error.name for error in ERRORS if error.name != "NONE"
} | OTHER_CLASSES
"""Codes by class, which is often not called like its code, without the ending."""

_PREFIX = "RD_KAFKA_RESP_ERR_"
_NUMBER = re.compile(r"ERR_(\d{1,5})\?")
"""What rd_kafka_err2name answers for a code of a broker that librdkafka has no name for."""
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
    number = _NUMBER.fullmatch(short)
    if number:
        code = _BY_NUMBER.get(int(number[1]))
    if code is not None:
        return code
    if number or name.startswith(_PREFIX) or (_CODE.fullmatch(name) and "_" in name):
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
