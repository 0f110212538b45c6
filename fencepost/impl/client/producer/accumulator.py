"""The accumulator: appends wait here for others of their partition, and batches for their turn (Kafka's
RecordAccumulator).

Owns batches and their order within a partition. Must not know brokers, answers or time-outs. A batch is open
until it is first taken to be sent; from then on its records stay what they are, whatever happens to it.
"""

from collections import deque
from collections.abc import Iterator

from attrs import define, field

from fencepost.impl.core.core_interface import Produce
from fencepost.impl.log.batch.record_batch import HEADER_SIZE, Header, Record, encode_batch
from fencepost.impl.log.values import VALUE_ID
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.outcomes import NO_ERROR, ErrorCode

RECORD_OVERHEAD = 21
"""Most bytes that a record has beside its key, value and headers (Kafka's MAX_RECORD_OVERHEAD)."""
NONE = -1
SEQUENCES = 1 << 31
"""Sequence numbers wrap to 0."""


def record_of(append: Produce, index: int, offset: int, timestamp_ms: int) -> Record:
    """One record of an append. Its value id travels in a header, unless the value is the id's decimal
    digits."""
    value, identity = append.values[index], b"%d" % append.value_ids[index]
    headers = () if value == identity else (Header(VALUE_ID, identity),)
    return Record(offset, timestamp_ms, append.key, value, headers)


def size_of(append: Produce) -> int:
    """An upper bound of the bytes that it adds to a batch."""
    key = len(append.key or b"")
    return sum(key + len(value or b"") + RECORD_OVERHEAD for value in append.values)


@define(eq=False)
class ProducerBatch:
    """appends: in order. created_at: of the first append, host time. correlation_id: of the request in
    flight, NONE while there is none; attempts: requests sent. not_before: the end of its back-off. unknown:
    some attempt may have been written. error, node: of the last attempt. sequence: of its first record in
    (producer_id, producer_epoch), NONE until it is assigned."""

    partition: TopicPartition
    acks: int
    created_at: int
    appends: list[Produce]
    size: int
    correlation_id: int = NONE
    attempts: int = 0
    not_before: int = 0
    unknown: bool = False
    error: ErrorCode = NO_ERROR
    node: int = NONE
    producer_id: int = NONE
    producer_epoch: int = NONE
    sequence: int = NONE

    @property
    def number(self) -> int:
        """Names the batch: the op id of its first append."""
        return self.appends[0].op_id

    @property
    def count(self) -> int:
        """Its records."""
        return sum(len(append.values) for append in self.appends)

    def precedes(self, other: "ProducerBatch") -> bool:
        """By number, within one epoch of a partition: only a few are under way, so that a wrap shows as a
        large distance."""
        return self.sequence != NONE and 0 < (other.sequence - self.sequence) % SEQUENCES < SEQUENCES // 2

    def encode(self, now_ms: int, codec: str) -> bytes:
        """The produced batch: offsets count from 0."""
        records: list[Record] = []
        for append in self.appends:
            for index in range(len(append.values)):
                records.append(record_of(append, index, len(records), now_ms))
        return encode_batch(
            records,
            base_offset=0,
            leader_epoch=-1,
            codec=codec,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.sequence,
        )


@define(eq=False)
class Line:
    """The batches of one partition. waiting: to be sent, in order, those with a sequence first; in_flight:
    sent and not answered, in the order of sending. producer_id, producer_epoch, next_sequence: of the next
    batch, NONE before the first. unresolved: some sequence may be missing in the log, so that a new epoch
    must begin. introduced: a batch of this id and epoch was acknowledged. stale: its leader must be asked
    for."""

    key: TopicPartition
    waiting: deque[ProducerBatch] = field(factory=deque)
    in_flight: list[ProducerBatch] = field(factory=list)
    producer_id: int = NONE
    producer_epoch: int = NONE
    next_sequence: int = 0
    unresolved: bool = False
    introduced: bool = False
    stale: bool = False

    def sequenced(self) -> list[ProducerBatch]:
        """Every batch that has a sequence and no outcome."""
        return [batch for batch in (*self.in_flight, *self.waiting) if batch.sequence != NONE]

    def put_back(self, batch: ProducerBatch) -> None:
        """A batch is to be sent again: before what comes after it."""
        before = [other for other in self.waiting if other.precedes(batch)]
        self.waiting.insert(len(before), batch)


@define(eq=False)
class Accumulator:
    """batch_bytes: a batch of that size takes no more. lines: by partition, in the order of first use."""

    batch_bytes: int
    lines: dict[TopicPartition, Line] = field(factory=dict)

    def line(self, key: TopicPartition) -> Line:
        """The partition's line."""
        if key not in self.lines:
            self.lines[key] = Line(key)
        return self.lines[key]

    def has_room(self, key: TopicPartition, append: Produce) -> bool:
        """Whether the append goes into a batch that is there already."""
        line = self.lines.get(key)
        last = line.waiting[-1] if line is not None and line.waiting else None
        return (
            last is not None
            and last.attempts == 0
            and last.sequence == NONE
            and last.acks == append.acks
            and last.size + size_of(append) <= self.batch_bytes
        )

    def add(self, key: TopicPartition, append: Produce, now: int) -> ProducerBatch | None:
        """Add it to the last batch, or begin one, which is returned."""
        line = self.line(key)
        if self.has_room(key, append):
            batch = line.waiting[-1]
            batch.appends.append(append)
            batch.size += size_of(append)
            return None
        batch = ProducerBatch(key, append.acks, now, [append], HEADER_SIZE + size_of(append))
        line.waiting.append(batch)
        return batch

    def is_full(self, line: Line) -> bool:
        """Whether the first waiting batch gets no more appends."""
        return len(line.waiting) > 1 or line.waiting[0].size >= self.batch_bytes

    def batches(self) -> Iterator[ProducerBatch]:
        """All that have no outcome."""
        for line in self.lines.values():
            yield from line.in_flight
            yield from line.waiting
