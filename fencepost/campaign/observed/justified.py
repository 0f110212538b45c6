"""What an answer of a broker must say, by the state that the broker is in when the answer leaves.

Owns one function for each kind of answer. Each is the protocol's rule in its plainest form, and shares no
code with the broker's own. Must not know when an answer was sent. A state may change while a request waits in
a queue: what was right at its arrival or is right now is right.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from fencepost.campaign.observed.timed import first_at
from fencepost.checkers.meantime.placement import place_of
from fencepost.impl.messages import broker_api, group_api
from fencepost.impl.messages.broker_api import EARLIEST, TopicPartition
from fencepost.traces.operations import ACKS_ALL
from fencepost.traces.outcomes import ErrorCode

OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL = (OFFSETS_TOPIC, "__transaction_state")
LAST_OFFSET_DELTA = slice(23, 27)
"""Bytes of a batch: its number of records less one."""
BASE_OFFSET = slice(0, 8)
"""Bytes of a batch."""
PREPARING = "PreparingRebalance"
OF_MEMBERS = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)
"""Errors of members. With these a coordinator refuses a commit before it writes anything."""


@frozen
class Asked:
    """A request under way."""

    request: Any
    # When it arrived, in nanoseconds.
    since: int
    # What the broker was then, as `standing` says.
    before: tuple[object, ...]
    # For JoinGroup and SyncGroup: whether the sender was a member then.
    member: bool = False


Reason = tuple[str, object, object]
"""What is wrong: of what, expected, seen."""


def is_member(core: Any, request: Any) -> bool:
    """Whether the sender of a JoinGroup or SyncGroup is a member of its group.

    Args:
        core: the broker.
        request: the request.
    """
    group = core.groups.table.groups.get(request.group_id)
    return group is not None and request.member_id in group.members


def partition_of(request: Any) -> TopicPartition | None:
    """The partition that a request is about; None if it is about none or several."""
    key = getattr(request, "partition", None)
    if key is None and isinstance(request, broker_api.FetchRequest) and len(request.partitions) == 1:
        key = request.partitions[0].partition
    return key


def standing(core: Any, request: Any) -> tuple[object, ...]:
    """What the broker is to the request: the leader epoch in which it leads the partition, or the epoch in
    which it coordinates the group, and the group's generation and state.

    Args:
        core: the broker.
        request: that arrived.

    Returns:
        a value that is the same if nothing changed.
    """
    kind = type(request)
    if kind is broker_api.FetchRequest:
        return tuple([_led(core, one.partition) for one in request.partitions])
    if kind is broker_api.MetadataRequest:
        return ()
    key = getattr(request, "partition", None)
    if key is not None:
        return _led(core, key)
    group_id = getattr(request, "group_id", None)
    return () if group_id is None else _coordinated(core, group_id)


def _led(core: Any, key: TopicPartition) -> tuple[object, ...]:
    partition = core.replicas.partitions.get(key)
    if partition is None:
        return ("absent",)
    return ("leads" if partition.leader == core.broker_context.node else "follows", partition.leader_epoch)


def _coordinated(core: Any, group_id: str) -> tuple[object, ...]:
    table = core.groups.table
    place = table.place(_place(core, group_id))
    led = _led(core, TopicPartition(OFFSETS_TOPIC, place.number))
    if led[0] != "leads":
        return ("elsewhere",)
    if place.owned_epoch != led[1]:
        return ("loads", led[1])
    group = table.groups.get(group_id)
    return (
        "coordinates",
        led[1],
        -1 if group is None else group.generation,
        "" if group is None else group.phase,
    )


def coordinated_in(core: Any, group_id: str) -> tuple[int, int]:
    """Where and since when a broker coordinates a group.

    Args:
        core: the broker.
        group_id: the group.

    Returns:
        the number of its offsets partition, and the leader epoch; -1 if the broker does not coordinate it.
    """
    number = _place(core, group_id)
    return number, core.groups.table.place(number).owned_epoch


def _place(core: Any, group_id: str) -> int:
    return place_of(group_id, max(1, core.groups.table.count))


def reasons(core: Any, asked: Asked, answer: Any) -> Iterator[Reason]:
    """Why an answer is wrong.

    Args:
        core: the broker, in the state after the step that answered.
        asked: the request.
        answer: to it.

    Yields:
        what was expected and what was seen; nothing if the answer is right.
    """
    kind = type(answer)
    rule, errors = RULES.get(kind), ERRORS.get(kind)
    if errors is not None and answer.error is not ErrorCode.NONE and answer.error not in errors:
        yield "error", "one that this request may have", answer.error
    if rule is not None:
        yield from rule(core, asked, answer)


# ---- records


def _error(
    core: Any, before: tuple[object, ...], key: TopicPartition, error: ErrorCode, epoch: int
) -> Iterator[Reason]:
    """An error that says what the broker is. before: what it was; epoch: in the request, -1: none."""
    now = _led(core, key)
    same = before == now
    if error is ErrorCode.NOT_LEADER_OR_FOLLOWER and same and 0 <= epoch != _epoch(now) >= 0:
        yield f"leader epoch {epoch}", f"an error about it first: its own is {_epoch(now)}", error
    if error is ErrorCode.NOT_LEADER_OR_FOLLOWER and same and now[0] == "leads":
        yield f"role in {key}", "no error: it leads, and did when it was asked", error
    elif error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and same and now[0] != "absent":
        yield f"{key}", "no such error: it has a replica", error
    fenced = error is ErrorCode.FENCED_LEADER_EPOCH and epoch >= max(_epoch(now), _epoch(before))
    unknown = error is ErrorCode.UNKNOWN_LEADER_EPOCH and same and epoch <= _epoch(now)
    if fenced or unknown:
        yield f"leader epoch {epoch}", f"no such error: its own is {_epoch(now)}", error


def _epoch(standing: tuple[object, ...]) -> int:
    return standing[1] if len(standing) > 1 and isinstance(standing[1], int) else -1


def _leads(core: Any, before: tuple[object, ...], key: TopicPartition, epoch: int) -> Iterator[Reason]:
    """Only a leader serves, and only who knows its epoch."""
    now = _led(core, key)
    if now[0] != "leads" and before == now:
        yield f"role in {key}", "an error: it does not lead", "no error"
    if epoch >= 0 and epoch not in (_epoch(now), _epoch(before)):
        yield f"leader epoch {epoch}", f"an error: its own is {_epoch(now)}", "no error"


def _produced(core: Any, asked: Asked, answer: broker_api.ProduceResponse) -> Iterator[Reason]:
    request: broker_api.ProduceRequest = asked.request
    key = request.partition
    # the word of the coordinator, which may not have heard of the topic yet, is passed on
    unheard = request.adds_partition and answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if answer.error is not ErrorCode.NONE and not unheard:
        yield from _error(core, asked.before, key, answer.error, -1)
    partition = core.replicas.partitions.get(key)
    if partition is None or asked.before != _led(core, key):
        return
    end = answer.base_offset + int.from_bytes(request.records[LAST_OFFSET_DELTA]) + 1
    waits, enough, minimum = request.acks == ACKS_ALL, True, 1
    if waits:
        minimum = core.broker_context.topic_options(key.topic).min_insync_replicas
        enough = len(partition.isr) >= min(minimum, len(partition.replicas) or 1)
    if answer.error is ErrorCode.NONE:
        if partition.leader != core.broker_context.node:
            yield f"role in {key}", "an error: it does not lead", "no error"
        shown = partition.high_watermark if waits else partition.log.log_end_offset
        if answer.base_offset < 0 or end > shown:
            yield "acknowledged offsets", f"0 to {shown}", f"{answer.base_offset} to {end}"
        if answer.leader_epoch > partition.leader_epoch:
            yield "leader epoch", partition.leader_epoch, answer.leader_epoch
        if answer.log_start_offset != partition.log.log_start_offset:
            yield "log start offset", partition.log.log_start_offset, answer.log_start_offset
        if waits and not enough:
            yield "ISR", f"an error: {partition.isr} has fewer than {minimum} members", "no error"
    elif answer.error is ErrorCode.REQUEST_TIMED_OUT and end <= partition.high_watermark:
        yield "high watermark", f"no error: {partition.high_watermark} is not below {end}", answer.error
    elif answer.error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND and enough:
        yield "ISR", f"no such error: {partition.isr} has {minimum} members", answer.error


def _fetched(core: Any, asked: Asked, answer: broker_api.FetchResponse) -> Iterator[Reason]:
    request: broker_api.FetchRequest = asked.request
    places = [(one.partition, one.offset, one.leader_epoch) for one in request.partitions]
    if [key for key, _, _ in places] != [one.partition for one in answer.partitions]:
        yield (
            "partitions",
            [str(key) for key, _, _ in places],
            [str(one.partition) for one in answer.partitions],
        )
        return
    alone = len(places) == 1
    for (key, offset, epoch), one, before in zip(places, answer.partitions, asked.before, strict=True):
        assert isinstance(before, tuple)
        if one.error is not ErrorCode.NONE:
            yield from _error(core, before, key, one.error, epoch)
        partition = core.replicas.partitions.get(key)
        if partition is None or before != _led(core, key):
            continue  # the step that answered changed one partition after the other
        log, mark = partition.log, partition.high_watermark
        if one.error is ErrorCode.OFFSET_OUT_OF_RANGE and log.log_start_offset <= offset <= mark:
            yield f"offset {offset}", f"records from {log.log_start_offset} to {mark}", one.error
        if one.error is not ErrorCode.NONE:
            continue
        if before[0] != "leads" or 0 <= epoch != partition.leader_epoch:
            yield from _leads(core, before, key, epoch)
        seen = one.leader_epoch, one.high_watermark, one.log_start_offset
        expected = partition.leader_epoch, mark, log.log_start_offset
        if seen != expected and (alone or one.high_watermark > mark):
            yield f"leader epoch, high watermark and log start of {key}", expected, seen
        if not log.log_start_offset <= offset <= log.log_end_offset:
            yield (
                f"offset {offset}",
                f"an error: the log is {log.log_start_offset} to {log.log_end_offset}",
                "none",
            )
        yield from _shown(request, offset, partition, one, alone=alone)


def _shown(
    request: broker_api.FetchRequest,
    offset: int,
    partition: Any,
    one: broker_api.FetchedPartition,
    *,
    alone: bool,
) -> Iterator[Reason]:
    """Whether the records begin where they were asked for, and whether there are some if there can be."""
    dense = not partition.log.options.compact and partition.log.options.contiguous
    if one.records:
        base = int.from_bytes(one.records[BASE_OFFSET])
        if base > offset and dense:
            yield "first batch", f"one that holds offset {offset}", f"one from {base} on"
    elif alone and dense and not request.read_committed and offset < partition.high_watermark:
        yield "records", f"those from {offset} to {partition.high_watermark}", "none"


def _listed(core: Any, asked: Asked, answer: broker_api.ListOffsetsResponse) -> Iterator[Reason]:
    request: broker_api.ListOffsetsRequest = asked.request
    key, epoch = request.partition, request.leader_epoch
    yield from _error(core, asked.before, key, answer.error, epoch)
    partition = core.replicas.partitions.get(key)
    if answer.error is not ErrorCode.NONE or partition is None:
        return
    yield from _leads(core, asked.before, key, epoch)
    if request.timestamp >= 0:
        yield from _timed(partition, request, answer)
        return
    expected = partition.log.log_start_offset if request.timestamp == EARLIEST else partition.high_watermark
    committed = request.read_committed and request.timestamp != EARLIEST
    if answer.offset > expected or (answer.offset < expected and not committed):
        yield "offset", expected, answer.offset
    if answer.leader_epoch != partition.leader_epoch:
        yield "leader epoch", partition.leader_epoch, answer.leader_epoch


def _timed(
    partition: Any, request: broker_api.ListOffsetsRequest, answer: broker_api.ListOffsetsResponse
) -> Iterator[Reason]:
    """The first record of a time or later, below the end that the client may see. A log that was compacted
    keeps times of records that are gone, and one that starts inside of a batch has others than its header
    says."""
    log = partition.log
    found = first_at(log, request.timestamp)
    if log.options.compact or (found is not None and found.base < log.log_start_offset):
        return
    there = found is not None and found.base < partition.high_watermark
    if not there and answer.offset >= 0:
        yield f"offset of time {request.timestamp}", "none", answer.offset
    elif found is not None and there and (answer.offset >= 0 or not request.read_committed):
        if not found.base <= answer.offset <= found.last:
            yield f"offset of time {request.timestamp}", f"{found.base} to {found.last}", answer.offset
        elif not request.timestamp <= answer.timestamp <= found.timestamp_ms:
            yield (
                f"time of offset {answer.offset}",
                f"{request.timestamp} to {found.timestamp_ms}",
                answer.timestamp,
            )
        elif answer.leader_epoch != found.leader_epoch:
            yield "leader epoch", found.leader_epoch, answer.leader_epoch


def _deleted(core: Any, asked: Asked, answer: broker_api.DeleteRecordsResponse) -> Iterator[Reason]:
    request: broker_api.DeleteRecordsRequest = asked.request
    yield from _error(core, asked.before, request.partition, answer.error, -1)
    partition = core.replicas.partitions.get(request.partition)
    if partition is None:
        return
    if answer.error is ErrorCode.NONE:
        start = partition.log.log_start_offset
        if answer.low_watermark != start or start < request.offset:
            yield "low watermark", f"{max(start, request.offset)}", answer.low_watermark
    elif answer.error is ErrorCode.OFFSET_OUT_OF_RANGE and 0 <= request.offset <= partition.high_watermark:
        yield f"offset {request.offset}", f"no error: high watermark {partition.high_watermark}", answer.error


def _metadata(core: Any, asked: Asked, answer: broker_api.MetadataResponse) -> Iterator[Reason]:
    """As the controller's last UpdateMetadata said, and nothing left out."""
    cache = core.metadata
    wanted = asked.request.topics
    expected = {
        (state.partition, state.leader, state.leader_epoch, state.replicas, state.isr)
        for topic, known in cache.topics.items()
        if wanted is None or topic in wanted
        for state in known.values()
    }
    seen = {(one.partition, one.leader, one.leader_epoch, one.replicas, one.isr) for one in answer.partitions}
    if expected != seen or len(seen) != len(answer.partitions):
        yield "partitions", sorted(expected - seen), sorted(seen - expected)
    if (answer.live_brokers, answer.controller_id) != (cache.live_brokers, cache.controller_id):
        yield "brokers", cache.live_brokers, answer.live_brokers


# ---- groups


def _coordinator(core: Any, asked: Asked, answer: group_api.FindCoordinatorResponse) -> Iterator[Reason]:
    request: group_api.FindCoordinatorRequest = asked.request
    if request.transactional:
        return
    leader = core.metadata.leaders.get(
        TopicPartition(OFFSETS_TOPIC, _place(core, request.group_id)), (-1, -1)
    )[0]
    if answer.error is ErrorCode.NONE and answer.node != leader:
        yield f"coordinator of {request.group_id}", leader, answer.node
    runs = leader in core.metadata.live_brokers or leader in core.metadata.shutting_down
    if answer.error is not ErrorCode.NONE and leader >= 0 and runs:
        yield f"coordinator of {request.group_id}", leader, answer.error


def as_coordinator(
    core: Any, asked: Asked, error: ErrorCode, *, loads: ErrorCode | None = None
) -> Iterator[Reason]:
    """The errors that say what a coordinator is. loads: said instead of a load in progress."""
    now = _coordinated(core, asked.request.group_id)
    if now != asked.before:
        return
    if error is ErrorCode.NOT_COORDINATOR and now[0] != "elsewhere":
        yield "coordinator", "no such error: it leads the partition of the group", error
    elif error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and now[0] != "loads":
        yield "coordinator", "no such error: it has loaded the group", error
    elif now[0] == "elsewhere" and error is ErrorCode.NONE:
        yield "coordinator", ErrorCode.NOT_COORDINATOR, error
    elif now[0] == "loads" and error is ErrorCode.NONE and loads is not error:
        yield "coordinator", "an error: the group is not loaded", error


def as_member(core: Any, asked: Asked, error: ErrorCode) -> Iterator[Reason]:
    """Whether an error about a member or its generation is right, and none."""
    request = asked.request
    now = _coordinated(core, request.group_id)
    if now != asked.before or now[0] != "coordinates":
        return
    group = core.groups.table.groups.get(request.group_id)
    known = group is not None and request.member_id in group.members
    current = group is not None and request.generation_id == group.generation
    if error is ErrorCode.UNKNOWN_MEMBER_ID and known and request.group_instance_id is None:
        yield f"member {request.member_id}", "no such error: it is a member", error
    elif error is ErrorCode.ILLEGAL_GENERATION and current and known:
        yield "generation", "no such error: it is the current one", error
    elif error is ErrorCode.NONE and request.generation_id >= 0 and not (known and current):
        yield (
            "member",
            f"an error: no member, or not generation {now[2]}",
            f"none for {request.generation_id}",
        )


def _heartbeat(core: Any, asked: Asked, answer: group_api.HeartbeatResponse) -> Iterator[Reason]:
    yield from as_coordinator(core, asked, answer.error, loads=ErrorCode.NONE)
    yield from as_member(core, asked, answer.error)
    now = _coordinated(core, asked.request.group_id)
    if now == asked.before and now[0] == "coordinates":
        moves = answer.error is ErrorCode.REBALANCE_IN_PROGRESS
        if moves != (now[3] == PREPARING) and answer.error in (
            ErrorCode.NONE,
            ErrorCode.REBALANCE_IN_PROGRESS,
        ):
            yield "state of the group", now[3], answer.error


def _joined(core: Any, asked: Asked, answer: group_api.JoinGroupResponse) -> Iterator[Reason]:
    group = core.groups.table.groups.get(asked.request.group_id)
    if answer.error is not ErrorCode.NONE or group is None:
        return
    if answer.member_id not in group.members:
        yield "member", f"one of {sorted(group.members)}", answer.member_id
    expected = group.generation, group.protocol
    if (answer.generation_id, answer.protocol_name) != expected:
        yield "generation and protocol", expected, (answer.generation_id, answer.protocol_name)
    if answer.leader == answer.member_id:
        known = {one.member_id: dict(one.protocols).get(group.protocol) for one in group.members.values()}
        if dict(answer.members) != known:
            yield "members for the leader", sorted(known), sorted(dict(answer.members))


def _synced(core: Any, asked: Asked, answer: group_api.SyncGroupResponse) -> Iterator[Reason]:
    request: group_api.SyncGroupRequest = asked.request
    group = core.groups.table.groups.get(request.group_id)
    if answer.error is not ErrorCode.NONE or group is None:
        return
    member = group.members.get(request.member_id)
    if member is None or group.generation != request.generation_id:
        yield "member", f"an error: not a member of generation {group.generation}", "no error"
    elif member.assignment != answer.assignment:
        yield "assignment", member.assignment.hex(), answer.assignment.hex()


def _committed(core: Any, asked: Asked, answer: group_api.OffsetCommitResponse) -> Iterator[Reason]:
    yield from as_coordinator(core, asked, answer.error)
    if answer.appended and answer.error in OF_MEMBERS:
        yield "whether it was written", "no: it was refused before", "yes"
    request: group_api.OffsetCommitRequest = asked.request
    group = core.groups.table.groups.get(request.group_id)
    if (
        answer.error is ErrorCode.NONE
        and group is not None
        and asked.before == _coordinated(core, request.group_id)
    ):
        for one in request.offsets:
            if one.partition not in group.offsets:
                yield f"committed offset of {one.partition}", one.offset, "none"


def _offsets(core: Any, asked: Asked, answer: group_api.OffsetFetchResponse) -> Iterator[Reason]:
    yield from as_coordinator(core, asked, answer.error)
    request: group_api.OffsetFetchRequest = asked.request
    if answer.error is not ErrorCode.NONE:
        return
    group = core.groups.table.groups.get(request.group_id)
    known = {} if group is None else group.offsets
    expected = {
        key: (known[key].value.offset, known[key].value.leader_epoch) if key in known else (-1, -1)
        for key in request.partitions or known
    }
    seen = {one.partition: (one.offset, one.leader_epoch) for one in answer.offsets}
    if expected != seen:
        yield f"committed offsets of {request.group_id}", _worded(expected), _worded(seen)


def _worded(offsets: Mapping[TopicPartition, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    return {str(key): value for key, value in sorted(offsets.items())}


_E = ErrorCode
_OF_LEADERS = {_E.NOT_LEADER_OR_FOLLOWER, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.KAFKA_STORAGE_ERROR}
_OF_COORDINATORS = {_E.NOT_COORDINATOR, _E.COORDINATOR_LOAD_IN_PROGRESS, _E.COORDINATOR_NOT_AVAILABLE}
ERRORS: Mapping[type, set[ErrorCode]] = {
    broker_api.ListOffsetsResponse: _OF_LEADERS
    | {_E.FENCED_LEADER_EPOCH, _E.UNKNOWN_LEADER_EPOCH, _E.OFFSET_NOT_AVAILABLE, _E.CORRUPT_MESSAGE},
    broker_api.DeleteRecordsResponse: _OF_LEADERS
    | {_E.OFFSET_OUT_OF_RANGE, _E.INVALID_TOPIC_EXCEPTION, _E.POLICY_VIOLATION, _E.REQUEST_TIMED_OUT},
    broker_api.ProduceResponse: _OF_LEADERS
    | {_E.NOT_ENOUGH_REPLICAS, _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, _E.REQUEST_TIMED_OUT, _E.CORRUPT_MESSAGE}
    | {_E.INVALID_RECORD, _E.INVALID_TIMESTAMP, _E.MESSAGE_TOO_LARGE, _E.INVALID_TOPIC_EXCEPTION}
    | {_E.OUT_OF_ORDER_SEQUENCE_NUMBER, _E.INVALID_PRODUCER_EPOCH, _E.INVALID_TXN_STATE}
    | {_E.INVALID_PRODUCER_ID_MAPPING, _E.CONCURRENT_TRANSACTIONS, _E.TRANSACTION_ABORTABLE}
    | {_E.PRODUCER_FENCED, _E.UNKNOWN_PRODUCER_ID}
    | _OF_COORDINATORS,
    group_api.HeartbeatResponse: _OF_COORDINATORS | OF_MEMBERS,
    group_api.SyncGroupResponse: _OF_COORDINATORS | OF_MEMBERS | {_E.INCONSISTENT_GROUP_PROTOCOL},
    group_api.LeaveGroupResponse: _OF_COORDINATORS | OF_MEMBERS,
    group_api.OffsetFetchResponse: _OF_COORDINATORS | {_E.UNSTABLE_OFFSET_COMMIT},
    group_api.FindCoordinatorResponse: {_E.COORDINATOR_NOT_AVAILABLE, _E.INVALID_GROUP_ID},
}
"""The errors that an answer may have, by its class, where the protocol's list is short."""
RULES: Mapping[type, Callable[[Any, Asked, Any], Iterator[Reason]]] = {
    broker_api.ProduceResponse: _produced,
    broker_api.FetchResponse: _fetched,
    broker_api.ListOffsetsResponse: _listed,
    broker_api.DeleteRecordsResponse: _deleted,
    broker_api.MetadataResponse: _metadata,
    group_api.FindCoordinatorResponse: _coordinator,
    group_api.HeartbeatResponse: _heartbeat,
    group_api.JoinGroupResponse: _joined,
    group_api.SyncGroupResponse: _synced,
    group_api.OffsetCommitResponse: _committed,
    group_api.OffsetFetchResponse: _offsets,
}
"""By class of the answer."""
