"""ListOffsets and OffsetForLeaderEpoch: where a log begins and ends, and where its epochs do."""

from collections import Counter
from typing import Any

from msgspec.structs import replace

from fencepost.impl.messages.broker_api import (
    DEBUGGER,
    EARLIEST,
    EpochQuery,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.leader import CLIENT
from fencepost.traces.outcomes import NO_ERROR, ErrorCode
from fencepost.wire.apis.fetch import READ_COMMITTED
from fencepost.wire.handling import NO_THROTTLE, Call, Handling, error_code, grouped, held_elsewhere

FIRST_WITH_ISOLATION, FIRST_WITH_EPOCH = 2, 4


def list_offsets(call: Call, request: Any) -> Handling:
    """One request of the core for each partition. A negative time other than the two ends asks for something
    of later versions."""
    committed = call.version >= FIRST_WITH_ISOLATION and request.isolation_level == READ_COMMITTED
    asked = [
        (TopicPartition(topic.name, each.partition_index), each)
        for topic in request.topics
        for each in topic.partitions
    ]
    answers = yield [
        ListOffsetsRequest(
            correlation_id=call.next_id(),
            partition=key,
            leader_epoch=each.current_leader_epoch if call.version >= FIRST_WITH_EPOCH else -1,
            timestamp=each.timestamp,
            replica_id=DEBUGGER if request.replica_id == DEBUGGER else CLIENT,
            read_committed=committed,
        )
        for key, each in asked
        if each.timestamp >= EARLIEST
    ]
    heard = iter(answers)
    unsupported = ListOffsetsResponse(correlation_id=0, error=ErrorCode.UNSUPPORTED_VERSION)
    moved = ListOffsetsResponse(correlation_id=0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    twice = ListOffsetsResponse(correlation_id=0, error=ErrorCode.INVALID_REQUEST)
    found = [(key, next(heard) if each.timestamp >= EARLIEST else unsupported) for key, each in asked]
    elsewhere = yield from held_elsewhere(call, ((key, answer.error) for key, answer in found))
    often = Counter(key for key, _ in asked)
    found = [
        (key, twice if often[key] > 1 else moved if key in elsewhere else answer) for key, answer in found
    ]
    topics = grouped((key.topic, (key.partition, answer)) for key, answer in found)
    return call.make(
        "ListOffsetsResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            call.make(
                "ListOffsetsTopicResponse",
                name=name,
                partitions=tuple(
                    call.make(
                        "ListOffsetsPartitionResponse",
                        partition_index=index,
                        error_code=error_code(answer.error),
                        timestamp=answer.timestamp,
                        offset=answer.offset,
                        old_style_offsets=(answer.offset,) if answer.offset >= 0 else (),
                        leader_epoch=answer.leader_epoch if answer.error is NO_ERROR else -1,
                    )
                    for index, answer in each
                ),
            )
            for name, each in topics.items()
        ),
    )


def offset_for_leader_epoch(call: Call, request: Any) -> Handling:
    """All partitions in one request of the core (KIP-101, KIP-320)."""
    queries = tuple(
        EpochQuery(
            partition=TopicPartition(topic.topic, each.partition),
            current_leader_epoch=each.current_leader_epoch,
            asked_epoch=each.leader_epoch,
        )
        for topic in request.topics
        for each in topic.partitions
    )
    (answer,) = yield [
        OffsetsForLeaderEpochRequest(correlation_id=call.next_id(), replica_id=CLIENT, queries=queries)
    ]
    elsewhere = yield from held_elsewhere(call, ((end.partition, end.error) for end in answer.ends))
    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    ends = [replace(end, error=moved) if end.partition in elsewhere else end for end in answer.ends]
    topics = grouped((end.partition.topic, end) for end in ends)
    return call.make(
        "OffsetForLeaderEpochResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            call.make(
                "OffsetForLeaderTopicResult",
                topic=name,
                partitions=tuple(
                    call.make(
                        "EpochEndOffset",
                        error_code=error_code(end.error),
                        partition=end.partition.partition,
                        leader_epoch=end.epoch,
                        end_offset=end.end_offset,
                    )
                    for end in of_topic
                ),
            )
            for name, of_topic in topics.items()
        ),
    )
