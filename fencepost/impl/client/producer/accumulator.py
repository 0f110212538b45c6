"""The accumulator: appends wait here for others of their partition, and batches wait until they are sent
(Kafka's RecordAccumulator).

Owns batches and their order within a partition. Must not know brokers, responses or timeouts. A batch is open
until it is first taken to be sent; from then on its records never change.
"""

from collections import deque
from collections.abc import Iterator

from attrs import define, field

from fencepost.impl.core.core_interface import Produce
from fencepost.impl.log.batch.record_batch import HEADER_SIZE, Header, Record, encode_batch
from fencepost.impl.log.values import VALUE_ID
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

RECORD_OVERHEAD = 21
"""The most bytes of a record in addition to its key, value and headers (Kafka's MAX_RECORD_OVERHEAD)."""
NONE = -1
SEQUENCES = 1 << 31
"""Sequence numbers wrap to 0."""


def record_of(append: Produce, index: int, offset: int, timestamp_ms: int) -> Record:
    """One record of an append. Its value id is in a header, unless the value is the id in decimal digits."""
    value, identity = append.values[index], b"%d" % append.value_ids[index]
    headers = () if value == identity else (Header(VALUE_ID, identity),)
    return Record(offset, timestamp_ms, append.key, value, headers)


def size_of(append: Produce) -> int:
    """An upper bound of the bytes that an append adds to a batch."""
    key = len(append.key or b"")
    return sum(key + len(value or b"") + RECORD_OVERHEAD for value in append.values)


@define(eq=False)
class ProducerBatch:
    """A batch of a producer."""

    # The partition.
    partition: TopicPartition
    # The acks of its appends.
    acks: int
    # Host time of the first append in nanoseconds.
    created_at: int
    # The appends, in order.
    appends: list[Produce]
    # An upper bound of its size in bytes.
    size: int
    # That of the request in flight; NONE while there is none.
    correlation_id: int = NONE
    # Requests sent.
    attempts: int = 0
    # Host time of the end of its back-off in nanoseconds.
    not_before: int = 0
    # Whether some attempt may have been written.
    unknown: bool = False
    # The error of the last attempt.
    error: ErrorCode = NO_ERROR
    # The broker of the last attempt; NONE before the first.
    node: int = NONE
    # The producer id of its sequence; NONE until it is assigned.
    producer_id: int = NONE
    # The producer epoch of its sequence; NONE until it is assigned.
    producer_epoch: int = NONE
    # The sequence number of its first record; NONE until it is assigned.
    sequence: int = NONE

    @property
    def number(self) -> int:
        """The name of the batch: the op id of its first append."""
        return self.appends[0].op_id

    @property
    def count(self) -> int:
        """The number of its records."""
        return sum(len(append.values) for append in self.appends)

    def split(self) -> "ProducerBatch":
        """Keep the first half of its appends, and return another batch with the others. They count as sent as
        often: neither takes more appends."""
        later = self.appends[(len(self.appends) + 1) // 2 :]
        self.appends = self.appends[: -len(later)]
        size = sum(size_of(append) for append in later)
        self.size -= size
        return ProducerBatch(
            self.partition, self.acks, self.created_at, later, HEADER_SIZE + size, attempts=self.attempts
        )

    def precedes(self, other: "ProducerBatch") -> bool:
        """Order by sequence number within one epoch of a partition. Few batches are in flight, so a wrap
        shows as a large distance."""
        return self.sequence != NONE and 0 < (other.sequence - self.sequence) % SEQUENCES < SEQUENCES // 2

    def encode(self, now_ms: int, codec: str) -> bytes:
        """The produced batch as bytes; offsets count from 0.

        Args:
            now_ms: the time of its records in milliseconds.
            codec: one of compression.CODECS.

        Returns:
            the bytes.
        """
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
    """The batches of one partition."""

    # The partition.
    key: TopicPartition
    # Batches to send, in order; those with a sequence come first.
    waiting: deque[ProducerBatch] = field(factory=deque)
    # Batches sent and not answered, in the order of sending.
    in_flight: list[ProducerBatch] = field(factory=list)
    # The producer id of the next batch; NONE before the first.
    producer_id: int = NONE
    # The producer epoch of the next batch; NONE before the first.
    producer_epoch: int = NONE
    # The sequence number of the next batch.
    next_sequence: int = 0
    # Some sequence number may be missing in the log, so a new epoch must begin.
    unresolved: bool = False
    # Whether a batch of this id and epoch was acknowledged.
    introduced: bool = False
    # Whether its leader must be asked for.
    stale: bool = False
    # The last acknowledged batches, where one of them is to be sent again on purpose.
    acknowledged: list[ProducerBatch] = field(factory=list)

    def sequenced(self) -> list[ProducerBatch]:
        """Every batch with a sequence and without an outcome."""
        return [batch for batch in (*self.in_flight, *self.waiting) if batch.sequence != NONE]

    def put_back(self, batch: ProducerBatch) -> None:
        """A batch must be sent again: put it before the later ones."""
        before = [other for other in self.waiting if other.precedes(batch)]
        self.waiting.insert(len(before), batch)


@define(eq=False)
class Accumulator:
    """batch_bytes: a batch of this size accepts no more appends. lines: by partition, in the order of first
    use."""

    batch_bytes: int
    lines: dict[TopicPartition, Line] = field(factory=dict)

    def line(self, key: TopicPartition) -> Line:
        """The partition's line."""
        if key not in self.lines:
            self.lines[key] = Line(key)
        return self.lines[key]

    def has_room(self, key: TopicPartition, append: Produce) -> bool:
        """Whether the append fits into an existing batch."""
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
        """Add an append to the last batch, or begin a new one.

        Args:
            key: the partition.
            append: the append.
            now: host time in nanoseconds.

        Returns:
            the batch if it is new, otherwise None.
        """
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
        """Whether the first waiting batch accepts no more appends."""
        return len(line.waiting) > 1 or line.waiting[0].size >= self.batch_bytes

    def batches(self) -> Iterator[ProducerBatch]:
        """All batches without an outcome."""
        for line in self.lines.values():
            yield from line.in_flight
            yield from line.waiting
