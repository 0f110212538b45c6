"""Fetch: all partitions in one request of the core.

Owns the bounds of an answer, and that there are no fetch sessions: session id 0 in every answer makes clients
ask for everything each time (KIP-227). A client is always a client here: a replica id in its request would
let it pass for a follower and move the high watermark.

From version 11 on a follower answers, too, up to the high watermark that it knows, and a leader names the
follower in the rack of a consumer instead of sending records (KIP-392, RackAwareReplicaSelector).
"""

from collections.abc import Generator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode as WireError
from msgspec.structs import replace

from fencepost.impl.messages.broker_api import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    MetadataRequest,
    Request,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.leader import CLIENT
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.handling import NANOSECONDS_PER_MS, Call, Handling, held_elsewhere, milliseconds
from fencepost.wire.plain import by_topic, keyed

READ_COMMITTED = 1
NO_SESSION = 0
FIRST_EPOCH, FINAL_EPOCH = 0, -1
"""Session epoch of a request that begins a session, and of a request without one."""
FIRST_WITH_SESSIONS, FIRST_WITH_EPOCH, FIRST_WITH_RACK = 7, 9, 11


def fetch(call: Call, request: Any) -> Handling:
    """Read each partition from its offset on, within the bounds of the request and of this listener."""
    refused = _session_refused(call, request)
    if refused is not None:
        yield ()
        return _response(call, (), refused)
    committed = request.isolation_level == READ_COMMITTED
    partitions = tuple(
        FetchPartition(
            partition=key,
            offset=each.fetch_offset,
            leader_epoch=each.current_leader_epoch if call.version >= FIRST_WITH_EPOCH else -1,
            max_bytes=max(1, each.partition_max_bytes),
        )
        for key, each in keyed(request.topics, topic="topic", number="partition")
    )
    if not partitions:
        yield ()
        return _response(call, ())
    nearer = yield from _nearer(call, request, {each.partition for each in partitions})
    call.patience_ms = 0 if nearer else _wait_ms(call, request.max_wait)
    (answer,) = yield [
        FetchRequest(
            correlation_id=call.next_id(),
            replica_id=CLIENT,
            max_wait=call.patience_ms * NANOSECONDS_PER_MS,
            max_bytes=call.limits.fetch_bytes,
            partitions=partitions,
            min_bytes=min(request.min_bytes, call.limits.fetch_bytes),
            total_max_bytes=max(1, min(request.max_bytes, call.limits.fetch_bytes)),
            read_committed=committed,
            from_follower=call.version >= FIRST_WITH_RACK,
        )
    ]
    elsewhere = yield from held_elsewhere(call, ((each.partition, each.error) for each in answer.partitions))
    found = [
        replace(each, error=ErrorCode.NOT_LEADER_OR_FOLLOWER) if each.partition in elsewhere else each
        for each in answer.partitions
    ]
    rows = ((each.partition.topic, _partition(each, committed, nearer)) for each in found)
    return _response(call, by_topic(rows, topic="topic"))


def _nearer(
    call: Call, request: Any, keys: set[TopicPartition]
) -> Generator[Sequence[Request], list[Any], dict[TopicPartition, int]]:
    """Partitions that this broker leads, and the follower in sync that is in the client's rack."""
    if not call.broker.racks or call.version < FIRST_WITH_RACK or not request.rack_id:
        return {}
    names = tuple(sorted({key.topic for key in keys}))
    (metadata,) = yield [MetadataRequest(correlation_id=call.next_id(), topics=names)]
    return {
        each.partition: node
        for each in metadata.partitions
        for node in each.isr
        if each.partition in keys
        and each.leader == call.broker.node
        and node != each.leader
        and node in metadata.live_brokers
        and call.rack(node) == request.rack_id
    }


def _session_refused(call: Call, request: Any) -> WireError | None:
    """Why a request cannot be part of a session here, where every one is new or without any (KIP-227)."""
    if call.version < FIRST_WITH_SESSIONS:
        return None
    if request.session_id != NO_SESSION:
        return WireError.fetch_session_id_not_found
    begins = request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH)
    return None if begins else WireError.invalid_fetch_session_epoch


def _wait_ms(call: Call, max_wait: timedelta) -> int:
    return max(0, min(milliseconds(max_wait), call.limits.fetch_wait_ms))


def _response(call: Call, topics: Sequence[Any], error: WireError = WireError.none) -> Any:
    return call.answer(error_code=error, session_id=NO_SESSION, responses=topics)


def _partition(
    fetched: FetchedPartition, committed: bool, nearer: Mapping[TopicPartition, int]
) -> dict[str, Any]:
    preferred = nearer.get(fetched.partition, -1) if fetched.error is ErrorCode.NONE else -1
    aborted = [
        {"producer_id": producer_id, "first_offset": first_offset}
        for producer_id, first_offset in fetched.aborted
    ]
    return {
        "partition_index": fetched.partition.partition,
        "error_code": fetched.error,
        "high_watermark": fetched.high_watermark,
        "last_stable_offset": fetched.last_stable_offset,
        "log_start_offset": fetched.log_start_offset,
        "aborted_transactions": aborted if committed else None,
        "preferred_read_replica": preferred,
        "records": b"" if preferred >= 0 else fetched.records,
    }
