"""Replicas and leaders: AlterPartitionReassignments, ListPartitionReassignments, ElectLeaders."""

from typing import Any

from fencepost.impl.messages.admin_api import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    Reassigned,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode
from fencepost.wire.admin.sentences import sentence
from fencepost.wire.handling import NO_THROTTLE, Call, Handling, error_code, grouped, milliseconds

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
                Reassigned(
                    partition=TopicPartition(topic.name, each.partition_index),
                    replicas=None if each.replicas is None else tuple(each.replicas),
                )
                for topic in request.topics
                for each in topic.partitions
            ),
            timeout_ms=timeout_ms,
        )
    ]
    return call.make(
        "AlterPartitionReassignmentsResponse",
        throttle_time=NO_THROTTLE,
        error_code=error_code(answer.error),
        error_message=sentence(answer.error, answer.message),
        responses=tuple(
            call.make(
                "ReassignableTopicResponse",
                name=name,
                partitions=tuple(
                    call.make(
                        "ReassignablePartitionResponse",
                        partition_index=each.partition.partition,
                        error_code=error_code(each.error),
                        error_message=sentence(each.error, each.message),
                    )
                    for each in results
                ),
            )
            for name, results in grouped((each.partition.topic, each) for each in answer.results).items()
        ),
    )


def list_partition_reassignments(call: Call, request: Any) -> Handling:
    """The reassignments in progress at the controller. call: the request's context; request: kio's class."""
    call.patience_ms = timeout_ms = milliseconds(request.timeout)
    (answer,) = yield [
        ListPartitionReassignmentsRequest(
            correlation_id=call.next_id(),
            partitions=None
            if request.topics is None
            else tuple(
                TopicPartition(topic.name, number)
                for topic in request.topics
                for number in topic.partition_indexes
            ),
            timeout_ms=timeout_ms,
        )
    ]
    return call.make(
        "ListPartitionReassignmentsResponse",
        throttle_time=NO_THROTTLE,
        error_code=error_code(answer.error),
        error_message=None,
        topics=tuple(
            call.make(
                "OngoingTopicReassignment",
                name=name,
                partitions=tuple(
                    call.make(
                        "OngoingPartitionReassignment",
                        partition_index=each.partition.partition,
                        replicas=each.replicas,
                        adding_replicas=each.adding,
                        removing_replicas=each.removing,
                    )
                    for each in found
                ),
            )
            for name, found in grouped((each.partition.topic, each) for each in answer.reassignments).items()
        ),
    )


def elect_leaders(call: Call, request: Any) -> Handling:
    """The controller answers once brokers show the new leaders. call: the request's context; request: kio's
    class."""
    call.patience_ms = timeout_ms = milliseconds(request.timeout)
    if call.version >= FIRST_WITH_TYPE and request.election_type not in (PREFERRED, UNCLEAN):
        yield ()
        return _no_election(call, request)
    (answer,) = yield [
        ElectLeadersRequest(
            correlation_id=call.next_id(),
            partitions=None
            if request.topic_partitions is None
            else tuple(
                TopicPartition(each.topic, number)
                for each in request.topic_partitions
                for number in each.partitions
            ),
            timeout_ms=timeout_ms,
            unclean=call.version >= FIRST_WITH_TYPE and request.election_type == UNCLEAN,
        )
    ]
    return call.make(
        "ElectLeadersResponse",
        throttle_time=NO_THROTTLE,
        error_code=error_code(answer.error),
        replica_election_results=tuple(
            call.make(
                "ReplicaElectionResult",
                topic=name,
                partition_result=tuple(
                    call.make(
                        "PartitionResult",
                        partition_id=each.partition.partition,
                        error_code=error_code(each.error),
                        error_message=sentence(each.error, each.message),
                    )
                    for each in results
                ),
            )
            for name, results in grouped((each.partition.topic, each) for each in answer.results).items()
        ),
    )


def _no_election(call: Call, request: Any) -> Any:
    """An unknown election type is refused for the whole request and for each partition."""
    error = error_code(ErrorCode.INVALID_REQUEST)
    message = f"Expected election type 0 or 1, saw {request.election_type}"
    return call.make(
        "ElectLeadersResponse",
        throttle_time=NO_THROTTLE,
        error_code=error,
        replica_election_results=tuple(
            call.make(
                "ReplicaElectionResult",
                topic=each.topic,
                partition_result=tuple(
                    call.make("PartitionResult", partition_id=number, error_code=error, error_message=message)
                    for number in each.partitions
                ),
            )
            for each in request.topic_partitions or ()
        ),
    )
