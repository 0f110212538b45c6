"""What the coordinator of a transaction, and the leaders that write its markers, must ask and answer, by the
state that they are in when the message leaves.

Owns one function for each kind of message. Each is the protocol's rule in its plainest form, and shares no
code with the coordinator's own. It only reads. Must not know when a message was sent, nor ids of producers
without transactions. A request that is refused at once is compared with the state of that moment; it was also
right if it was right when it arrived.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from fencepost.campaign.observed.between import AskedByBroker
from fencepost.campaign.observed.justified import OFFSETS_TOPIC, Asked, Reason, as_coordinator, as_member
from fencepost.campaign.observed.timed import HEADER_BYTES, batches_in
from fencepost.checkers.meantime.placement import place_of
from fencepost.impl.messages import transaction_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode

STATE_TOPIC = "__transaction_state"
ROLES = {
    ErrorCode.NOT_COORDINATOR: "elsewhere",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "loads",
    ErrorCode.NONE: "coordinates",
}
"""What a broker that answers so is to the transactional id."""
NONE = -1
"""No producer id, and no epoch."""
EMPTY, ONGOING = "Empty", "Ongoing"
PREPARED = {True: "PrepareCommit", False: "PrepareAbort"}
COMPLETE = {True: "CompleteCommit", False: "CompleteAbort"}
"""States of a transaction that ends, by whether it commits."""
ENDING = frozenset(PREPARED.values())
ATTRIBUTES, PRODUCER_ID, PRODUCER_EPOCH = slice(21, 23), slice(43, 51), slice(51, 53)
"""Bytes of a batch."""
CONTROL = 0x20
"""The bit of markers, in the lower byte of the attributes."""


@frozen(kw_only=True)
class Standing:
    """What a broker is to a transactional id, and what it knows of it. Equal if nothing changed."""

    # "elsewhere", "loads" or "coordinates".
    role: str
    # Of the leader of the id's partition.
    leader_epoch: int = NONE
    # Producer id and epoch; None of an id that nobody has used.
    producer: tuple[int, int] | None = None
    # The id of its next transaction, if the epochs are used up.
    next_id: int = NONE
    phase: str = EMPTY
    # The state that is being written; "" if none is.
    pending: str = ""
    partitions: frozenset[TopicPartition] = frozenset()

    @property
    def idle(self) -> bool:
        """Whether a request may change it now."""
        return not self.pending and self.phase not in ENDING


def standing_to(core: Any, transactional_id: str) -> Standing:
    """What a broker is to a transactional id.

    Args:
        core: the broker.
        transactional_id: of a producer.
    """
    table = core.transactions.coordinator.table
    number = place_of(transactional_id, max(1, table.count))
    partition = core.replicas.partitions.get(TopicPartition(STATE_TOPIC, number))
    if partition is None or partition.leader != core.broker_context.node:
        return Standing(role="elsewhere")
    place = table.places.get(number)
    if place is None or place.owned_epoch != partition.leader_epoch:
        return Standing(role="loads", leader_epoch=partition.leader_epoch)
    known = table.transactions.get(transactional_id)
    if known is None:
        return Standing(role="coordinates", leader_epoch=partition.leader_epoch)
    value = known.value
    return Standing(
        role="coordinates",
        leader_epoch=partition.leader_epoch,
        producer=(value.producer_id, value.producer_epoch),
        next_id=value.next_producer_id,
        phase=value.phase.value,
        pending="" if known.pending is None else known.pending.value,
        partitions=frozenset(value.partitions),
    )


def before(core: Any, request: Any) -> tuple[object, ...] | None:
    """What a broker is to a request of a producer that arrives.

    Args:
        core: the broker.
        request: the request.

    Returns:
        a value that is the same if nothing changed; None if the request is not for a coordinator of
        transactions.
    """
    if type(request) not in TO_COORDINATORS or request.transactional_id is None:
        return None
    return (standing_to(core, request.transactional_id),)


def reasons(core: Any, asked: Asked, answer: Any) -> Iterator[Reason]:
    """Why an answer to a producer is wrong.

    Args:
        core: the broker, in the state after the step that answered.
        asked: the request.
        answer: to it.

    Yields:
        of what, expected, seen; nothing if the answer is right.
    """
    rule = RULES.get(type(answer))
    if rule is None or not asked.before:
        return
    if answer.error not in ERRORS:
        yield "error", "one that this request may have", answer.error
    yield from rule(core, asked, answer)


# ---- answers to producers


def _then_and_now(core: Any, asked: Asked) -> tuple[Standing, Standing]:
    then = asked.before[0]
    assert isinstance(then, Standing), then
    return then, standing_to(core, asked.request.transactional_id)


def _refused(then: Standing, now: Standing, request: Any, error: ErrorCode) -> Iterator[Reason]:
    """Errors that say what the broker is, who the producer is, or that it must wait."""
    who = request.producer_id, request.producer_epoch
    if (then.role, then.leader_epoch) == (now.role, now.leader_epoch) and now.role != ROLES.get(
        error, now.role
    ):
        yield "coordinator", f"another answer: {now.role}", error
    if then != now:
        return
    if error is ErrorCode.INVALID_PRODUCER_ID_MAPPING and now.producer and now.producer[0] == who[0]:
        yield f"producer id {who[0]}", "no such error: it is that of the transactional id", error
    elif error is ErrorCode.PRODUCER_FENCED and now.producer == who and now.idle:
        yield f"producer epoch {who[1]}", "no such error: it is the latest", error
    elif error is ErrorCode.CONCURRENT_TRANSACTIONS and now.idle:
        yield "state of the transaction", f"no such error: it is {now.phase}", error


def _initialised(core: Any, asked: Asked, answer: kafka.InitProducerIdResponse) -> Iterator[Reason]:
    request: kafka.InitProducerIdRequest = asked.request
    then, now = _then_and_now(core, asked)
    if not (answer.error is ErrorCode.CONCURRENT_TRANSACTIONS and now.phase == ONGOING):
        yield from _refused(then, now, request, answer.error)
    if answer.error is ErrorCode.PRODUCER_FENCED and request.producer_id == NONE:
        yield "producer", "no such error: it names no id, and fences all others", answer.error
    if answer.error is not ErrorCode.NONE or now.role != "coordinates":
        return
    given = answer.producer_id, answer.producer_epoch
    # those that waited for an id are answered in one step: the state is that after the last
    overtaken = now.producer is not None and now.producer > given
    if not overtaken and (now.producer != given or now.phase != EMPTY):
        yield "producer id, epoch and state", (*given, EMPTY), (now.producer, now.phase)
    if then.role == now.role and then.leader_epoch == now.leader_epoch and then.producer:
        least = then.producer[1] + (request.producer_epoch == NONE)
        if then.producer[0] == given[0] and given[1] < least:
            yield "producer epoch", f"{least} at least: it fences the one before", given[1]


def _added(core: Any, asked: Asked, answer: Any) -> Iterator[Reason]:
    """AddPartitionsToTxn and AddOffsetsToTxn."""
    request = asked.request
    then, now = _then_and_now(core, asked)
    wanted = _wanted(core, request)
    yield from _refused(then, now, request, answer.error)
    who = request.producer_id, request.producer_epoch
    if answer.error is ErrorCode.NONE and now.role == "coordinates":
        if (now.producer, now.phase, wanted <= now.partitions) != (who, ONGOING, True):
            expected = f"{who}, {ONGOING}, with {sorted(wanted)}"
            yield (
                "producer, state and partitions",
                expected,
                (now.producer, now.phase, sorted(now.partitions)),
            )
    elif answer.error is ErrorCode.TRANSACTION_ABORTABLE and then == now and wanted <= now.partitions:
        yield "partitions", f"no such error: {sorted(wanted)} are part of it", answer.error
    elif answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and wanted <= core.metadata.leaders.keys():
        yield "partitions", f"no such error: {sorted(wanted)} are known", answer.error


def _wanted(core: Any, request: Any) -> set[TopicPartition]:
    if type(request) is kafka.AddPartitionsToTxnRequest:
        return set(request.partitions)
    return {TopicPartition(OFFSETS_TOPIC, place_of(request.group_id, max(1, core.groups.table.count)))}


def _ended(core: Any, asked: Asked, answer: kafka.EndTxnResponse) -> Iterator[Reason]:
    request: kafka.EndTxnRequest = asked.request
    then, now = _then_and_now(core, asked)
    yield from _refused(then, now, request, answer.error)
    who = request.producer_id, request.producer_epoch
    if answer.error is ErrorCode.NONE and now.role == "coordinates":
        if now.phase not in (PREPARED[request.commit], COMPLETE[request.commit]):
            yield "state of the transaction", PREPARED[request.commit], now.phase
        if request.version >= 2:
            given = answer.producer_id, answer.producer_epoch
            known = now.producer if now.next_id == NONE else (now.next_id, 0)
            if given != known or (given != (who[0], who[1] + 1) and (given[0] == who[0] or given[1])):
                yield "producer id and epoch of the next transaction", known, given
        elif now.producer != who:
            yield "producer", f"an error: it is {now.producer}", who
        return
    ongoing = then == now and now.idle and now.phase == ONGOING and now.producer == who
    if answer.error is ErrorCode.INVALID_TXN_STATE and ongoing:
        yield "state of the transaction", f"no such error: it is {now.phase}", answer.error


def _offsets_committed(core: Any, asked: Asked, answer: kafka.TxnOffsetCommitResponse) -> Iterator[Reason]:
    """Offsets wait for the marker while the transaction is open in their log."""
    request: kafka.TxnOffsetCommitRequest = asked.request
    if answer.error is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # also said if nobody could be asked
        yield from as_coordinator(core, asked, answer.error)
    if answer.error is not ErrorCode.NONE:  # a member may have been replaced while its offsets were written
        yield from as_member(core, asked, answer.error)
    group = core.groups.table.groups.get(request.group_id)
    key = TopicPartition(OFFSETS_TOPIC, place_of(request.group_id, max(1, core.groups.table.count)))
    partition = core.replicas.partitions.get(key)
    if answer.error is not ErrorCode.NONE or group is None or partition is None:
        return
    if not partition.log.producers.has_open_transaction(request.producer_id, request.producer_epoch):
        return  # its marker came in the same step
    waiting = group.open.get(request.producer_id, {})
    for one in request.offsets:
        if one.partition not in waiting:
            yield f"offset of {one.partition} that waits for its marker", one.offset, "none"


# ---- messages between brokers


def _marks(core: Any, target: int, request: kafka.WriteTxnMarkersRequest) -> Iterator[Reason]:
    """A coordinator sends the end that is decided, to the leaders of the transaction's partitions."""
    marker, table = request.marker, core.transactions.coordinator.table
    known = [one for one in table.transactions.values() if one.value.producer_id == marker.producer_id]
    expected = [
        (one.value.producer_epoch, one.value.phase.value, place.owned_epoch)
        for one in known
        if (place := table.places.get(one.number)) is not None
    ]
    seen = marker.producer_epoch, PREPARED[marker.commit], marker.coordinator_epoch
    if known and seen not in expected:
        yield f"epoch, state and coordinator epoch of producer {marker.producer_id}", expected, seen
    for one in known:
        if not set(marker.partitions) <= set(one.value.partitions):
            yield "partitions", sorted(one.value.partitions), sorted(marker.partitions)
    for key in marker.partitions:
        if core.metadata.leader_of(key) != target:
            yield f"leader of {key}", core.metadata.leader_of(key), target


def _asks_coordinator(core: Any, target: int, request: kafka.AddPartitionsToTxnRequest) -> Iterator[Reason]:
    number = place_of(request.transactional_id, max(1, core.transactions.coordinator.table.count))
    coordinator = core.metadata.leader_of(TopicPartition(STATE_TOPIC, number))
    if target != coordinator:
        yield f"coordinator of {request.transactional_id}", coordinator, target


def _verified(core: Any, asked: AskedByBroker, answer: kafka.AddPartitionsToTxnResponse) -> Iterator[Reason]:
    """Whether a partition is part of a transaction is answered at once, by the state of this moment. If it is
    to be added, the state at the arrival is not known, so that most errors may be right."""
    request: kafka.AddPartitionsToTxnRequest = asked.request
    now = standing_to(core, request.transactional_id)
    then = now if request.verify_only else Standing(role="unknown")
    yield from _added(core, Asked(request, asked.since, (then,)), answer)


def _marked(core: Any, asked: AskedByBroker, answer: kafka.WriteTxnMarkersResponse) -> Iterator[Reason]:
    """A marker that is acknowledged is in the log, below its high watermark."""
    marker: kafka.TxnMarker = asked.request.marker
    errors = dict(answer.errors)
    if errors.keys() != set(marker.partitions):
        yield "partitions", sorted(set(marker.partitions)), sorted(errors)
    for key, error in sorted(errors.items()):
        partition = core.replicas.partitions.get(key)
        if error is not ErrorCode.NONE or partition is None or partition.leader != core.broker_context.node:
            continue
        log = partition.log
        if log.options.compact or not log.options.contiguous:
            continue
        wanted = marker.producer_id, marker.producer_epoch
        ends = [last for *who, last in _markers(log) if tuple(who) == wanted]
        if not any(last < partition.high_watermark for last in ends):
            expected = f"one of {wanted} below {partition.high_watermark}"
            yield f"marker in {key}", expected, f"at {ends}" if ends else "none"


def _markers(log: Any) -> Iterator[tuple[int, int, int]]:
    """Producer id, epoch and offset of each marker in a log."""
    for segment in log.segments.all:
        content = segment.file._file.content
        for at, batch in batches_in(content):
            header = content[at : at + HEADER_BYTES]
            if header[ATTRIBUTES][1] & CONTROL:
                producer = int.from_bytes(header[PRODUCER_ID], signed=True)
                yield producer, int.from_bytes(header[PRODUCER_EPOCH], signed=True), batch.last


TO_COORDINATORS = frozenset(
    {
        kafka.InitProducerIdRequest,
        kafka.AddPartitionsToTxnRequest,
        kafka.AddOffsetsToTxnRequest,
        kafka.EndTxnRequest,
    }
)
_E = ErrorCode
ERRORS = frozenset(
    {_E.NONE, _E.NOT_COORDINATOR, _E.COORDINATOR_LOAD_IN_PROGRESS, _E.COORDINATOR_NOT_AVAILABLE}
    | {_E.INVALID_PRODUCER_ID_MAPPING, _E.PRODUCER_FENCED, _E.INVALID_PRODUCER_EPOCH}
    | {_E.CONCURRENT_TRANSACTIONS, _E.INVALID_TXN_STATE, _E.TRANSACTION_ABORTABLE}
    | {_E.UNKNOWN_TOPIC_OR_PARTITION, _E.FENCED_INSTANCE_ID, _E.ILLEGAL_GENERATION, _E.UNKNOWN_MEMBER_ID}
    | {_E.REQUEST_TIMED_OUT, _E.UNKNOWN_SERVER_ERROR}
)
"""That an answer to a simulated producer may have."""
RULES: Mapping[type, Callable[[Any, Asked, Any], Iterator[Reason]]] = {
    kafka.InitProducerIdResponse: _initialised,
    kafka.AddPartitionsToTxnResponse: _added,
    kafka.AddOffsetsToTxnResponse: _added,
    kafka.EndTxnResponse: _ended,
    kafka.TxnOffsetCommitResponse: _offsets_committed,
}
"""By class of the answer to a producer."""
REQUESTS: Mapping[type, Callable[[Any, int, Any], Iterator[Reason]]] = {
    kafka.WriteTxnMarkersRequest: _marks,
    kafka.AddPartitionsToTxnRequest: _asks_coordinator,
}
"""By class of a request between brokers: of the sender, whom it goes to, the request."""
ANSWERS: Mapping[type, Callable[[Any, AskedByBroker, Any], Iterator[Reason]]] = {
    kafka.WriteTxnMarkersResponse: _marked,
    kafka.AddPartitionsToTxnResponse: _verified,
}
"""By class of the answer to such a request."""
