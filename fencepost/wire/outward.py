"""Translates requests of our own client cores into Kafka's messages, and any Kafka's answers back: the
opposite direction of apis/. Transactions are in outward_transactions.py, and
outward_questions.py asks brokers about their state.

Owns the translation. Must not know connections. What Kafka's protocol does not say stays unknown, for example
the leader epoch in a produce's answer. An answer to a fetch with a leader epoch comes from the leader of that
epoch (KIP-320), so there it is known.
"""

from collections.abc import Mapping
from typing import Any

from fencepost.impl.messages import broker_api as core
from fencepost.impl.messages import group_api as groups
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import ACKS_NONE
from fencepost.wire import outward_questions, outward_transactions
from fencepost.wire.handling import NANOSECONDS_PER_MS
from fencepost.wire.plain import by_topic, keyed
from fencepost.wire.translation import Translation, committed_topics, error_of, first_error, translation

NO_ID = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
MAYBE_WRITTEN = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT}
)
"""Errors of a commit that Kafka's coordinator also answers after its append (GroupMetadataManager maps
NOT_ENOUGH_REPLICAS_AFTER_APPEND so)."""
FIRST_FETCH_WITH_EPOCH = 9


def is_answered(request: core.Request) -> bool:
    """Whether a broker answers it."""
    return not (isinstance(request, core.ProduceRequest) and request.acks == ACKS_NONE)


def _isolation(request: core.FetchRequest | core.ListOffsetsRequest) -> int:
    return READ_COMMITTED if request.read_committed else READ_UNCOMMITTED


# ---- data path


def _ask_metadata(request: core.MetadataRequest) -> Mapping[str, Any]:
    names = request.topics
    return {"topics": None if names is None else [{"name": name} for name in names]}


def _tell_metadata(request: core.MetadataRequest, response: Any) -> Mapping[str, Any]:
    errors = ((topic.name, error_of(topic.error_code)) for topic in response.topics)
    return {
        "partitions": tuple(
            core.PartitionMetadata(
                partition=key,
                leader=each.leader_id,
                leader_epoch=getattr(each, "leader_epoch", core.NO_EPOCH),
                replicas=tuple(each.replica_nodes),
                isr=tuple(each.isr_nodes),
            )
            for key, each in keyed(response.topics)
        ),
        "live_brokers": tuple(sorted(each.node_id for each in response.brokers)),
        "controller_id": getattr(response, "controller_id", NO_ID),
        "errors": tuple((name, error) for name, error in errors if error is not NO_ERROR),
    }


def _ask_produce(request: core.ProduceRequest) -> Mapping[str, Any]:
    part = {"index": request.partition.partition, "records": request.records}
    return {
        "timeout": request.timeout // NANOSECONDS_PER_MS,
        "topic_data": [{"name": request.partition.topic, "partition_data": [part]}],
    }


def _produced(response: Any) -> Any:
    (part,) = (each for topic in response.responses for each in topic.partition_responses)
    return part


def _ask_fetch(request: core.FetchRequest) -> Mapping[str, Any]:
    wanted = (
        (
            each.partition.topic,
            {
                "partition": each.partition.partition,
                "current_leader_epoch": each.leader_epoch,
                "fetch_offset": each.offset,
                "last_fetched_epoch": NO_ID,
                "log_start_offset": NO_ID,
                "partition_max_bytes": each.max_bytes or request.max_bytes,
            },
        )
        for each in request.partitions
    )
    return {
        "replica_id": NO_ID,
        "max_wait": request.max_wait // NANOSECONDS_PER_MS,
        "max_bytes": request.total_max_bytes or request.max_bytes * len(request.partitions),
        "isolation_level": _isolation(request),
        "session_id": 0,
        "session_epoch": NO_ID,
        "topics": by_topic(wanted, topic="topic"),
    }


def _tell_fetch(request: core.FetchRequest, response: Any) -> Mapping[str, Any]:
    found = dict(keyed(response.responses, topic="topic"))
    fenced = response.__version__ >= FIRST_FETCH_WITH_EPOCH
    parts = (_fetched(wanted, found.get(wanted.partition), fenced) for wanted in request.partitions)
    return {"partitions": tuple(parts)}


def _fetched(wanted: core.FetchPartition, part: Any, fenced: bool) -> core.FetchedPartition:
    if part is None:  # the whole request was refused
        return core.FetchedPartition(partition=wanted.partition, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    error = error_of(part.error_code)
    return core.FetchedPartition(
        partition=wanted.partition,
        error=error,
        leader_epoch=wanted.leader_epoch if fenced and error is NO_ERROR else core.NO_EPOCH,
        high_watermark=part.high_watermark,
        log_start_offset=getattr(part, "log_start_offset", NO_ID),
        records=part.records or b"",
        last_stable_offset=part.last_stable_offset,
        aborted=tuple((each.producer_id, each.first_offset) for each in part.aborted_transactions or ()),
    )


def _ask_list_offsets(request: core.ListOffsetsRequest) -> Mapping[str, Any]:
    part = {
        "partition_index": request.partition.partition,
        "current_leader_epoch": request.leader_epoch,
        "timestamp": request.timestamp,
    }
    return {
        "isolation_level": _isolation(request),
        "topics": [{"name": request.partition.topic, "partitions": [part]}],
    }


def _tell_list_offsets(request: core.ListOffsetsRequest, part: Any) -> Mapping[str, Any]:
    return {} if hasattr(part, "offset") else {"offset": next(iter(part.old_style_offsets), NO_ID)}


def _only(response: Any) -> Any:
    ((_, part),) = keyed(response.topics)
    return part


# ---- groups


def _ask_join(request: groups.JoinGroupRequest) -> Mapping[str, Any]:
    return {
        "session_timeout": request.session_timeout_ms,
        "rebalance_timeout": request.rebalance_timeout_ms,
        "protocols": [{"name": name, "metadata": subscription} for name, subscription in request.protocols],
    }


def _tell_join(request: groups.JoinGroupRequest, response: Any) -> Mapping[str, Any]:
    instances = ((each.member_id, getattr(each, "group_instance_id", None)) for each in response.members)
    return {
        "protocol_name": response.protocol_name or "",
        "members": tuple((each.member_id, each.metadata) for each in response.members),
        "instances": tuple((member, instance) for member, instance in instances if instance is not None),
        "skip_assignment": getattr(response, "skip_assignment", False),
    }


def _ask_sync(request: groups.SyncGroupRequest) -> Mapping[str, Any]:
    given = ({"member_id": member, "assignment": assignment} for member, assignment in request.assignments)
    return {"assignments": list(given)}


def _ask_leave(request: groups.LeaveGroupRequest) -> Mapping[str, Any]:
    return {"members": [{"member_id": request.member_id, "group_instance_id": request.group_instance_id}]}


def _tell_leave(request: groups.LeaveGroupRequest, response: Any) -> Mapping[str, Any]:
    codes = [response.error_code, *(each.error_code for each in getattr(response, "members", ()))]
    return {"error": first_error(codes)}


def _ask_commit(request: groups.OffsetCommitRequest) -> Mapping[str, Any]:
    return {
        "generation_id_or_member_epoch": request.generation_id,
        "retention_time": NO_ID,
        "topics": committed_topics(request.offsets),
    }


def _tell_commit(request: groups.OffsetCommitRequest, response: Any) -> Mapping[str, Any]:
    error = first_error(each.error_code for _, each in keyed(response.topics))
    return {"error": error, "appended": error in MAYBE_WRITTEN}


def _ask_committed(request: groups.OffsetFetchRequest) -> Mapping[str, Any]:
    named = ((key.topic, key.partition) for key in request.partitions)
    return {"topics": by_topic(named, "partition_indexes") or None}


def _tell_committed(request: groups.OffsetFetchRequest, response: Any) -> Mapping[str, Any]:
    parts = keyed(response.topics)
    codes = [getattr(response, "error_code", None), *(each.error_code for _, each in parts)]
    error = first_error(code for code in codes if code is not None)
    found = {
        key: groups.CommittedOffset(
            partition=key,
            offset=each.committed_offset,
            leader_epoch=getattr(each, "committed_leader_epoch", core.NO_EPOCH),
            metadata=each.metadata or "",
        )
        for key, each in parts
    }
    wanted = [] if error is not NO_ERROR else request.partitions or sorted(found)
    return {"error": error, "offsets": tuple(found[key] for key in wanted if key in found)}


TRANSLATIONS: dict[type, Translation] = {
    core.MetadataRequest: translation(3, core.MetadataResponse, _ask_metadata, _tell_metadata),
    core.ProduceRequest: translation(0, core.ProduceResponse, _ask_produce, row=_produced, lane="produce"),
    core.FetchRequest: translation(1, core.FetchResponse, _ask_fetch, _tell_fetch, lane="fetch"),
    core.ListOffsetsRequest: translation(
        2, core.ListOffsetsResponse, _ask_list_offsets, _tell_list_offsets, row=_only
    ),
    groups.FindCoordinatorRequest: translation(
        10,
        groups.FindCoordinatorResponse,
        lambda asked: {"key": asked.group_id, "key_type": int(asked.transactional)},
        lambda _, response: {"node": response.node_id},
    ),
    groups.JoinGroupRequest: translation(11, groups.JoinGroupResponse, _ask_join, _tell_join, lane="group"),
    groups.SyncGroupRequest: translation(14, groups.SyncGroupResponse, _ask_sync, lane="group"),
    groups.HeartbeatRequest: translation(12, groups.HeartbeatResponse, lane="group"),
    groups.LeaveGroupRequest: translation(
        13, groups.LeaveGroupResponse, _ask_leave, _tell_leave, lane="group"
    ),
    groups.OffsetCommitRequest: translation(
        8, groups.OffsetCommitResponse, _ask_commit, _tell_commit, lane="group"
    ),
    groups.OffsetFetchRequest: translation(
        9, groups.OffsetFetchResponse, _ask_committed, _tell_committed, lane="group"
    ),
    **outward_transactions.TRANSLATIONS,
    **outward_questions.TRANSLATIONS,
}
"""The translation of each request of the core. Requests of a group wait for each other anyway. A fetch that
waits for records must not delay other requests."""
