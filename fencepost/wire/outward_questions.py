"""Translates what is asked of brokers about their state (fencepost/asked) into Kafka's messages, and the
answers back: log directories, epoch ends, groups, transactions, producers, reassignments.

Owns the translation. Must not know why it is asked, or connections.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from fencepost.impl.messages import admin_api, broker_api, group_api
from fencepost.impl.messages import transaction_api as core
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.wire.dialogue import Dialogue
from fencepost.wire.handling import MILLISECOND
from fencepost.wire.translation import Translation, error_of, first_error

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NONE = -1


def since_epoch_ms(time: Any) -> int:
    """A time of an answer as milliseconds. time: kio's, None or before 1970 where there is none."""
    return NONE if time is None or time < EPOCH else (time - EPOCH) // MILLISECOND


def number_of_ms(time: Any) -> int:
    """A span or number of milliseconds of an answer. time: kio's."""
    return time // MILLISECOND if isinstance(time, timedelta) else int(time)


# ---- log directories and reassignments


def _ask_log_dirs(to: Dialogue, request: admin_api.DescribeLogDirsRequest) -> Any:
    assert request.partitions is None, "all logs of a broker are asked for"
    return to.make(35, "DescribeLogDirsRequest", topics=None)


def _tell_log_dirs(
    request: admin_api.DescribeLogDirsRequest, response: Any
) -> admin_api.DescribeLogDirsResponse:
    """The logs of all directories. A replica that moves between two of them has two logs: the one that it
    leaves counts."""
    logs = [
        admin_api.DescribedLog(
            partition=TopicPartition(topic.name, each.partition_index),
            size=each.partition_size,
            offset_lag=each.offset_lag,
        )
        for directory in response.results
        for topic in directory.topics
        for each in topic.partitions
        if not each.is_future_key
    ]
    codes = [getattr(response, "error_code", None), *(each.error_code for each in response.results)]
    return admin_api.DescribeLogDirsResponse(
        correlation_id=request.correlation_id,
        error=first_error(code for code in codes if code is not None),
        logs=tuple(sorted(logs, key=lambda one: one.partition)),
    )


def _ask_reassignments(to: Dialogue, request: admin_api.ListPartitionReassignmentsRequest) -> Any:
    assert request.partitions is None, "all reassignments are asked for"
    return to.make(
        46, "ListPartitionReassignmentsRequest", timeout=request.timeout_ms * MILLISECOND, topics=None
    )


def _tell_reassignments(
    request: admin_api.ListPartitionReassignmentsRequest, response: Any
) -> admin_api.ListPartitionReassignmentsResponse:
    return admin_api.ListPartitionReassignmentsResponse(
        correlation_id=request.correlation_id,
        error=error_of(response.error_code),
        reassignments=tuple(
            admin_api.OngoingReassignment(
                partition=TopicPartition(topic.name, each.partition_index),
                replicas=tuple(each.replicas),
                adding=tuple(each.adding_replicas),
                removing=tuple(each.removing_replicas),
            )
            for topic in response.topics
            for each in topic.partitions
        ),
    )


# ---- epoch ends


def _ask_epochs(to: Dialogue, request: broker_api.OffsetsForLeaderEpochRequest) -> Any:
    (query,) = request.queries
    part = to.make(
        23,
        "OffsetForLeaderPartition",
        partition=query.partition.partition,
        current_leader_epoch=query.current_leader_epoch,
        leader_epoch=query.asked_epoch,
    )
    topic = to.make(23, "OffsetForLeaderTopic", topic=query.partition.topic, partitions=(part,))
    return to.make(23, "OffsetForLeaderEpochRequest", replica_id=request.replica_id, topics=(topic,))


def _tell_epochs(
    request: broker_api.OffsetsForLeaderEpochRequest, response: Any
) -> broker_api.OffsetsForLeaderEpochResponse:
    ends = tuple(
        broker_api.EpochEnd(
            partition=TopicPartition(topic.topic, each.partition),
            error=error_of(each.error_code),
            epoch=each.leader_epoch,
            end_offset=each.end_offset,
        )
        for topic in response.topics
        for each in topic.partitions
    )
    return broker_api.OffsetsForLeaderEpochResponse(correlation_id=request.correlation_id, ends=ends)


# ---- groups


def _ask_group(to: Dialogue, request: group_api.DescribeGroupRequest) -> Any:
    return to.make(
        15, "DescribeGroupsRequest", groups=(request.group_id,), include_authorized_operations=False
    )


def _tell_group(request: group_api.DescribeGroupRequest, response: Any) -> group_api.DescribeGroupResponse:
    (group,) = response.groups
    return group_api.DescribeGroupResponse(
        correlation_id=request.correlation_id,
        error=error_of(group.error_code),
        state=group.group_state,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_data,
        members=tuple(
            group_api.MemberDescription(
                member_id=each.member_id,
                group_instance_id=getattr(each, "group_instance_id", None),
                client_id=each.client_id,
                assignment=each.member_assignment,
                subscription=each.member_metadata,
                client_host=each.client_host,
            )
            for each in group.members
        ),
    )


# ---- transactions


def _ask_transactions(to: Dialogue, request: core.ListTransactionsRequest) -> Any:
    return to.make(
        66,
        "ListTransactionsRequest",
        state_filters=request.states,
        producer_id_filters=request.producer_ids,
        duration_filter=request.longer_than_ms,
    )


def _tell_transactions(request: core.ListTransactionsRequest, response: Any) -> core.ListTransactionsResponse:
    return core.ListTransactionsResponse(
        correlation_id=request.correlation_id,
        error=error_of(response.error_code),
        unknown_states=tuple(response.unknown_state_filters),
        transactions=tuple(
            (each.transactional_id, each.producer_id, each.transaction_state)
            for each in response.transaction_states
        ),
    )


def _ask_transaction(to: Dialogue, request: core.DescribeTransactionRequest) -> Any:
    return to.make(65, "DescribeTransactionsRequest", transactional_ids=(request.transactional_id,))


def _tell_transaction(
    request: core.DescribeTransactionRequest, response: Any
) -> core.DescribeTransactionResponse:
    (one,) = response.transaction_states
    return core.DescribeTransactionResponse(
        correlation_id=request.correlation_id,
        error=error_of(one.error_code),
        state=one.transaction_state,
        timeout_ms=number_of_ms(one.transaction_timeout),
        started_ms=since_epoch_ms(one.transaction_start_time),
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        partitions=tuple(
            TopicPartition(topic.topic, number) for topic in one.topics for number in topic.partitions
        ),
    )


def _ask_producers(to: Dialogue, request: core.DescribeProducersRequest) -> Any:
    topic = to.make(
        61, "TopicRequest", name=request.partition.topic, partition_indexes=(request.partition.partition,)
    )
    return to.make(61, "DescribeProducersRequest", topics=(topic,))


def _tell_producers(request: core.DescribeProducersRequest, response: Any) -> core.DescribeProducersResponse:
    (one,) = (each for topic in response.topics for each in topic.partitions)
    return core.DescribeProducersResponse(
        correlation_id=request.correlation_id,
        error=error_of(one.error_code),
        producers=tuple(
            core.ActiveProducer(
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                last_sequence=each.last_sequence,
                last_timestamp_ms=each.last_timestamp,
                coordinator_epoch=each.coordinator_epoch,
                open_since=each.current_txn_start_offset,
            )
            for each in one.active_producers
        ),
    )


TRANSLATIONS: dict[type, Translation] = {
    admin_api.DescribeLogDirsRequest: Translation(_ask_log_dirs, _tell_log_dirs),
    admin_api.ListPartitionReassignmentsRequest: Translation(_ask_reassignments, _tell_reassignments),
    broker_api.OffsetsForLeaderEpochRequest: Translation(_ask_epochs, _tell_epochs),
    group_api.DescribeGroupRequest: Translation(_ask_group, _tell_group),
    core.ListTransactionsRequest: Translation(_ask_transactions, _tell_transactions),
    core.DescribeTransactionRequest: Translation(_ask_transaction, _tell_transaction),
    core.DescribeProducersRequest: Translation(_ask_producers, _tell_producers),
}
