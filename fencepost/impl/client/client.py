"""A single-threaded client: one operation at a time, retried until it is decided or its time is up.

The part of docs/spec/cluster.md, P that every client needs. Owns attempts, timeouts and the mapping of errors
to outcomes (traces/kafka_names/outcomes.py). Must not know how operations are chosen or recorded. If the
outcome of an attempt is unknown, an append ends as unknown, unless the client is configured to retry such
attempts. Reads are always retried.
"""

from attrs import define, field

from fencepost.impl.client.attempt import EARLIEST, FINAL_ERRORS, READ_COMMITTED, TENTH_MS, Attempt, complete
from fencepost.impl.client.isolation import committed_batches
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.core.core_interface import (
    CancelTimer,
    Effect,
    Input,
    Invoke,
    MessageArrived,
    Send,
    SetTimer,
    Started,
    TimerFired,
)
from fencepost.impl.log.batch.header import CorruptBatchError
from fencepost.impl.log.values import batch_of, runs_in_batch
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode, outcome_of_attempt
from fencepost.traces.operations import ACKS_NONE, BY_TIME, ByTime, Outcome, make_record
from fencepost.traces.plan import ClientOptions, PlannedOperation

MAX_ATTEMPTS = 256
"""The most requests of one operation; a correlation id has space for this many attempts. The delivery timeout
allows far fewer at the default back-off."""
MAX_BYTES = 1_048_576
REQUEST, BACKOFF, DELIVERY = ("request",), ("backoff",), ("delivery",)
FETCH_BYTES_PER_RECORD = 87
"""Bytes of a one-record batch with the longest value id. It converts max.poll.records into the byte limit of
a fetch; batches are whole."""


@define
class Client:
    """process: of the trace. positions: the next offset to poll, per partition; committed: the same for
    polls of committed records. ends: the highest high
    watermark it was shown, per partition. current: the operation under way."""

    # The process in the trace.
    process: int
    # The options of clients.
    options: ClientOptions
    # The known leaders.
    metadata: ClientMetadata
    # The next offset to poll, per partition.
    positions: dict[TopicPartition, int] = field(factory=dict)
    committed: dict[TopicPartition, int] = field(factory=dict)
    ends: dict[TopicPartition, int] = field(factory=dict)
    # The current operation; None if it is idle.
    current: Attempt | None = None
    # Effects of the current step.
    outbox: list[Effect] = field(factory=list)
    # Host time of the current step in nanoseconds.
    now: int = 0

    def step(self, input: Input, now: int) -> list[Effect]:
        """Apply the input `input` at host time `now` (nanoseconds); returns the effects."""
        self.now, self.outbox = now, []
        if isinstance(input, MessageArrived):
            self._on_message(input.message)
        elif isinstance(input, TimerFired):
            self._on_timer(input)
        elif isinstance(input, Invoke):
            self._invoke(input.operation)
        else:
            assert isinstance(input, Started), input
        return self.outbox

    # ---- the life of an operation

    def _invoke(self, operation: PlannedOperation) -> None:
        assert self.current is None, "a process has one operation in flight"
        key = TopicPartition(operation.topic, operation.partition)
        self.current = Attempt(operation, key, position=self._positions(operation).get(key, 0))
        self.outbox.append(SetTimer(DELIVERY, self.now + self.options.delivery_timeout_ms * MILLISECOND))
        self._attempt(self.current)

    def _positions(self, operation: PlannedOperation) -> dict[TopicPartition, int]:
        return self.committed if operation.argument == READ_COMMITTED else self.positions

    def _attempt(self, current: Attempt) -> None:
        """Send the request to the leader, or ask for metadata first."""
        leader = None if current.stale_metadata else self.metadata.leader(current.key)
        current.requests += 1
        if current.requests > MAX_ATTEMPTS - 1:
            self._give_up(current)
            return
        current.correlation_id = current.operation.op_id * MAX_ATTEMPTS + current.requests
        self.outbox.append(SetTimer(REQUEST, self.now + self.options.request_timeout_ms * MILLISECOND))
        if leader is None:
            asked = current.requests - current.attempts
            target = self.metadata.whom_to_ask(current.operation.op_id + asked)
            current.asking_metadata = True
            request: kafka.Request = kafka.MetadataRequest(correlation_id=current.correlation_id)
        else:
            target, epoch = leader
            current.asking_metadata = False
            current.node = target
            current.attempts += 1
            request = self._request(current, epoch)
        self.outbox.append(Send(target, request, (current.correlation_id,)))
        if isinstance(request, kafka.ProduceRequest) and request.acks == ACKS_NONE:
            self._finish(current, Outcome.OK)

    def _request(self, current: Attempt, leader_epoch: int) -> kafka.Request:
        operation = current.operation
        if operation.function == "append":
            return kafka.ProduceRequest(
                correlation_id=current.correlation_id,
                partition=current.key,
                acks=operation.acks,
                records=batch_of(
                    current.values,
                    timestamp_ms=self.now // MILLISECOND,
                    key=operation.key,
                    tombstone=operation.argument == "tombstone",
                ),
                timeout=self.options.request_timeout_ms * MILLISECOND,
            )
        if operation.function == "list_offsets" or current.resetting:
            current.since_ms = self._wanted(current)
            return kafka.ListOffsetsRequest(
                correlation_id=current.correlation_id,
                partition=current.key,
                leader_epoch=leader_epoch,
                timestamp=current.since_ms,
                read_committed=operation.argument == READ_COMMITTED,
            )
        if operation.function == "delete_records":
            return kafka.DeleteRecordsRequest(
                correlation_id=current.correlation_id,
                partition=current.key,
                offset=max(0, self.ends.get(current.key, 0) - operation.records),
            )
        wanted = kafka.FetchPartition(
            partition=current.key, offset=current.position, leader_epoch=leader_epoch
        )
        return kafka.FetchRequest(
            correlation_id=current.correlation_id,
            replica_id=-1,
            max_wait=self.options.fetch_wait_max_ms * MILLISECOND,
            max_bytes=self.options.max_poll_records * FETCH_BYTES_PER_RECORD,
            partitions=(wanted,),
            read_committed=operation.argument == READ_COMMITTED,
        )

    def _wanted(self, current: Attempt) -> int:
        """What a ListOffsets asks for: a time in milliseconds, or one of the two ends."""
        if current.resetting:
            return kafka.EARLIEST if self.options.auto_offset_reset == "earliest" else kafka.LATEST
        if current.operation.argument == BY_TIME:
            return max(0, self.now // MILLISECOND - current.operation.records * TENTH_MS)
        return kafka.EARLIEST if current.operation.argument == EARLIEST else kafka.LATEST

    def _retry(self, current: Attempt, error: ErrorCode) -> None:
        """Try again after the back-off, with fresh metadata."""
        current.error, current.stale_metadata, current.correlation_id = error, True, -1
        self.outbox.append(CancelTimer(REQUEST))
        self.outbox.append(SetTimer(BACKOFF, self.now + self.options.retry_backoff_ms * MILLISECOND))

    def _give_up(self, current: Attempt) -> None:
        """The delivery timeout: decide from what is known. A read has no result; an append in flight may
        still take effect."""
        in_flight = current.correlation_id >= 0 and not current.asking_metadata
        undecided = current.operation.function == "append" and (current.unknown or in_flight)
        if in_flight and current.error is NO_ERROR:
            current.error = ErrorCode.REQUEST_TIMED_OUT
        self._finish(current, Outcome.UNKNOWN if undecided else Outcome.FAIL)

    def _finish(self, current: Attempt, outcome: Outcome) -> None:
        self.current = None
        self.outbox += [CancelTimer(REQUEST), CancelTimer(BACKOFF), CancelTimer(DELIVERY)]
        self.outbox.append(complete(self.process, current, outcome))

    # ---- timers

    def _on_timer(self, fired: TimerFired) -> None:
        current = self.current
        if current is None:
            return
        if fired.key == BACKOFF:
            self._attempt(current)
        elif fired.key == DELIVERY:
            self._give_up(current)
        elif current.asking_metadata or current.operation.function != "append":
            self._retry(current, ErrorCode.NETWORK_EXCEPTION)
        else:
            self._unknown_attempt(current, ErrorCode.NETWORK_EXCEPTION)

    def _unknown_attempt(self, current: Attempt, error: ErrorCode) -> None:
        current.unknown = True
        if self.options.retry_unknown:
            self._retry(current, error)
        else:
            current.error = error
            self._finish(current, Outcome.UNKNOWN)

    # ---- responses

    def _on_message(self, message: kafka.Message) -> None:
        current = self.current
        if current is None or current.correlation_id != message.correlation_id:
            return  # the response to an abandoned attempt
        if isinstance(message, kafka.MetadataResponse):
            self._on_metadata(current, message)
        elif isinstance(message, kafka.ProduceResponse):
            self._on_produced(current, message)
        elif isinstance(message, kafka.ListOffsetsResponse):
            self._on_listed(current, message)
        elif isinstance(message, kafka.DeleteRecordsResponse):
            self._on_deleted(current, message)
        else:
            assert isinstance(message, kafka.FetchResponse), message
            self._on_fetched(current, message.partitions[0])

    def _on_metadata(self, current: Attempt, response: kafka.MetadataResponse) -> None:
        self.metadata.update(response)
        current.stale_metadata = False
        if self.metadata.leader(current.key) is None:
            self._retry(current, ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            self._attempt(current)

    def _on_produced(self, current: Attempt, response: kafka.ProduceResponse) -> None:
        outcome = outcome_of_attempt(response.error, appended=response.base_offset >= 0)
        if outcome is Outcome.OK:
            current.error, current.offset = NO_ERROR, response.base_offset
            current.leader_epoch, current.log_start_offset = response.leader_epoch, response.log_start_offset
            self._finish(current, Outcome.OK)
        elif outcome is Outcome.FAIL and response.error in FINAL_ERRORS and not current.unknown:
            current.error = response.error
            self._finish(current, Outcome.FAIL)
        elif outcome is Outcome.FAIL:
            self._retry(current, response.error)
        else:
            self._unknown_attempt(current, response.error)

    def _on_listed(self, current: Attempt, response: kafka.ListOffsetsResponse) -> None:
        if response.error is not NO_ERROR:
            self._retry(current, response.error)
            return
        if current.resetting:
            current.resetting, current.position = False, response.offset
            self._attempt(current)
            return
        argument = current.operation.argument
        current.error = NO_ERROR
        if argument == BY_TIME:
            current.found = ByTime(
                from_ms=current.since_ms,
                offset=response.offset,
                timestamp_ms=response.timestamp,
                leader_epoch=response.leader_epoch,
            )
            self._finish(current, Outcome.OK)  # the row shows no end
            return
        current.offset = response.offset
        if argument == EARLIEST:
            current.log_start_offset = response.offset
        elif argument == READ_COMMITTED:
            current.last_stable_offset = response.offset
        else:
            self._shown(current.key, response.offset)
            current.end_offset = response.offset
        if argument != EARLIEST:
            current.leader_epoch = response.leader_epoch
        self._finish(current, Outcome.OK)

    def _on_deleted(self, current: Attempt, response: kafka.DeleteRecordsResponse) -> None:
        if response.error is not NO_ERROR:
            self._retry(current, response.error)
            return
        current.error, current.log_start_offset = NO_ERROR, response.low_watermark
        self._finish(current, Outcome.OK)

    def _shown(self, key: TopicPartition, end: int) -> None:
        self.ends[key] = max(end, self.ends.get(key, 0))

    def _on_fetched(self, current: Attempt, answer: kafka.FetchedPartition) -> None:
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            current.resetting = True
        if answer.error is not NO_ERROR:
            self._retry(current, answer.error)
            return
        try:
            batches = list(committed_batches(answer.records, answer.aborted))
            headers = [header for header, _ in batches]
            records = [
                make_record(
                    topic=current.key.topic,
                    partition=current.key.partition,
                    offset=offset,
                    value=value,
                    leader_epoch=header.leader_epoch,
                )
                for header, shown in batches
                if shown
                for base_offset, values in runs_in_batch(answer.records, header)
                for offset, value in enumerate(values, base_offset)
                if offset >= current.position
            ]
        except CorruptBatchError:
            self._retry(current, ErrorCode.CORRUPT_MESSAGE)
            return
        current.error, current.offset, current.records = NO_ERROR, current.position, tuple(records)
        current.end_offset, current.leader_epoch = answer.high_watermark, answer.leader_epoch
        current.log_start_offset = answer.log_start_offset
        if current.operation.argument == READ_COMMITTED:
            current.last_stable_offset = answer.last_stable_offset
        self._shown(current.key, answer.high_watermark)
        self._positions(current.operation)[current.key] = max(
            headers[-1].next_offset if headers else 0, current.position
        )
        self._finish(current, Outcome.OK)
