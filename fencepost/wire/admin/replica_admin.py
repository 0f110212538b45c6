"""Replicas and leaders: AlterPartitionReassignments, ListPartitionReassignments, ElectLeaders."""

from typing import Any

from fencepost.impl.messages.admin_api import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    PartitionResult,
    Reassigned,
)
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.admin.sentences import sentence
from fencepost.wire.handling import Call, Handling, milliseconds
from fencepost.wire.plain import by_topic, keyed, keys_of

PREFERRED, UNCLEAN = 0, 1
"""ElectionType; the preferred one is what version 0 of ElectLeaders always means."""
FIRST_WITH_TYPE = 1


def alter_partition_reassignments(call: Call, request: Any) -> Handling:
    """The controller answers once the reassignments are in progress. call: the request's context; request:
    kio's class."""
    call.patience_ms = timeout_ms = milliseconds(request.timeout)
    (answer,) = yield [
        AlterPartitionReassignmentsRequest(
            correlation_id=call.next_id(),
            partitions=tuple(
                Reassigned(partition=key, replicas=None if each.replicas is None else tuple(each.replicas))
                for key, each in keyed(request.topics)
            ),
            timeout_ms=timeout_ms,
        )
    ]
    return call.answer(
        error_code=answer.error,
        error_message=sentence(answer.error, answer.message),
        responses=by_topic(_result(each, "partition_index") for each in answer.results),
    )


def _result(each: PartitionResult, number: str) -> tuple[str, dict[str, Any]]:
    """The topic, and what became of one partition. number: kio's name of its number."""
    message = sentence(each.error, each.message)
    row = {number: each.partition.partition, "error_code": each.error, "error_message": message}
    return each.partition.topic, row


def list_partition_reassignments(call: Call, request: Any) -> Handling:
    """The reassignments in progress at the controller. call: the request's context; request: kio's class."""
    call.patience_ms = timeout_ms = milliseconds(request.timeout)
    (answer,) = yield [
        ListPartitionReassignmentsRequest(
            correlation_id=call.next_id(),
            partitions=keys_of(request.topics, "partition_indexes"),
            timeout_ms=timeout_ms,
        )
    ]
    rows = (
        (
            each.partition.topic,
            {
                "partition_index": each.partition.partition,
                "replicas": each.replicas,
                "adding_replicas": each.adding,
                "removing_replicas": each.removing,
            },
        )
        for each in answer.reassignments
    )
    return call.answer(error_code=answer.error, topics=by_topic(rows))


def elect_leaders(call: Call, request: Any) -> Handling:
    """The controller answers once brokers show the new leaders. call: the request's context; request: kio's
    class."""
    call.patience_ms = timeout_ms = milliseconds(request.timeout)
    if call.version >= FIRST_WITH_TYPE and request.election_type not in (PREFERRED, UNCLEAN):
        yield ()  # refused for the whole request and for each partition
        message = f"Expected election type 0 or 1, saw {request.election_type}"
        refused = {"error_code": ErrorCode.INVALID_REQUEST, "error_message": message}
        results = [
            {
                "topic": each.topic,
                "partition_result": [{"partition_id": number, **refused} for number in each.partitions],
            }
            for each in request.topic_partitions or ()
        ]
        return call.answer(error_code=ErrorCode.INVALID_REQUEST, replica_election_results=results)
    (answer,) = yield [
        ElectLeadersRequest(
            correlation_id=call.next_id(),
            partitions=keys_of(request.topic_partitions, "partitions", "topic"),
            timeout_ms=timeout_ms,
            unclean=call.version >= FIRST_WITH_TYPE and request.election_type == UNCLEAN,
        )
    ]
    rows = (_result(each, "partition_id") for each in answer.results)
    return call.answer(
        error_code=answer.error, replica_election_results=by_topic(rows, "partition_result", "topic")
    )
