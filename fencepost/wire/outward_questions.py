"""Translates what is asked of brokers about their state (fencepost/asked) into Kafka's messages, and the
answers back: log directories, epoch ends, groups, transactions, producers, reassignments.

Owns the translation. Must not know why it is asked, or connections.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from fencepost.impl.messages import admin_api, broker_api, group_api
from fencepost.impl.messages import transaction_api as core
from fencepost.wire.admin.config_admin import RESOURCES, SOURCES
from fencepost.wire.plain import MILLISECOND, keyed, keys_of
from fencepost.wire.translation import Translation, error_of, first_error, translation

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NONE = -1


def since_epoch_ms(time: Any) -> int:
    """A time of an answer as milliseconds. time: kio's, None or before 1970 where there is none."""
    return NONE if time is None or time < EPOCH else (time - EPOCH) // MILLISECOND


def number_of_ms(time: Any) -> int:
    """A span or number of milliseconds of an answer. time: kio's."""
    return time // MILLISECOND if isinstance(time, timedelta) else int(time)


# ---- log directories and reassignments


def _everything(request: Any) -> Mapping[str, Any]:
    assert request.partitions is None, "a part of it is never asked for"
    return {"topics": None, "timeout": getattr(request, "timeout_ms", 0)}


def _tell_log_dirs(request: admin_api.DescribeLogDirsRequest, response: Any) -> Mapping[str, Any]:
    """The logs of all directories. A replica that moves between two of them has two logs: the one that it
    leaves counts."""
    logs = [
        admin_api.DescribedLog(partition=key, size=each.partition_size, offset_lag=each.offset_lag)
        for directory in response.results
        for key, each in keyed(directory.topics)
        if not each.is_future_key
    ]
    codes = [getattr(response, "error_code", None), *(each.error_code for each in response.results)]
    return {
        "error": first_error(code for code in codes if code is not None),
        "logs": tuple(sorted(logs, key=lambda one: one.partition)),
    }


def _tell_reassignments(
    request: admin_api.ListPartitionReassignmentsRequest, response: Any
) -> Mapping[str, Any]:
    return {
        "reassignments": tuple(
            admin_api.OngoingReassignment(
                partition=key,
                replicas=tuple(each.replicas),
                adding=tuple(each.adding_replicas),
                removing=tuple(each.removing_replicas),
            )
            for key, each in keyed(response.topics)
        )
    }


# ---- epoch ends


def _ask_epochs(request: broker_api.OffsetsForLeaderEpochRequest) -> Mapping[str, Any]:
    (query,) = request.queries
    part = {
        "partition": query.partition.partition,
        "current_leader_epoch": query.current_leader_epoch,
        "leader_epoch": query.asked_epoch,
    }
    return {"topics": [{"topic": query.partition.topic, "partitions": [part]}]}


def _tell_epochs(request: broker_api.OffsetsForLeaderEpochRequest, response: Any) -> Mapping[str, Any]:
    return {
        "ends": tuple(
            broker_api.EpochEnd(
                partition=key,
                error=error_of(each.error_code),
                epoch=each.leader_epoch,
                end_offset=each.end_offset,
            )
            for key, each in keyed(response.topics, topic="topic", number="partition")
        )
    }


# ---- settings


def _ask_configs(request: admin_api.DescribeConfigsRequest) -> Mapping[str, Any]:
    numbers = {kind: number for number, kind in RESOURCES.items()}
    rows = [
        {"resource_type": numbers[one.kind], "resource_name": one.name, "configuration_keys": one.keys}
        for one in request.resources
    ]
    return {"resources": rows}


def _tell_configs(request: admin_api.DescribeConfigsRequest, response: Any) -> Mapping[str, Any]:
    """A source that the core has no name for is reported as a default."""
    sources = {number: source for source, number in SOURCES.items()}
    return {
        "resources": tuple(
            admin_api.DescribedConfig(
                kind=RESOURCES[one.resource_type],
                name=one.resource_name,
                error=error_of(one.error_code),
                entries=tuple(
                    admin_api.ConfigEntry(
                        name=entry.name,
                        value=entry.value or "",
                        source=sources.get(
                            getattr(entry, "config_source", NONE), admin_api.ConfigSource.DEFAULT_CONFIG
                        ),
                        kind="",
                    )
                    for entry in one.configs
                ),
            )
            for one in response.results
        )
    }


# ---- groups


def _tell_groups(request: group_api.ListGroupsRequest, response: Any) -> Mapping[str, Any]:
    return {
        "groups": tuple(
            (one.group_id, one.protocol_type, getattr(one, "group_state", "")) for one in response.groups
        )
    }


def _tell_group(request: group_api.DescribeGroupRequest, group: Any) -> Mapping[str, Any]:
    return {
        "state": group.group_state,
        "protocol_name": group.protocol_data,
        "members": tuple(
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
    }


# ---- transactions


def _ask_transactions(request: core.ListTransactionsRequest) -> Mapping[str, Any]:
    return {
        "state_filters": request.states,
        "producer_id_filters": request.producer_ids,
        "duration_filter": request.longer_than_ms,
    }


def _tell_transactions(request: core.ListTransactionsRequest, response: Any) -> Mapping[str, Any]:
    return {
        "unknown_states": tuple(response.unknown_state_filters),
        "transactions": tuple(
            (each.transactional_id, each.producer_id, each.transaction_state)
            for each in response.transaction_states
        ),
    }


def _tell_transaction(request: core.DescribeTransactionRequest, one: Any) -> Mapping[str, Any]:
    return {
        "state": one.transaction_state,
        "timeout_ms": number_of_ms(one.transaction_timeout),
        "started_ms": since_epoch_ms(one.transaction_start_time),
        "partitions": keys_of(one.topics, "partitions", "topic"),
    }


def _ask_producers(request: core.DescribeProducersRequest) -> Mapping[str, Any]:
    key = request.partition
    return {"topics": [{"name": key.topic, "partition_indexes": (key.partition,)}]}


def _tell_producers(request: core.DescribeProducersRequest, part: Any) -> Mapping[str, Any]:
    return {
        "producers": tuple(
            core.ActiveProducer(
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                last_sequence=each.last_sequence,
                last_timestamp_ms=each.last_timestamp,
                coordinator_epoch=each.coordinator_epoch,
                open_since=each.current_txn_start_offset,
            )
            for each in part.active_producers
        )
    }


def _only(rows: Sequence[Any]) -> Any:
    (row,) = rows
    return row


TRANSLATIONS: dict[type, Translation] = {
    admin_api.DescribeConfigsRequest: translation(
        32, admin_api.DescribeConfigsResponse, _ask_configs, _tell_configs
    ),
    group_api.ListGroupsRequest: translation(16, group_api.ListGroupsResponse, tell=_tell_groups),
    admin_api.DescribeLogDirsRequest: translation(
        35, admin_api.DescribeLogDirsResponse, _everything, _tell_log_dirs
    ),
    admin_api.ListPartitionReassignmentsRequest: translation(
        46, admin_api.ListPartitionReassignmentsResponse, _everything, _tell_reassignments
    ),
    broker_api.OffsetsForLeaderEpochRequest: translation(
        23, broker_api.OffsetsForLeaderEpochResponse, _ask_epochs, _tell_epochs
    ),
    group_api.DescribeGroupRequest: translation(
        15,
        group_api.DescribeGroupResponse,
        lambda asked: {"groups": (asked.group_id,)},
        _tell_group,
        row=lambda response: _only(response.groups),
    ),
    core.ListTransactionsRequest: translation(
        66, core.ListTransactionsResponse, _ask_transactions, _tell_transactions
    ),
    core.DescribeTransactionRequest: translation(
        65,
        core.DescribeTransactionResponse,
        lambda asked: {"transactional_ids": (asked.transactional_id,)},
        _tell_transaction,
        row=lambda response: _only(response.transaction_states),
    ),
    core.DescribeProducersRequest: translation(
        61,
        core.DescribeProducersResponse,
        _ask_producers,
        _tell_producers,
        row=lambda response: _only(keyed(response.topics))[1],
    ),
}
