"""The administration of a broker core of canned answers: errors with reasons and without, every field
filled."""

from typing import Any

from fencepost.impl.messages import admin_api as admin
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages import group_api as groups
from fencepost.impl.messages import transaction_api as transactions
from fencepost.traces.kafka_names.outcomes import ErrorCode

OK = ErrorCode.NONE
LONG = "why not? " * 10_000


def _results(names: Any) -> tuple[admin.Result, ...]:
    return tuple(
        admin.Result(name=name, error=OK)
        if place % 2
        else admin.Result(name=name, error=ErrorCode.INVALID_CONFIG, message=LONG)
        for place, name in enumerate(names)
    )


def _entry(name: str, source: admin.ConfigSource) -> admin.ConfigEntry:
    synonym = admin.ConfigSynonym(name="log." + name, value="7", source=admin.ConfigSource.DEFAULT_CONFIG)
    return admin.ConfigEntry(
        name=name, value="8", source=source, kind="LONG", read_only=True, synonyms=(synonym,)
    )


def _of_topics(request: Any) -> Any:
    number = request.correlation_id
    match request:
        case admin.CreateTopicsRequest():
            results = _results(topic.name for topic in request.topics)
            return admin.CreateTopicsResponse(correlation_id=number, results=results)
        case admin.DeleteTopicsRequest():
            return admin.DeleteTopicsResponse(correlation_id=number, results=_results(request.names))
        case admin.CreatePartitionsRequest():
            results = _results(topic.name for topic in request.topics)
            return admin.CreatePartitionsResponse(correlation_id=number, results=results)
        case kafka.DeleteRecordsRequest():
            return kafka.DeleteRecordsResponse(correlation_id=number, error=OK, low_watermark=5)
        case admin.DescribeLogDirsRequest():
            keys = request.partitions or (kafka.TopicPartition("t", 0),)
            logs = tuple(admin.DescribedLog(partition=key, size=9, offset_lag=1) for key in keys)
            return admin.DescribeLogDirsResponse(correlation_id=number, error=OK, logs=logs)
    return None


def _of_configs(request: Any) -> Any:
    number = request.correlation_id
    match request:
        case admin.DescribeConfigsRequest():
            return admin.DescribeConfigsResponse(
                correlation_id=number,
                resources=tuple(
                    admin.DescribedConfig(
                        kind=each.kind,
                        name=each.name,
                        error=OK,
                        entries=tuple(_entry(f"x.{source.lower()}", source) for source in admin.ConfigSource),
                    )
                    for each in request.resources
                ),
            )
        case admin.AlterConfigsRequest():
            return admin.AlterConfigsResponse(
                correlation_id=number,
                resources=tuple(
                    admin.AlteredConfig(
                        kind=each.kind, name=each.name, error=ErrorCode.INVALID_CONFIG, message=LONG
                    )
                    for each in request.resources
                ),
            )
    return None


def _of_control(request: Any) -> Any:
    number, why = request.correlation_id, ErrorCode.INVALID_REPLICA_ASSIGNMENT
    match request:
        case admin.AlterPartitionReassignmentsRequest():
            return admin.AlterPartitionReassignmentsResponse(
                correlation_id=number,
                error=OK,
                results=tuple(
                    admin.PartitionResult(partition=each.partition, error=why, message=LONG)
                    for each in request.partitions
                ),
            )
        case admin.ListPartitionReassignmentsRequest():
            return admin.ListPartitionReassignmentsResponse(
                correlation_id=number,
                error=OK,
                reassignments=tuple(
                    admin.OngoingReassignment(partition=key, replicas=(1, 2, 3), adding=(3,), removing=(1,))
                    for key in request.partitions or (kafka.TopicPartition("t", 0),)
                ),
            )
        case admin.ElectLeadersRequest():
            error = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if request.unclean:
                error = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            return admin.ElectLeadersResponse(
                correlation_id=number,
                error=OK,
                results=tuple(
                    admin.PartitionResult(partition=key, error=error, message=LONG)
                    for key in request.partitions or (kafka.TopicPartition("t", 0),)
                ),
            )
    return None


def _of_groups(request: Any) -> Any:
    number = request.correlation_id
    match request:
        case groups.DescribeGroupRequest():
            member = groups.MemberDescription(
                member_id="m",
                group_instance_id=None,
                client_id="c",
                assignment=b"a",
                subscription=b"s",
                client_host="/127.0.0.1",
            )
            return groups.DescribeGroupResponse(
                correlation_id=number,
                error=OK,
                state="Stable",
                protocol_type="consumer",
                protocol_name="range",
                generation_id=3,
                members=(member,),
            )
        case groups.ListGroupsRequest():
            listed = (("g", "consumer", "Stable"), ("h", "", "Empty"))
            return groups.ListGroupsResponse(correlation_id=number, error=OK, groups=listed)
        case groups.DeleteGroupRequest():
            return groups.DeleteGroupResponse(correlation_id=number, error=ErrorCode.NON_EMPTY_GROUP)
        case groups.OffsetDeleteRequest():
            results = tuple((key, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC) for key in request.partitions)
            return groups.OffsetDeleteResponse(correlation_id=number, error=OK, results=results)
    return None


def _of_transactions(request: Any) -> Any:
    number = request.correlation_id
    match request:
        case transactions.DescribeTransactionRequest():
            return transactions.DescribeTransactionResponse(
                correlation_id=number,
                error=OK,
                state="Ongoing",
                timeout_ms=60_000,
                started_ms=7,
                producer_id=3,
                producer_epoch=1,
                partitions=(kafka.TopicPartition("t", 0), kafka.TopicPartition("t", 1)),
            )
        case transactions.ListTransactionsRequest():
            return transactions.ListTransactionsResponse(
                correlation_id=number,
                error=OK,
                unknown_states=("Odd",),
                transactions=(("a", 3, "Ongoing"), ("b", 4, "Empty")),
            )
        case transactions.DescribeProducersRequest():
            producer = transactions.ActiveProducer(
                producer_id=3,
                producer_epoch=1,
                last_sequence=5,
                last_timestamp_ms=9,
                coordinator_epoch=-1,
                open_since=2,
            )
            return transactions.DescribeProducersResponse(
                correlation_id=number, error=OK, producers=(producer,)
            )
    return None


def admin_answer(request: Any) -> Any:
    """What the broker says to an admin client."""
    for answered in (_of_topics, _of_configs, _of_control, _of_groups, _of_transactions):
        found = answered(request)
        if found is not None:
            return found
    raise AssertionError(f"no canned answer to {request}")
