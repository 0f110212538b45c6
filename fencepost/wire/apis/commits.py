"""OffsetCommit and OffsetFetch: committed offsets of a group."""

from collections.abc import Iterable
from typing import Any

from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.broker_api import MetadataRequest
from fencepost.impl.messages.group_api import (
    NO_OFFSET,
    CommittedOffset,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import NO_ERROR, ErrorCode
from fencepost.wire.handling import NO_THROTTLE, Call, Handling, error_code, grouped

FIRST_WITH_EPOCH = 6
FIRST_WITH_INSTANCES = 7
FIRST_WITH_STABLE = 7
"""Of OffsetFetch (KIP-447)."""
FIRST_WITH_ERROR = 2
"""First version of OffsetFetch with an error of the group. Earlier versions put it into each partition."""


def offset_commit(call: Call, request: Any) -> Handling:
    """Commit the offsets of known partitions; the others get an error, by the broker's metadata. call: the
    request's context; request: kio's class."""
    asked = [
        (TopicPartition(topic.name, each.partition_index), each)
        for topic in request.topics
        for each in topic.partitions
    ]
    names = tuple(dict.fromkeys(key.topic for key, _ in asked))
    (metadata,) = yield [MetadataRequest(correlation_id=call.next_id(), topics=names)]
    known = {each.partition for each in metadata.partitions}
    with_epoch = call.version >= FIRST_WITH_EPOCH
    error = NO_ERROR
    if not asked or any(key in known for key, _ in asked):
        (answer,) = yield [
            OffsetCommitRequest(
                correlation_id=call.next_id(),
                group_id=request.group_id,
                generation_id=request.generation_id_or_member_epoch,
                member_id=request.member_id,
                group_instance_id=request.group_instance_id if call.version >= FIRST_WITH_INSTANCES else None,
                offsets=tuple(
                    CommittedOffset(
                        partition=key,
                        offset=each.committed_offset,
                        leader_epoch=each.committed_leader_epoch if with_epoch else -1,
                        metadata=each.committed_metadata or "",
                    )
                    for key, each in asked
                    if key in known
                ),
            )
        ]
        error = answer.error
    return call.make(
        "OffsetCommitResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            call.make(
                "OffsetCommitResponseTopic",
                name=name,
                partitions=tuple(
                    call.make(
                        "OffsetCommitResponsePartition",
                        partition_index=key.partition,
                        error_code=error_code(
                            error if key in known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                        ),
                    )
                    for key in keys
                ),
            )
            for name, keys in grouped((key.topic, key) for key, _ in asked).items()
        ),
    )


def offset_fetch(call: Call, request: Any) -> Handling:
    """The committed offsets of the requested partitions, or of all if the request names none (null, from
    version 2 on). call: the request's context; request: kio's class."""
    wanted = None
    if request.topics is not None:
        wanted = tuple(
            TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes
        )
    (answer,) = yield [
        OffsetFetchRequest(
            correlation_id=call.next_id(),
            group_id=request.group_id,
            partitions=wanted or (),
            require_stable=call.version >= FIRST_WITH_STABLE and request.require_stable,
        )
    ]
    offsets: Iterable[CommittedOffset] = answer.offsets if wanted or wanted is None else ()
    each_error = WireError.none
    if answer.error is not NO_ERROR and call.version < FIRST_WITH_ERROR:
        each_error = error_code(answer.error)
        offsets = [CommittedOffset(partition=key, offset=NO_OFFSET) for key in wanted or ()]
    topics = grouped((each.partition.topic, each) for each in offsets)
    return call.make(
        "OffsetFetchResponse",
        throttle_time=NO_THROTTLE,
        error_code=error_code(answer.error),
        topics=tuple(
            call.make(
                "OffsetFetchResponseTopic",
                name=name,
                partitions=tuple(
                    call.make(
                        "OffsetFetchResponsePartition",
                        partition_index=each.partition.partition,
                        committed_offset=each.offset,
                        committed_leader_epoch=each.leader_epoch,
                        metadata=each.metadata,
                        error_code=each_error,
                    )
                    for each in committed
                ),
            )
            for name, committed in topics.items()
        ),
    )
