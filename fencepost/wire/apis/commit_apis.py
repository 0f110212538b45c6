"""OffsetCommit and OffsetFetch: committed offsets of a group."""

from collections.abc import Iterable
from typing import Any

from fencepost.impl.messages.broker_api import MetadataRequest
from fencepost.impl.messages.group_api import (
    NO_OFFSET,
    CommittedOffset,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.wire.handling import Call, Handling
from fencepost.wire.plain import by_topic, keyed, keys_of

FIRST_WITH_EPOCH = 6
FIRST_WITH_INSTANCES = 7
FIRST_WITH_STABLE = 7
"""Of OffsetFetch (KIP-447)."""
FIRST_WITH_ERROR = 2
"""First version of OffsetFetch with an error of the group. Earlier versions put it into each partition."""


def offset_commit(call: Call, request: Any) -> Handling:
    """Commit the offsets of known partitions; the others get an error, by the broker's metadata. call: the
    request's context; request: kio's class."""
    asked = keyed(request.topics)
    names = tuple(dict.fromkeys(key.topic for key, _ in asked))
    (metadata,) = yield [MetadataRequest(correlation_id=call.next_id(), topics=names)]
    known = {each.partition for each in metadata.partitions}
    with_epoch = call.version >= FIRST_WITH_EPOCH
    error = NO_ERROR
    if not asked or any(key in known for key, _ in asked):
        (answer,) = yield [
            call.of(
                OffsetCommitRequest,
                request,
                generation_id=request.generation_id_or_member_epoch,
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
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    rows = (
        (key.topic, {"partition_index": key.partition, "error_code": error if key in known else unknown})
        for key, _ in asked
    )
    return call.answer(topics=by_topic(rows))


def offset_fetch(call: Call, request: Any) -> Handling:
    """The committed offsets of the requested partitions, or of all if the request names none (null, from
    version 2 on). call: the request's context; request: kio's class."""
    wanted = keys_of(request.topics, "partition_indexes")
    (answer,) = yield [
        call.of(
            OffsetFetchRequest,
            request,
            partitions=wanted or (),
            require_stable=call.version >= FIRST_WITH_STABLE and request.require_stable,
        )
    ]
    offsets: Iterable[CommittedOffset] = answer.offsets if wanted or wanted is None else ()
    each_error = NO_ERROR
    if answer.error is not NO_ERROR and call.version < FIRST_WITH_ERROR:
        each_error = answer.error
        offsets = [CommittedOffset(partition=key, offset=NO_OFFSET) for key in wanted or ()]
    rows = (
        (
            each.partition.topic,
            {
                "partition_index": each.partition.partition,
                "committed_offset": each.offset,
                "committed_leader_epoch": each.leader_epoch,
                "metadata": each.metadata,
                "error_code": each_error,
            },
        )
        for each in offsets
    )
    return call.answer(error_code=answer.error, topics=by_topic(rows))
