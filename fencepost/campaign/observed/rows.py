"""What a simulated client reports of an operation, compared with the answers that it got; and whether it asks
the leader that it knows.

Owns the requests and answers of one client's process. It only reads: a run is the same with it. What is wrong
is recorded as an event (ANSWERED), and judged by the check `meantime`. The rules are the protocol's in their
plainest form, and share no code with the client's own. Not asked: rows of consumers in groups.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import define, field, frozen

from fencepost.campaign.observed.differences import NOWHERE, Differences, place_of
from fencepost.campaign.observed.justified import LAST_OFFSET_DELTA, Reason, partition_of
from fencepost.campaign.observed.refusals import Refusals
from fencepost.campaign.observed.requested import ATTEMPTS, READ_COMMITTED
from fencepost.campaign.observed.resting_clients import contradictions_in_client
from fencepost.campaign.observed.timed import batches_in
from fencepost.impl.messages import broker_api
from fencepost.impl.messages.names import name_of
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.sim.host import Host
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.events import Event
from fencepost.traces.operations import ACKS_NONE, Function, Operation, Outcome
from fencepost.traces.outcomes import ErrorCode, outcome_of_attempt
from fencepost.traces.plan import Plan

KEPT = 64
"""Acknowledgements that are kept: the rows of a batch are complete in the step that handles its answer, and a
producer has five in flight to a broker."""
REST_EVERY = 8
"""Answers between two looks at a client at rest."""
KEY_HASH = "key_hash"
"""The partitioner of which the rule is known."""
MULTIPLIER, WORD, POSITIVE = 0x5BD1E995, 0xFFFF_FFFF, 0x7FFF_FFFF
"""Of MurmurHash2; 32 bits; without the sign."""
VALUES = 1_000
"""Value ids of an append: this many times its op id, and the index."""
ASKS: dict[type, tuple[Function, ...]] = {
    broker_api.ProduceRequest: (Function.APPEND,),
    broker_api.FetchRequest: (Function.POLL,),
    broker_api.ListOffsetsRequest: (Function.LIST_OFFSETS, Function.POLL),
    broker_api.DeleteRecordsRequest: (Function.DELETE_RECORDS,),
}
"""The functions of the operations that a request may be for."""


@frozen
class Sent:
    """A request to a leader."""

    target: int
    request: Any
    # When it left, in virtual nanoseconds.
    at: int


@define(eq=False)
class RowTap:
    """The messages of one client's process."""

    process: int
    host: Host
    # Virtual nanoseconds.
    now: Callable[[], int]
    record: Callable[[Event], None]
    plan: Plan
    # By op id, in their order. Of operations that are not complete.
    sent_for: dict[int, list[Sent]] = field(factory=dict)
    # By correlation id: the first answer, and when it came.
    got: dict[int, tuple[Any, int]] = field(factory=dict)
    # By correlation id: the pipelined requests that are not answered.
    batches: dict[int, Sent] = field(factory=dict)
    # The latest acknowledgements of pipelined requests, with those.
    acknowledged: deque[tuple[Sent, Any]] = field(factory=lambda: deque(maxlen=KEPT))
    # Partitions of which a broker said that it does not lead them, until metadata comes.
    refused: dict[TopicPartition, int] = field(factory=dict)
    refusals: Refusals = field(factory=Refusals)
    # Answers that arrived.
    arrived: int = 0
    differences: Differences = field(init=False)

    @differences.default
    def _none_yet(self) -> Differences:
        return Differences(self.now, self.record)

    def received(self, source: int, message: Any) -> None:
        """An answer arrived.

        Args:
            source: the broker.
            message: its answer.
        """
        self._look()
        if type(message) is broker_api.MetadataResponse:
            self.refused.clear()
            return
        if type(message) is broker_api.ProduceResponse and self._hears(message.correlation_id):
            self.refusals.learn(getattr(self.host.core, "producer", None), message, self.now())
        batch = self.batches.pop(message.correlation_id, None)
        if batch is None:
            self.got.setdefault(message.correlation_id, (message, self.now()))
        elif message.error is ErrorCode.NONE:
            self.acknowledged.append((batch, message))
        elif message.error is ErrorCode.NOT_LEADER_OR_FOLLOWER and self._hears(message.correlation_id):
            self.refused[batch.request.partition] = batch.target

    def sent(self, target: int, message: Any) -> None:
        """A request leaves.

        Args:
            target: the broker.
            message: the request.
        """
        if type(message) not in ASKS or self.host.core is None:
            return
        sent = Sent(target, message, self.now())
        if type(message) is broker_api.ProduceRequest and self.plan.client.producer.pipelined:
            self.batches[message.correlation_id] = sent
            if self.refused.get(message.partition) == target:
                expected = "metadata first: it said that it does not lead"
                reason: Reason = f"leader of {message.partition}", expected, target
                self._of(message, reason)
        else:
            self.sent_for.setdefault(message.correlation_id // ATTEMPTS, []).append(sent)
        for one in asks_leader(self.host.core, target, message):
            self._of(message, one)

    def ended(self) -> None:
        """The process ends."""
        self.refusals.refused = None
        for kept in (self.sent_for, self.got, self.batches, self.acknowledged, self.refused):
            kept.clear()

    def completed(self, row: Operation) -> None:
        """An operation is complete.

        Args:
            row: as the client reports it; its times are not set.
        """
        for reason in self.refusals.refuted(self.now()):
            self._row(row, reason)
        requests = [
            one for one in self.sent_for.pop(row.op_id, ()) if row.function in ASKS[type(one.request)]
        ]
        pipelined = row.function is Function.APPEND and self.plan.client.producer.pipelined
        if not pipelined and row.group is None:
            answers = [self._answer(one) for one in requests]
            for reason in refuted(row, requests, answers, self._patience()):
                self._row(row, reason)
        if pipelined and self._is_pipelined():
            reasons = list(_of_batch(row, self.acknowledged))
            if self.plan.client.producer.partitioner == KEY_HASH:
                reasons += _misplaced(row, self.host.core, self.plan)
            for reason in reasons:
                self._row(row, reason)
        for one in requests:
            self.got.pop(one.request.correlation_id, None)

    def _look(self) -> None:
        """What the client did with a refusal, and, now and then, whether it contradicts itself."""
        self.arrived += 1
        core, host = self.host.core, self.host
        for reason in self.refusals.refuted(self.now()):
            self.differences.add(host.node, "row", NOWHERE, "appends", reason)
        if core is not None and host.rests:
            current = getattr(core, "client", core).current
            if current is not None and current.correlation_id in self.got:
                reason = f"operation {current.operation.op_id}", "it goes on: its answer is there", "it waits"
                self.differences.add(host.node, "resting", NOWHERE, "a state", reason)
        if self.arrived % REST_EVERY == 0 and core is not None and host.rests:
            for reason in contradictions_in_client(core, host.timers):
                self.differences.add(host.node, "resting", NOWHERE, "a state", reason)

    def _is_pipelined(self) -> bool:
        """The run's own client is plain, whatever the plan says."""
        return hasattr(self.host.core, "producer")

    def _hears(self, correlation_id: int) -> bool:
        """Whether the producer handles the answer now, and has not given its request up."""
        producer = getattr(self.host.core, "producer", None)
        return self.host.rests and producer is not None and correlation_id in producer.requests

    def _patience(self) -> int:
        return self.plan.client.request_timeout_ms * MILLISECOND

    def _answer(self, one: Sent) -> tuple[Any, int] | None:
        return self.got.get(one.request.correlation_id)

    def _of(self, request: Any, reason: Reason) -> None:
        """A request to the wrong leader."""
        place = place_of(partition_of(request))
        self.differences.add(self.host.node, "unknown_leader", place, name_of(request), reason)

    def _row(self, row: Operation, reason: Reason) -> None:
        """A wrong row."""
        place = row.topic, -1 if row.partition is None else row.partition
        what = f"{row.function} of operation {row.op_id}"
        self.differences.add(self.host.node, "row", place, what, reason)


def asks_leader(core: Any, target: int, request: Any) -> Iterator[Reason]:
    """A client asks the leader that its metadata names, in that epoch.

    Args:
        core: the client.
        target: whom it asks.
        request: one that only a leader answers.

    Yields:
        what differs: of what, expected, seen.
    """
    metadata = getattr(core, "metadata", None) or getattr(getattr(core, "client", None), "metadata", None)
    if metadata is None:
        return
    for one in request.partitions if type(request) is broker_api.FetchRequest else (request,):
        known = metadata.leaders.get(one.partition)
        epoch = getattr(one, "leader_epoch", None)
        if known is None or target != known[0]:
            yield f"leader of {one.partition}", known, target
        elif epoch is not None and epoch != known[1]:
            yield f"leader epoch of {one.partition}", known[1], epoch


def _misplaced(row: Operation, core: Any, plan: Plan) -> Iterator[Reason]:
    """The hash of a key decides, over the partitions that the topic had then."""
    if row.key is None or row.partition is None:
        return
    least = min((one.partitions for one in plan.cluster.topics if one.name == row.topic), default=1)
    most = sum(key.topic == row.topic for key in core.client.metadata.leaders)
    hashed = murmur2(row.key.encode()) & POSITIVE
    expected = sorted({hashed % count for count in range(least, max(least, most) + 1)})
    if row.partition not in expected:
        yield f"partition of key {row.key}", expected, row.partition


def murmur2(data: bytes) -> int:
    """MurmurHash2 with 32 bits and the seed of Kafka's clients, unsigned.

    Args:
        data: the bytes of a key.
    """
    value = (0x9747B28C ^ len(data)) & WORD
    for at in range(0, len(data) - len(data) % 4, 4):
        word = int.from_bytes(data[at : at + 4], "little") * MULTIPLIER & WORD
        word = (word ^ word >> 24) * MULTIPLIER & WORD
        value = value * MULTIPLIER & WORD ^ word
    if rest := data[len(data) - len(data) % 4 :]:
        value = (value ^ int.from_bytes(rest, "little")) * MULTIPLIER & WORD
    value = (value ^ value >> 13) * MULTIPLIER & WORD
    return value ^ value >> 15


# ---- rows


def refuted(
    row: Operation, requests: list[Sent], answers: list[tuple[Any, int] | None], patience: int
) -> Iterator[Reason]:
    """What is wrong with a row.

    Args:
        row: of an operation that is complete.
        requests: to leaders, in their order.
        answers: to each, and when it came; None: none came.
        patience: request.timeout.ms, in nanoseconds.

    Yields:
        of what, expected, seen.
    """
    if row.attempts != len(requests):
        yield "attempts", len(requests), row.attempts
    if requests and row.node != requests[-1].target:
        yield "broker", requests[-1].target, row.node
    if (row.completion_time is None) != (row.outcome is Outcome.UNKNOWN):
        yield "completion", "none, if and only if its outcome is unknown", row.outcome
    last = answers[-1] if answers else None
    if row.outcome is not Outcome.OK:
        if row.function is Function.APPEND and row.acks != ACKS_NONE:
            yield from _undecided(row, requests, answers, patience)
    elif row.function is Function.APPEND and row.acks == ACKS_NONE:
        if row.offset is not None or not requests:
            yield "an append with acks=0", "one request, no offset", (len(requests), row.offset)
    elif last is None:
        yield "answer", "one to its last request", "none"
    else:
        yield from _as_answered(row, requests[-1].request, last[0])


def _undecided(
    row: Operation, requests: list[Sent], answers: list[tuple[Any, int] | None], patience: int
) -> Iterator[Reason]:
    """An append failed if each attempt proves that it wrote nothing; else nobody knows. An answer that comes
    when its attempt was given up is not heard."""
    unknown = False
    for one, answer in zip(requests, answers, strict=True):
        if answer is None or answer[1] - one.at > patience:
            unknown = True
        elif answer[1] - one.at > patience - MILLISECOND:
            return  # which of the two came first is not seen here
        else:
            response = answer[0]
            of_it = outcome_of_attempt(response.error, appended=response.base_offset >= 0)
            unknown = unknown or of_it is Outcome.UNKNOWN
            if of_it is Outcome.OK and one is requests[-1]:
                yield "outcome", "ok: it was acknowledged", row.outcome
                return
    if (row.outcome is Outcome.UNKNOWN) is not unknown:
        yield "outcome", "unknown" if unknown else "fail: no attempt wrote anything", row.outcome


def _of_batch(row: Operation, acknowledged: Iterable[tuple[Sent, Any]]) -> Iterator[Reason]:
    """A pipelined append is one of several in its batch."""
    if (row.completion_time is None) != (row.outcome is Outcome.UNKNOWN):
        yield "completion", "none, if and only if its outcome is unknown", row.outcome
    if row.outcome is not Outcome.OK or row.acks == ACKS_NONE:
        return
    seen = row.node, row.attempts, row.leader_epoch, row.log_start_offset
    answers = [
        (one.target, one.request.correlation_id % ATTEMPTS, answer.leader_epoch, answer.log_start_offset)
        for one, answer in acknowledged
        if tuple(one.request.partition) == (row.topic, row.partition)
        and row.offset is not None
        and 0 <= row.offset - answer.base_offset <= last_delta_of(one.request)
    ]
    if seen not in answers:
        yield f"answer that gave offset {row.offset}", answers, seen


def last_delta_of(request: broker_api.ProduceRequest) -> int:
    """The last offset delta of a batch."""
    return int.from_bytes(request.records[LAST_OFFSET_DELTA])


def _as_answered(row: Operation, request: Any, answer: Any) -> Iterator[Reason]:
    error = answer.partitions[0].error if type(answer) is broker_api.FetchResponse else answer.error
    if error is not ErrorCode.NONE or row.error is not None:
        yield "error", "none, as its answer", (error, row.error)
        return
    kind = type(answer)
    if kind is broker_api.ProduceResponse:
        facts = _appended(row, answer)
    elif kind is broker_api.FetchResponse:
        facts = _polled(row, request, answer.partitions[0])
    elif kind is broker_api.ListOffsetsResponse:
        facts = _listed(row, request, answer)
    else:
        facts = [("log start", answer.low_watermark, row.log_start_offset)]
    yield from (fact for fact in facts if fact[1] != fact[2])


def _appended(row: Operation, answer: broker_api.ProduceResponse) -> list[Reason]:
    base, count = answer.base_offset, len(row.records)
    return [
        ("offset", base, row.offset),
        ("leader epoch", answer.leader_epoch, row.leader_epoch),
        ("log start", answer.log_start_offset, row.log_start_offset),
        ("offsets of records", list(range(base, base + count)), [one.offset for one in row.records]),
        ("epochs of records", {answer.leader_epoch}, {one.leader_epoch for one in row.records}),
        (
            "values",
            list(range(row.op_id * VALUES, row.op_id * VALUES + count)),
            [one.value for one in row.records],
        ),
    ]


def _polled(
    row: Operation, request: broker_api.FetchRequest, one: broker_api.FetchedPartition
) -> list[Reason]:
    position = request.partitions[0].offset
    committed = row.isolation == READ_COMMITTED
    ends = [batch.last + 1 for _, batch in batches_in(one.records)]
    shown = [record.offset for record in row.records]
    inside = all(position <= offset < max(ends, default=0) for offset in shown)
    return [
        ("position", position, row.offset),
        ("high watermark", one.high_watermark, row.end_offset),
        ("last stable offset", one.last_stable_offset if committed else None, row.last_stable_offset),
        ("log start", one.log_start_offset, row.log_start_offset),
        ("leader epoch", one.leader_epoch, row.leader_epoch),
        ("records", f"in order, from {position} to {max(ends, default=position)}", shown)
        if not inside or shown != sorted(set(shown))
        else ("records", True, True),
    ]


def _listed(
    row: Operation, request: broker_api.ListOffsetsRequest, answer: broker_api.ListOffsetsResponse
) -> list[Reason]:
    if request.timestamp >= 0:
        return [("offset", None, row.offset)]
    earliest = request.timestamp == broker_api.EARLIEST
    latest = not earliest and not request.read_committed
    return [
        ("offset", answer.offset, row.offset),
        ("log start", answer.offset if earliest else None, row.log_start_offset),
        ("high watermark", answer.offset if latest else None, row.end_offset),
        ("leader epoch", None if earliest else answer.leader_epoch, row.leader_epoch),
    ]
