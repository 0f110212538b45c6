"""A reader: reads its assigned partitions continuously, without a group.

Owns positions, fetches and their retries. Must not know groups, commits or its user. One fetch per partition
is in flight. A partition without a known leader asks for metadata and pauses. Read records are in
`delivered`, in order, until the host takes them. A row of the trace is completed with them and gets the
host's times. Each partition is a process of the trace, because their fetches overlap.
"""

from collections import deque

from attrs import define, field, frozen

from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.core.core_interface import (
    CancelTimer,
    Complete,
    Effect,
    Input,
    MessageArrived,
    Send,
    SetTimer,
    TimerFired,
)
from fencepost.impl.log.batch.header import CorruptBatchError, read_headers
from fencepost.impl.log.batch.record_batch import read_records
from fencepost.impl.log.values import value_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.plan import ClientOptions

NONE = -1
FETCH_BYTES = 1_048_576
"""Bytes of one partition in one fetch (max.partition.fetch.bytes)."""
REQUEST, BACKOFF = "read_request", "read_backoff"
METADATA = ("read_metadata",)
SEEK_TO_BEGINNING = "seek_to_beginning"


@frozen(kw_only=True)
class ReadRecord:
    """One record for the application. A value of None is a tombstone."""

    partition: TopicPartition
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


@define(eq=False)
class Reading:
    """One partition of a reader."""

    # The partition.
    key: TopicPartition
    # LATEST or EARLIEST: where to begin.
    start: int
    # The process in the trace.
    process: int
    # The next offset to read; NONE until the leader reported where to begin.
    position: int = NONE
    # That of the request in flight; NONE while there is none.
    correlation_id: int = NONE
    # Host time at which it was sent, in nanoseconds.
    asked_at: int = 0
    # The broker that was asked; NONE before the first.
    node: int = NONE
    # Whether it pauses until the back-off is over.
    resting: bool = False
    # Whether its leader must be asked for.
    stale: bool = False
    # The last end that an empty poll was shown; the same end again is not recorded.
    end: int = NONE


@define(eq=False)
class Reader:
    """A reader without a group."""

    # The options of clients.
    options: ClientOptions
    # The known leaders.
    metadata: ClientMetadata
    # The partitions, in the order of assignment.
    readings: dict[TopicPartition, Reading]
    # Records that the host has not taken yet, in order.
    delivered: deque[ReadRecord] = field(factory=deque)
    # The last high watermark that was shown, by partition.
    end_offsets: dict[TopicPartition, int] = field(factory=dict)
    # The last one used.
    correlation_id: int = 0
    # The last one used; NONE before the first.
    op_id: int = NONE
    # The metadata request in flight; NONE if there is none.
    asked_metadata: int = NONE
    # Whether the assignment was recorded.
    assigned: bool = False
    # Which broker is asked for metadata next.
    turn: int = 0
    # Effects of the current step.
    outbox: list[Effect] = field(factory=list)
    # Host time of the current step in nanoseconds.
    now: int = 0

    def step(self, input: Input, now: int) -> list[Effect]:
        """Apply the input `input` at host time `now` (nanoseconds); returns the effects."""
        self.now, self.outbox = now, []
        if not self.assigned:
            self._assign()
        if isinstance(input, MessageArrived):
            self._on_message(input.message)
        elif isinstance(input, TimerFired):
            self._on_timer(input)
        self._ask()
        return self.outbox

    def _assign(self) -> None:
        self.assigned = True
        for key, reading in self.readings.items():
            position = Position(topic=key.topic, partition=key.partition, offset=reading.position)
            self._complete(
                reading,
                Function.ASSIGN,
                invoke_time=self.now,
                argument=SEEK_TO_BEGINNING if reading.start == kafka.EARLIEST else None,
                positions=(position,),
            )

    # ---- requests

    def _ask(self) -> None:
        wants_metadata = False
        for reading in self.readings.values():
            if reading.correlation_id != NONE or reading.resting:
                continue
            leader = None if reading.stale else self.metadata.leader(reading.key)
            if leader is None:
                wants_metadata = True
            else:
                self._send(reading, *leader)
        if wants_metadata and self.asked_metadata == NONE:
            self.asked_metadata = self._next_id()
            target = self.metadata.whom_to_ask(self.turn)
            self.turn += 1
            self.outbox.append(Send(target, kafka.MetadataRequest(correlation_id=self.asked_metadata)))
            self._set(METADATA, self.options.request_timeout_ms)

    def _send(self, reading: Reading, leader: int, leader_epoch: int) -> None:
        reading.correlation_id, reading.asked_at, reading.node = self._next_id(), self.now, leader
        if reading.position == NONE:
            request: kafka.Request = kafka.ListOffsetsRequest(
                correlation_id=reading.correlation_id,
                partition=reading.key,
                leader_epoch=leader_epoch,
                timestamp=reading.start,
            )
        else:
            wanted = kafka.FetchPartition(
                partition=reading.key, offset=reading.position, leader_epoch=leader_epoch
            )
            request = kafka.FetchRequest(
                correlation_id=reading.correlation_id,
                replica_id=NONE,
                max_wait=self.options.fetch_wait_max_ms * MILLISECOND,
                max_bytes=FETCH_BYTES,
                partitions=(wanted,),
            )
        self.outbox.append(Send(leader, request))
        self._set((REQUEST, *_name(reading.key)), self.options.request_timeout_ms)

    def _next_id(self) -> int:
        self.correlation_id += 1
        return self.correlation_id

    # ---- responses

    def _on_message(self, message: kafka.Message) -> None:
        if isinstance(message, kafka.MetadataResponse):
            if message.correlation_id == self.asked_metadata:
                self._on_metadata(message)
            return
        asked = (one for one in self.readings.values() if one.correlation_id == message.correlation_id)
        reading = next(asked, None)
        if reading is None:
            return  # the response to an abandoned request
        reading.correlation_id = NONE
        self.outbox.append(CancelTimer((REQUEST, *_name(reading.key))))
        if isinstance(message, kafka.ListOffsetsResponse):
            self._on_listed(reading, message)
        else:
            assert isinstance(message, kafka.FetchResponse), message
            self._on_fetched(reading, message.partitions[0])

    def _on_metadata(self, response: kafka.MetadataResponse) -> None:
        self.asked_metadata = NONE
        self.outbox.append(CancelTimer(METADATA))
        self.metadata.update(response)
        for reading in self.readings.values():
            reading.stale = False
            if self.metadata.leader(reading.key) is None and reading.correlation_id == NONE:
                self._rest(reading)

    def _on_listed(self, reading: Reading, response: kafka.ListOffsetsResponse) -> None:
        if response.error is NO_ERROR:
            reading.position = response.offset
        else:
            self._rest(reading)

    def _on_fetched(self, reading: Reading, answer: kafka.FetchedPartition) -> None:
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            reset = self.options.auto_offset_reset
            reading.position, reading.start = NONE, kafka.EARLIEST if reset == "earliest" else kafka.LATEST
        if answer.error is not NO_ERROR:
            self._rest(reading)
            return
        try:
            self._take(reading, answer)
        except CorruptBatchError:
            self._rest(reading)

    def _take(self, reading: Reading, answer: kafka.FetchedPartition) -> None:
        """Deliver the records from the position on, and write the row of the poll."""
        begun, position, rows = reading.position, reading.position, []
        for header in read_headers(answer.records):
            for record in () if header.is_control else read_records(answer.records, header):
                if record.offset < begun:
                    continue
                rows.append(
                    Record(
                        topic=reading.key.topic,
                        partition=reading.key.partition,
                        offset=record.offset,
                        value=value_of(record),
                        leader_epoch=header.leader_epoch,
                    )
                )
                self.delivered.append(
                    ReadRecord(
                        partition=reading.key,
                        offset=record.offset,
                        timestamp_ms=record.timestamp_ms,
                        key=record.key,
                        value=record.value,
                    )
                )
            position = max(position, header.next_offset)
        reading.position = position
        self.end_offsets[reading.key] = answer.high_watermark
        if rows or reading.end != answer.high_watermark:
            reading.end = NONE if rows else answer.high_watermark
            self._poll(reading, begun, answer, tuple(rows))

    def _poll(
        self, reading: Reading, begun: int, answer: kafka.FetchedPartition, records: tuple[Record, ...]
    ) -> None:
        self._complete(
            reading,
            Function.POLL,
            invoke_time=reading.asked_at,
            topic=reading.key.topic,
            partition=reading.key.partition,
            isolation="read_uncommitted",
            offset=begun,
            end_offset=answer.high_watermark,
            log_start_offset=answer.log_start_offset,
            leader_epoch=answer.leader_epoch,
            node=reading.node,
            records=records,
        )

    def _complete(self, reading: Reading, function: Function, **row: object) -> None:
        self.op_id += 1
        self.outbox.append(
            Complete(
                Operation(
                    op_id=self.op_id,
                    process=reading.process,
                    function=function,
                    outcome=Outcome.OK,
                    completion_time=self.now,
                    **row,  # type: ignore[arg-type]
                )
            )
        )

    # ---- time

    def _on_timer(self, fired: TimerFired) -> None:
        if fired.key == METADATA:
            self.asked_metadata = NONE
            return
        kind, topic, number = fired.key
        assert isinstance(number, int)
        reading = self.readings[TopicPartition(str(topic), number)]
        if kind == BACKOFF:
            reading.resting = False
        else:
            reading.correlation_id = NONE
            self._rest(reading)

    def _rest(self, reading: Reading) -> None:
        """Ask again later, whichever broker leads then."""
        reading.resting = reading.stale = True
        self._set((BACKOFF, *_name(reading.key)), self.options.retry_backoff_ms)

    def _set(self, key: tuple[str | int, ...], delay_ms: int) -> None:
        self.outbox.append(SetTimer(key, self.now + delay_ms * MILLISECOND))


def _name(key: TopicPartition) -> tuple[str, int]:
    return key.topic, key.partition


def make_reader(
    options: ClientOptions,
    metadata: ClientMetadata,
    partitions: tuple[TopicPartition, ...],
    *,
    from_beginning: bool,
) -> Reader:
    """A reader of some partitions.

    Args:
        options: the options of clients.
        metadata: the known leaders.
        partitions: the partitions.
        from_beginning: read from the log start; otherwise from the log end.

    Returns:
        the reader.
    """
    start = kafka.EARLIEST if from_beginning else kafka.LATEST
    readings = {key: Reading(key, start, process) for process, key in enumerate(partitions)}
    return Reader(options, metadata, readings)
