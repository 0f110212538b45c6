"""Translates requests of our own client cores into Kafka's messages, and any Kafka's answers back: the
opposite direction of apis/. Transactions are in outward_transactions.py.

Owns the translation. Must not know connections. What Kafka's protocol does not say stays unknown, for example
the leader epoch in a produce's answer. An answer to a fetch with a leader epoch comes from the leader of that
epoch (KIP-320), so there it is known.
"""

from datetime import timedelta
from typing import Any

from fencepost.impl.messages import broker_api as core
from fencepost.impl.messages import group_api as groups
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.operations import ACKS_NONE
from fencepost.traces.outcomes import NO_ERROR, ErrorCode
from fencepost.wire import outward_questions, outward_transactions
from fencepost.wire.dialogue import Dialogue
from fencepost.wire.handling import MILLISECOND, NANOSECONDS_PER_MS, grouped
from fencepost.wire.translation import Translation, committed_topics, error_of, first_error

NO_ID = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
MAYBE_WRITTEN = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT}
)
"""Errors of a commit that Kafka's coordinator also answers after its append (GroupMetadataManager maps
NOT_ENOUGH_REPLICAS_AFTER_APPEND so)."""


def is_answered(request: core.Request) -> bool:
    """Whether a broker answers it."""
    return not (isinstance(request, core.ProduceRequest) and request.acks == ACKS_NONE)


# ---- data path


def _ask_metadata(to: Dialogue, request: core.MetadataRequest) -> Any:
    names = request.topics
    return to.make(
        3,
        "MetadataRequest",
        topics=None
        if names is None
        else tuple(to.make(3, "MetadataRequestTopic", name=name) for name in names),
        allow_auto_topic_creation=request.allow_auto_topic_creation,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def _tell_metadata(request: core.MetadataRequest, response: Any) -> core.MetadataResponse:
    return core.MetadataResponse(
        correlation_id=request.correlation_id,
        partitions=tuple(
            core.PartitionMetadata(
                partition=TopicPartition(topic.name, each.partition_index),
                leader=each.leader_id,
                leader_epoch=getattr(each, "leader_epoch", core.NO_EPOCH),
                replicas=tuple(each.replica_nodes),
                isr=tuple(each.isr_nodes),
            )
            for topic in response.topics
            for each in topic.partitions
        ),
        live_brokers=tuple(sorted(each.node_id for each in response.brokers)),
        controller_id=getattr(response, "controller_id", NO_ID),
        errors=tuple(
            (topic.name, error_of(topic.error_code))
            for topic in response.topics
            if error_of(topic.error_code) is not NO_ERROR
        ),
    )


def _ask_produce(to: Dialogue, request: core.ProduceRequest) -> Any:
    part = to.make(0, "PartitionProduceData", index=request.partition.partition, records=request.records)
    topic = to.make(0, "TopicProduceData", name=request.partition.topic, partition_data=(part,))
    return to.make(
        0,
        "ProduceRequest",
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout=timedelta(milliseconds=request.timeout // NANOSECONDS_PER_MS),
        topic_data=(topic,),
    )


def _tell_produce(request: core.ProduceRequest, response: Any) -> core.ProduceResponse:
    (part,) = (each for topic in response.responses for each in topic.partition_responses)
    return core.ProduceResponse(
        correlation_id=request.correlation_id,
        error=error_of(part.error_code),
        base_offset=part.base_offset,
        log_start_offset=getattr(part, "log_start_offset", NO_ID),
    )


def _ask_fetch(to: Dialogue, request: core.FetchRequest) -> Any:
    topics = grouped((each.partition.topic, each) for each in request.partitions)
    return to.make(
        1,
        "FetchRequest",
        cluster_id=None,
        replica_id=NO_ID,
        max_wait=timedelta(milliseconds=request.max_wait // NANOSECONDS_PER_MS),
        min_bytes=request.min_bytes,
        max_bytes=request.total_max_bytes or request.max_bytes * len(request.partitions),
        isolation_level=READ_COMMITTED if request.read_committed else READ_UNCOMMITTED,
        session_id=0,
        session_epoch=NO_ID,
        topics=tuple(
            to.make(
                1,
                "FetchTopic",
                topic=name,
                partitions=tuple(
                    to.make(
                        1,
                        "FetchPartition",
                        partition=each.partition.partition,
                        current_leader_epoch=each.leader_epoch,
                        fetch_offset=each.offset,
                        last_fetched_epoch=NO_ID,
                        log_start_offset=NO_ID,
                        partition_max_bytes=each.max_bytes or request.max_bytes,
                    )
                    for each in wanted
                ),
            )
            for name, wanted in topics.items()
        ),
        forgotten_topics_data=(),
        rack_id="",
    )


def _tell_fetch(request: core.FetchRequest, response: Any) -> core.FetchResponse:
    found = {
        TopicPartition(topic.topic, each.partition_index): each
        for topic in response.responses
        for each in topic.partitions
    }
    fenced = response.__version__ >= FIRST_FETCH_WITH_EPOCH
    return core.FetchResponse(
        correlation_id=request.correlation_id,
        partitions=tuple(
            _fetched(wanted, found.get(wanted.partition), fenced) for wanted in request.partitions
        ),
    )


FIRST_FETCH_WITH_EPOCH = 9


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


def _ask_list_offsets(to: Dialogue, request: core.ListOffsetsRequest) -> Any:
    part = to.make(
        2,
        "ListOffsetsPartition",
        partition_index=request.partition.partition,
        current_leader_epoch=request.leader_epoch,
        timestamp=request.timestamp,
    )
    return to.make(
        2,
        "ListOffsetsRequest",
        replica_id=request.replica_id,
        isolation_level=READ_COMMITTED if request.read_committed else READ_UNCOMMITTED,
        topics=(to.make(2, "ListOffsetsTopic", name=request.partition.topic, partitions=(part,)),),
    )


def _tell_list_offsets(request: core.ListOffsetsRequest, response: Any) -> core.ListOffsetsResponse:
    (part,) = (each for topic in response.topics for each in topic.partitions)
    return core.ListOffsetsResponse(
        correlation_id=request.correlation_id,
        error=error_of(part.error_code),
        offset=part.offset if hasattr(part, "offset") else next(iter(part.old_style_offsets), NO_ID),
        leader_epoch=getattr(part, "leader_epoch", core.NO_EPOCH),
        timestamp=getattr(part, "timestamp", NO_ID),
    )


# ---- groups


def _ask_coordinator(to: Dialogue, request: groups.FindCoordinatorRequest) -> Any:
    return to.make(10, "FindCoordinatorRequest", key=request.group_id, key_type=int(request.transactional))


def _tell_coordinator(
    request: groups.FindCoordinatorRequest, response: Any
) -> groups.FindCoordinatorResponse:
    return groups.FindCoordinatorResponse(
        correlation_id=request.correlation_id, error=error_of(response.error_code), node=response.node_id
    )


def _ask_join(to: Dialogue, request: groups.JoinGroupRequest) -> Any:
    return to.make(
        11,
        "JoinGroupRequest",
        group_id=request.group_id,
        session_timeout=request.session_timeout_ms * MILLISECOND,
        rebalance_timeout=request.rebalance_timeout_ms * MILLISECOND,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocols=tuple(
            to.make(11, "JoinGroupRequestProtocol", name=name, metadata=subscription)
            for name, subscription in request.protocols
        ),
    )


def _tell_join(request: groups.JoinGroupRequest, response: Any) -> groups.JoinGroupResponse:
    instances = ((each.member_id, getattr(each, "group_instance_id", None)) for each in response.members)
    return groups.JoinGroupResponse(
        correlation_id=request.correlation_id,
        error=error_of(response.error_code),
        generation_id=response.generation_id,
        protocol_name=response.protocol_name or "",
        leader=response.leader,
        member_id=response.member_id,
        members=tuple((each.member_id, each.metadata) for each in response.members),
        instances=tuple((member, instance) for member, instance in instances if instance is not None),
    )


def _ask_sync(to: Dialogue, request: groups.SyncGroupRequest) -> Any:
    return to.make(
        14,
        "SyncGroupRequest",
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        assignments=tuple(
            to.make(14, "SyncGroupRequestAssignment", member_id=member, assignment=assignment)
            for member, assignment in request.assignments
        ),
    )


def _tell_sync(request: groups.SyncGroupRequest, response: Any) -> groups.SyncGroupResponse:
    return groups.SyncGroupResponse(
        correlation_id=request.correlation_id,
        error=error_of(response.error_code),
        assignment=response.assignment,
    )


def _ask_heartbeat(to: Dialogue, request: groups.HeartbeatRequest) -> Any:
    return to.make(
        12,
        "HeartbeatRequest",
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
    )


def _tell_heartbeat(request: groups.HeartbeatRequest, response: Any) -> groups.HeartbeatResponse:
    return groups.HeartbeatResponse(
        correlation_id=request.correlation_id, error=error_of(response.error_code)
    )


def _ask_leave(to: Dialogue, request: groups.LeaveGroupRequest) -> Any:
    member = {"member_id": request.member_id, "group_instance_id": request.group_instance_id}
    several = to.versions is not None and to.versions.common(13) >= 3
    return to.make(
        13,
        "LeaveGroupRequest",
        group_id=request.group_id,
        member_id=request.member_id,
        members=(to.make(13, "MemberIdentity", **member),) if several else (),
    )


def _tell_leave(request: groups.LeaveGroupRequest, response: Any) -> groups.LeaveGroupResponse:
    codes = [response.error_code, *(each.error_code for each in getattr(response, "members", ()))]
    return groups.LeaveGroupResponse(correlation_id=request.correlation_id, error=first_error(codes))


def _ask_commit(to: Dialogue, request: groups.OffsetCommitRequest) -> Any:
    return to.make(
        8,
        "OffsetCommitRequest",
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time=timedelta(milliseconds=NO_ID),
        topics=committed_topics(to, 8, "OffsetCommitRequest", request.offsets),
    )


def _tell_commit(request: groups.OffsetCommitRequest, response: Any) -> groups.OffsetCommitResponse:
    error = first_error(each.error_code for topic in response.topics for each in topic.partitions)
    return groups.OffsetCommitResponse(
        correlation_id=request.correlation_id, error=error, appended=error in MAYBE_WRITTEN
    )


def _ask_committed(to: Dialogue, request: groups.OffsetFetchRequest) -> Any:
    topics = grouped((key.topic, key.partition) for key in request.partitions)
    named = tuple(
        to.make(9, "OffsetFetchRequestTopic", name=name, partition_indexes=tuple(indexes))
        for name, indexes in topics.items()
    )
    return to.make(
        9,
        "OffsetFetchRequest",
        group_id=request.group_id,
        topics=named or None,
        require_stable=request.require_stable,
    )


def _tell_committed(request: groups.OffsetFetchRequest, response: Any) -> groups.OffsetFetchResponse:
    parts = [(topic.name, each) for topic in response.topics for each in topic.partitions]
    codes = [getattr(response, "error_code", None), *(each.error_code for _, each in parts)]
    error = first_error(code for code in codes if code is not None)
    found = {
        TopicPartition(name, each.partition_index): groups.CommittedOffset(
            partition=TopicPartition(name, each.partition_index),
            offset=each.committed_offset,
            leader_epoch=getattr(each, "committed_leader_epoch", core.NO_EPOCH),
            metadata=each.metadata or "",
        )
        for name, each in parts
    }
    return groups.OffsetFetchResponse(
        correlation_id=request.correlation_id,
        error=error,
        offsets=()
        if error is not NO_ERROR
        else tuple(found[key] for key in request.partitions or sorted(found) if key in found),
    )


TRANSLATIONS: dict[type, Translation] = {
    core.MetadataRequest: Translation(_ask_metadata, _tell_metadata),
    core.ProduceRequest: Translation(_ask_produce, _tell_produce, "produce"),
    core.FetchRequest: Translation(_ask_fetch, _tell_fetch, "fetch"),
    core.ListOffsetsRequest: Translation(_ask_list_offsets, _tell_list_offsets),
    groups.FindCoordinatorRequest: Translation(_ask_coordinator, _tell_coordinator),
    groups.JoinGroupRequest: Translation(_ask_join, _tell_join, "group"),
    groups.SyncGroupRequest: Translation(_ask_sync, _tell_sync, "group"),
    groups.HeartbeatRequest: Translation(_ask_heartbeat, _tell_heartbeat, "group"),
    groups.LeaveGroupRequest: Translation(_ask_leave, _tell_leave, "group"),
    groups.OffsetCommitRequest: Translation(_ask_commit, _tell_commit, "group"),
    groups.OffsetFetchRequest: Translation(_ask_committed, _tell_committed, "group"),
    **outward_transactions.TRANSLATIONS,
    **outward_questions.TRANSLATIONS,
}
"""The translation of each request of the core. Requests of a group wait for each other anyway. A fetch that
waits for records must not delay other requests."""
