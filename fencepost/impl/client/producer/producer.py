"""The producer: appends wait for others of their partition, several batches are in flight, each is retried
until it is decided or its time is up (P2).

Owns attempts and timeouts. Other modules own batches (accumulator.py), sequence numbers (sequences.py), the
choice of a partition (client/partitioners.py), requests to any broker (producer_requests.py) and the rows of
a trace (completion.py). Must not know its user, or how rows are recorded. One request has one batch.
traces/kafka_names/outcomes.py maps a response to ok, fail or unknown. Without idempotence, an attempt with an
unknown outcome ends its appends as unknown, unless the producer is configured to retry it.

    append -> place -> line of its partition -> batch -> request -> response -> completion of each append
                                          ^                 |
                                          +---- retry ------+
"""

from collections import deque

from attrs import define, field

from fencepost.impl.client.attempt import FINAL_ERRORS
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.client.partitioners import Partitioner
from fencepost.impl.client.producer.accumulator import NONE, Accumulator, Line, ProducerBatch
from fencepost.impl.client.producer.completion import completions, unplaced
from fencepost.impl.client.producer.sequences import SEQUENCE_ERRORS, Sequences
from fencepost.impl.client.producer_requests import IDENTITY, METADATA, Asking
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.core.core_interface import (
    CancelTimer,
    Effect,
    Input,
    MessageArrived,
    Produce,
    RecordEvent,
    Send,
    SetTimer,
    StopRequested,
    TimerFired,
    TimerKey,
)
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode, outcome_of_attempt
from fencepost.traces.operations import ACKS_NONE, Outcome
from fencepost.traces.plan import ClientOptions

MAX_ATTEMPTS = 256
"""A correlation id has space for this many attempts of a batch. The delivery timeout allows far fewer at the
default back-off."""
REMEMBERED = 7
"""So many batches later one is sent again on purpose: a log remembers five."""
LATE_SEND_REFUSED = "late_send_refused"
LINGER, RETRY, REQUEST, DELIVERY, PLACING = (
    "produce_linger",
    "produce_retry",
    "produce_request",
    "produce_delivery",
    "produce_placing",
)
KINDS = frozenset({LINGER, RETRY, REQUEST, DELIVERY, PLACING, METADATA[0], IDENTITY[0]})
"""The first elements of the keys of this core's timers."""


@define(eq=False)
class Producer:
    """A producer."""

    # The process in the trace.
    process: int
    # The options of clients.
    options: ClientOptions
    # The known leaders.
    metadata: ClientMetadata
    # Chooses partitions.
    partitioner: Partitioner
    # Producer id and sequence numbers.
    sequences: Sequences
    # The batches.
    accumulator: Accumulator
    # Requests to any broker.
    asking: Asking
    # Appends to a topic that is not known yet.
    homeless: deque[Produce] = field(factory=deque)
    # Batches in flight, by correlation id.
    requests: dict[int, ProducerBatch] = field(factory=dict)
    # Whether batches are sent without lingering.
    closing: bool = False
    # Effects of the current step.
    outbox: list[Effect] = field(factory=list)
    # Host time of the current step in nanoseconds.
    now: int = 0

    def step(self, input: Input, now: int) -> list[Effect]:
        """Apply the input `input` at host time `now` (nanoseconds); returns the effects."""
        self.now, self.outbox = now, []
        if isinstance(input, Produce):
            self._produce(input)
        elif isinstance(input, MessageArrived):
            self._on_message(input.message)
        elif isinstance(input, TimerFired):
            self._on_timer(input.key)
        elif isinstance(input, StopRequested):
            self.closing = True
        self._drain()
        return self.outbox

    @property
    def idle(self) -> bool:
        """Whether every append has its outcome."""
        return not self.homeless and not any(True for _ in self.accumulator.batches())

    @property
    def buffered_bytes(self) -> int:
        """Bytes of appends without an outcome. A sender should wait while it is large (buffer.memory)."""
        return sum(batch.size for batch in self.accumulator.batches())

    # ---- placing

    def _produce(self, append: Produce) -> None:
        self._settle_homeless()  # the topic may have become known: waiting appends go first
        if append.partition < 0 and not self.metadata.view(append.topic).partitions:
            self.homeless.append(append)
            self._set((PLACING, append.op_id), self.now + self.options.delivery_timeout_ms * MILLISECOND)
            return
        self._place(append)

    def _place(self, append: Produce) -> None:
        number = append.partition
        if number < 0:
            view = self.metadata.view(append.topic)
            number = self.partitioner.partition(view, append.key, append.op_id)
            if not self.accumulator.has_room(TopicPartition(append.topic, number), append):
                self.partitioner.on_new_batch(view, number, append.op_id)
                number = self.partitioner.partition(view, append.key, append.op_id)
        key = TopicPartition(append.topic, number)
        begun = self.accumulator.add(key, append, self.now)
        if begun is not None:
            options = self.options
            self._set((DELIVERY, begun.number), self.now + options.delivery_timeout_ms * MILLISECOND)
            if options.producer.linger_ms:
                linger = options.producer.linger_ms * MILLISECOND
                self._set((LINGER, key.topic, key.partition), self.now + linger)

    def _settle_homeless(self) -> None:
        waiting, self.homeless = self.homeless, deque()
        for append in waiting:
            if self.metadata.view(append.topic).partitions:
                self._cancel((PLACING, append.op_id))
                self._place(append)
            else:
                self.homeless.append(append)

    # ---- sending

    def _drain(self) -> None:
        """Send what may be sent, and ask for what is missing."""
        wants_metadata, wants_id = bool(self.homeless), False
        for line in self.accumulator.lines.values():
            self.sequences.resolve(line)
            while line.waiting:
                batch = self.sequences.next_of(line)
                if batch is None:
                    wants_id |= self.sequences.needs_id and self.sequences.numbers(line.waiting[0])
                    break
                if not self._is_ready(line, batch):
                    break
                leader = None if line.stale else self.metadata.leader(line.key)
                if leader is None:
                    wants_metadata = True
                    break
                if self._in_flight(leader[0]) >= self.options.producer.max_in_flight:
                    break
                self._send(line, batch, leader[0])
        if wants_metadata:
            self.outbox += self.asking.ask(METADATA, self.now)
        if wants_id:
            self.outbox += self.asking.ask(IDENTITY, self.now)

    def _is_ready(self, line: Line, batch: ProducerBatch) -> bool:
        """Whether the batch is full or has lingered; for a retry, whether its back-off is over. A batch with
        a passed deadline waits for its end."""
        if self.now >= batch.created_at + self.options.delivery_timeout_ms * MILLISECOND:
            return False
        if batch.attempts:
            return batch.not_before <= self.now
        lingered = self.now - batch.created_at >= self.options.producer.linger_ms * MILLISECOND
        return lingered or self.closing or self.accumulator.is_full(line)

    def _in_flight(self, node: int) -> int:
        return sum(batch.node == node for batch in self.requests.values())

    def _send(self, line: Line, batch: ProducerBatch, target: int) -> None:
        if batch.attempts >= MAX_ATTEMPTS - 1:
            self._end(line, batch, Outcome.UNKNOWN if batch.unknown else Outcome.FAIL)
            return
        line.waiting.remove(batch)
        self.sequences.number(line, batch)
        batch.attempts += 1
        batch.node = target
        request = self._request(batch, target, batch.attempts)
        self.outbox.append(request)
        if batch.acks == ACKS_NONE:
            self._end(line, batch, Outcome.OK)
            return
        (batch.correlation_id,) = request.cause
        self.requests[batch.correlation_id] = batch
        line.in_flight.append(batch)
        self._set((REQUEST, batch.number), self.now + self.options.request_timeout_ms * MILLISECOND)

    def _request(self, batch: ProducerBatch, target: int, attempt: int) -> Send:
        correlation_id = batch.number * MAX_ATTEMPTS + attempt
        request = kafka.ProduceRequest(
            correlation_id=correlation_id,
            partition=batch.partition,
            acks=batch.acks,
            records=batch.encode(self.now // MILLISECOND, self.options.producer.compression),
            timeout=self.options.request_timeout_ms * MILLISECOND,
        )
        return Send(target, request, (correlation_id,))

    # ---- responses

    def _on_message(self, message: kafka.Message) -> None:
        if isinstance(message, kafka.ProduceResponse):
            batch = self.requests.get(message.correlation_id)
            if batch is not None:
                self._on_produced(batch, message)
            elif self.options.producer.late_sends and message.error in SEQUENCE_ERRORS:
                self.outbox.append(RecordEvent(Name.MARK, {"cause": LATE_SEND_REFUSED}))
        elif not self.asking.is_answered_by(message.correlation_id):
            return
        elif isinstance(message, kafka.MetadataResponse):
            self._on_metadata(message)
        elif isinstance(message, kafka.InitProducerIdResponse):
            self._on_id(message)

    def _on_metadata(self, response: kafka.MetadataResponse) -> None:
        self.metadata.update(response)
        for line in self.accumulator.lines.values():
            line.stale = False
        self._settle_homeless()
        led = all(self.metadata.leader(line.key) for line in self.accumulator.lines.values() if line.waiting)
        self.outbox.append(self.asking.settle(METADATA, self.now, helped=led and not self.homeless))

    def _on_id(self, response: kafka.InitProducerIdResponse) -> None:
        given = response.error is NO_ERROR
        if given:
            self.sequences.initialised(response.producer_id, response.producer_epoch)
        self.outbox.append(self.asking.settle(IDENTITY, self.now, helped=given))

    def _on_produced(self, batch: ProducerBatch, response: kafka.ProduceResponse) -> None:
        line = self.accumulator.line(batch.partition)
        outcome = outcome_of_attempt(response.error, appended=response.base_offset >= 0)
        if outcome is Outcome.OK:
            batch.error = NO_ERROR
            self._end(line, batch, Outcome.OK, response)
        else:
            self._refused(line, batch, response.error, unknown=outcome is Outcome.UNKNOWN)

    def _refused(self, line: Line, batch: ProducerBatch, error: ErrorCode, *, unknown: bool) -> None:
        """An attempt failed: send the batch again, or end it."""
        del self.requests[batch.correlation_id]
        line.in_flight.remove(batch)
        batch.correlation_id, batch.error = NONE, error
        batch.unknown |= unknown
        self._cancel((REQUEST, batch.number))
        if error is ErrorCode.MESSAGE_TOO_LARGE and self.sequences.may_be_split(batch):
            self._split(line, batch)
            return
        if batch.sequence == NONE:
            gives_up = batch.unknown and not self.options.retry_unknown
        else:
            gives_up = error in SEQUENCE_ERRORS and self.sequences.gives_up(line, batch, error)
        line.stale = line.stale or error not in SEQUENCE_ERRORS
        if error in FINAL_ERRORS and not batch.unknown:
            self._end(line, batch, Outcome.FAIL)
            return
        if gives_up:
            self._end(line, batch, Outcome.UNKNOWN)
            return
        line.put_back(batch)
        batch.not_before = self.now + self.options.retry_backoff_ms * MILLISECOND
        self._set((RETRY, batch.number), batch.not_before)

    def _split(self, line: Line, batch: ProducerBatch) -> None:
        """A batch that is too large for the topic goes in two, at once, as in Kafka."""
        later = batch.split()
        self.sequences.number_half(batch, later)
        self._set((DELIVERY, later.number), later.created_at + self.options.delivery_timeout_ms * MILLISECOND)
        for half in (later, batch):
            half.not_before = self.now
            line.put_back(half)

    def _end(
        self,
        line: Line,
        batch: ProducerBatch,
        outcome: Outcome,
        response: kafka.ProduceResponse | None = None,
    ) -> None:
        """The batch and all its appends are decided."""
        if batch.correlation_id != NONE:
            del self.requests[batch.correlation_id]
            line.in_flight.remove(batch)
            batch.correlation_id = NONE
        elif batch in line.waiting:
            line.waiting.remove(batch)
        for kind in (REQUEST, DELIVERY, RETRY):
            self._cancel((kind, batch.number))
        self.outbox += completions(self.process, batch, outcome, response)
        if outcome is Outcome.OK:
            self.sequences.acknowledged(line, batch)
            if self.options.producer.late_sends and batch.sequence != NONE:
                self._send_late(line, batch)
        else:
            self.sequences.lost(line, batch)

    def _send_late(self, line: Line, batch: ProducerBatch) -> None:
        """On purpose, an earlier batch once more, to a log that has a later one: it knows this one, too, or
        must refuse it."""
        line.acknowledged.append(batch)
        first = line.acknowledged[0]
        if len(line.acknowledged) < REMEMBERED and first.node == batch.node:
            return
        line.acknowledged.clear()
        self.outbox.append(self._request(first, batch.node, first.attempts + 1))

    # ---- timers

    def _on_timer(self, key: TimerKey) -> None:
        if key in (METADATA, IDENTITY):
            self.asking.on_timer(key)
        elif key[0] == PLACING:
            self._give_up_placing(key[1])
        elif key[0] in (REQUEST, DELIVERY):
            batch = next((batch for batch in self.accumulator.batches() if batch.number == key[1]), None)
            if batch is not None and key[0] == REQUEST:
                line = self.accumulator.line(batch.partition)
                self._refused(line, batch, ErrorCode.NETWORK_EXCEPTION, unknown=True)
            elif batch is not None:
                self._too_late(batch)

    def _too_late(self, batch: ProducerBatch) -> None:
        """The delivery timeout: decide from what is known."""
        in_flight = batch.correlation_id != NONE
        if batch.error is NO_ERROR:
            batch.error = ErrorCode.REQUEST_TIMED_OUT
        outcome = Outcome.UNKNOWN if in_flight or batch.unknown else Outcome.FAIL
        self._end(self.accumulator.line(batch.partition), batch, outcome)

    def _give_up_placing(self, op_id: str | int) -> None:
        append = next((append for append in self.homeless if append.op_id == op_id), None)
        if append is not None:
            self.homeless.remove(append)
            self.outbox.append(unplaced(self.process, append))

    def _set(self, key: TimerKey, at: int) -> None:
        self.outbox.append(SetTimer(key, at))

    def _cancel(self, key: TimerKey) -> None:
        self.outbox.append(CancelTimer(key))


def make_producer(
    process: int,
    options: ClientOptions,
    metadata: ClientMetadata,
    partitioner: Partitioner,
    sequences: type[Sequences] = Sequences,
) -> Producer:
    """A new producer.

    Args:
        process: the process in the trace.
        options: the options of clients.
        metadata: the known leaders.
        partitioner: chooses partitions.
        sequences: the class that numbers batches.

    Returns:
        the producer, without appends.
    """
    return Producer(
        process,
        options,
        metadata,
        partitioner,
        sequences(options.producer.idempotent),
        Accumulator(options.producer.batch_bytes),
        Asking(options, metadata, turn=process),
    )
