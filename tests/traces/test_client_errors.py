"""Clients' names of errors become Kafka's; unknown ones are refused by name."""

import re

import pytest

from fencepost.traces import jsonlines
from fencepost.traces.errors import TraceError
from fencepost.traces.kafka_names.client_errors import (
    CODES,
    EXCEPTIONS,
    LIBRDKAFKA,
    OTHER_CLASSES,
    kafka_error,
)
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.kafka_names.protocol import ERRORS


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER"),
        ("NOT_LEADER_FOR_PARTITION", "NOT_LEADER_OR_FOLLOWER"),
        ("RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION", "NOT_LEADER_OR_FOLLOWER"),
        ("_MSG_TIMED_OUT", "REQUEST_TIMED_OUT"),
        ("RD_KAFKA_RESP_ERR__TRANSPORT", "NETWORK_EXCEPTION"),
        ("_FENCED", "PRODUCER_FENCED"),
        ("org.apache.kafka.common.errors.TimeoutException", "REQUEST_TIMED_OUT"),
        ("NotLeaderOrFollowerException", "NOT_LEADER_OR_FOLLOWER"),
        (
            "org.apache.kafka.common.errors.NotEnoughReplicasAfterAppendException",
            "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        ),
        ("OutOfOrderSequenceException", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("ProducerFencedException", "PRODUCER_FENCED"),
        ("NotLeaderForPartitionError", "NOT_LEADER_OR_FOLLOWER"),
        ("KafkaTimeoutError", "REQUEST_TIMED_OUT"),
        ("STALE_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"),  # KIP-848
        ("RD_KAFKA_RESP_ERR_REBOOTSTRAP_REQUIRED", "REBOOTSTRAP_REQUIRED"),  # KIP-1102
        ("org.apache.kafka.common.errors.InvalidRecordStateException", "INVALID_RECORD_STATE"),  # KIP-932
        ("SnapshotNotFoundException", "SNAPSHOT_NOT_FOUND"),
        ("GROUP_DELETION_FAILED", "GROUP_DELETION_FAILED"),
        ("ERR_105?", "TRANSACTIONAL_ID_NOT_FOUND"),  # librdkafka has no name for it
        ("ValueError", "ValueError"),  # no client's: whatever a program raised
        ("the disk is full", "the disk is full"),
    ],
)
def test_each_name_has_its_code(name: str, code: str) -> None:
    """librdkafka's names with and without prefix, Java's classes with and without package, Python
    clients' classes; other words stay."""
    assert kafka_error(name, where="h") == code


@pytest.mark.parametrize(
    "name",
    [
        "_ODD_ONE",
        "RD_KAFKA_RESP_ERR__ODD",
        "NO_SUCH_CODE",
        "ERR_9999?",
        "OddException",
        "org.apache.kafka.common.errors.Odd",
    ],
)
def test_unknown_names_are_refused(name: str) -> None:
    """By name."""
    with pytest.raises(TraceError, match=re.escape(name)):
        kafka_error(name, where="h:3")


def test_every_error_of_kafka_is_known_by_its_name_and_by_its_class() -> None:
    """As a broker, librdkafka or a Java client names it: a broker of a later release may answer any."""
    for error in ERRORS:
        assert kafka_error(error.name, where="h") == error.name
        assert kafka_error(f"RD_KAFKA_RESP_ERR_{error.name}", where="h") == error.name
        if error.name != "NONE":
            assert kafka_error(f"org.apache.kafka.common.errors.{error.exception}", where="h") == error.name


def test_the_tables_lead_to_codes() -> None:
    """Every mapping ends at a code of Kafka's, no class is listed that Kafka's own table has, and what our
    own clients record is a code."""
    assert set(LIBRDKAFKA.values()) | set(EXCEPTIONS.values()) <= CODES
    assert not {error.exception.removesuffix("Exception") for error in ERRORS} & set(OTHER_CLASSES)
    assert not set(LIBRDKAFKA) & CODES
    assert {code.value for code in ErrorCode} <= CODES


TRACE = '{"type":"trace","trace_id":1,"plan":"","seed":1,"software_version":"v"}'
APPEND = (
    '{"type":"operation","op_id":0,"process":1,"function":"append",'
    '"invoke_time":0,"outcome":"unknown","error":"%s"}'
)


def test_errors_of_foreign_traces_are_mapped_when_read() -> None:
    """A trace without a plan is read with Kafka's names; one that is unknown is refused with its line;
    a plan's run and other functions say what they said."""
    (read,) = jsonlines.read_lines([TRACE, APPEND % "_MSG_TIMED_OUT"], where="f")
    assert read.operations[0].error == "REQUEST_TIMED_OUT"
    with pytest.raises(TraceError, match=r"f:2: expected an error of Kafka.*_ODD_ONE"):
        list(jsonlines.read_lines([TRACE, APPEND % "_ODD_ONE"], where="f"))
    (planned,) = jsonlines.read_lines(
        [TRACE.replace('"plan":""', '"plan":"{}"'), APPEND % "_ODD_ONE"], where="f"
    )
    assert planned.operations[0].error == "_ODD_ONE"
    (other,) = jsonlines.read_lines([TRACE, APPEND.replace("append", "cas") % "_ODD_ONE"], where="f")
    assert other.operations[0].error == "_ODD_ONE"
