"""ListOffsets and OffsetForLeaderEpoch: where a log begins and ends, and where its epochs do."""

from collections import Counter
from typing import Any

from msgspec.structs import replace

from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.replication.leader import CLIENT
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.wire.apis.fetch import READ_COMMITTED
from fencepost.wire.handling import Call, Handling, held_elsewhere
from fencepost.wire.plain import by_topic, keyed

FIRST_WITH_ISOLATION, FIRST_WITH_EPOCH = 2, 4


def list_offsets(call: Call, request: Any) -> Handling:
    """One request of the core for each partition. A negative time other than the two ends asks for something
    of later versions."""
    committed = call.version >= FIRST_WITH_ISOLATION and request.isolation_level == READ_COMMITTED
    asked = keyed(request.topics)
    answers = yield [
        kafka.ListOffsetsRequest(
            correlation_id=call.next_id(),
            partition=key,
            leader_epoch=each.current_leader_epoch if call.version >= FIRST_WITH_EPOCH else -1,
            timestamp=each.timestamp,
            replica_id=kafka.DEBUGGER if request.replica_id == kafka.DEBUGGER else CLIENT,
            read_committed=committed,
        )
        for key, each in asked
        if each.timestamp >= kafka.EARLIEST
    ]
    heard = iter(answers)
    unsupported = kafka.ListOffsetsResponse(correlation_id=0, error=ErrorCode.UNSUPPORTED_VERSION)
    moved = kafka.ListOffsetsResponse(correlation_id=0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    twice = kafka.ListOffsetsResponse(correlation_id=0, error=ErrorCode.INVALID_REQUEST)
    found = [(key, next(heard) if each.timestamp >= kafka.EARLIEST else unsupported) for key, each in asked]
    elsewhere = yield from held_elsewhere(call, ((key, answer.error) for key, answer in found))
    often = Counter(key for key, _ in asked)
    found = [
        (key, twice if often[key] > 1 else moved if key in elsewhere else answer) for key, answer in found
    ]
    rows = (
        (
            key.topic,
            {
                "partition_index": key.partition,
                "error_code": answer.error,
                "timestamp": answer.timestamp,
                "offset": answer.offset,
                "old_style_offsets": (answer.offset,) if answer.offset >= 0 else (),
                "leader_epoch": answer.leader_epoch if answer.error is NO_ERROR else -1,
            },
        )
        for key, answer in found
    )
    return call.answer(topics=by_topic(rows))


def offset_for_leader_epoch(call: Call, request: Any) -> Handling:
    """All partitions in one request of the core (KIP-101, KIP-320)."""
    queries = tuple(
        kafka.EpochQuery(
            partition=key, current_leader_epoch=each.current_leader_epoch, asked_epoch=each.leader_epoch
        )
        for key, each in keyed(request.topics, topic="topic", number="partition")
    )
    (answer,) = yield [
        kafka.OffsetsForLeaderEpochRequest(correlation_id=call.next_id(), replica_id=CLIENT, queries=queries)
    ]
    elsewhere = yield from held_elsewhere(call, ((end.partition, end.error) for end in answer.ends))
    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    ends = [replace(end, error=moved) if end.partition in elsewhere else end for end in answer.ends]
    rows = (
        (
            end.partition.topic,
            {
                "error_code": end.error,
                "partition": end.partition.partition,
                "leader_epoch": end.epoch,
                "end_offset": end.end_offset,
            },
        )
        for end in ends
    )
    return call.answer(topics=by_topic(rows, topic="topic"))
