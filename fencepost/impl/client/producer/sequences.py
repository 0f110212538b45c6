"""Sequences of an idempotent producer: which batch may be sent, with which number, and the consequences of a
lost one (KIP-98, KAFKA-5494, KIP-360).

Owns producer id, epoch and the numbers of each partition. Must not know requests or time. The log accepts a
batch only after the previous one. Therefore:

- Batches with a sequence are sent in its order, and a retry waits until it is the first of them.
- A batch that is given up may or may not be in the log. Nothing new is sent to its partition until the others
  are decided. Then a new epoch begins, with numbers from 0, and the log refuses late batches of the old
  epoch.
- A batch that may be in the log keeps its number until it is decided; under another one it could be written
  twice. Kafka's client gives it another one.
"""

from attrs import define

from fencepost.impl.client.producer.accumulator import NONE, SEQUENCES, Line, ProducerBatch
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import ACKS_ALL

LARGEST_EPOCH = (1 << 15) - 2
"""The last epoch that is used. Epochs are 16-bit; Kafka reserves the largest one."""
SEQUENCE_ERRORS = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH}
)


@define(eq=False)
class Sequences:
    """idempotent: false for a producer without sequence numbers. producer_id, producer_epoch: the latest;
    NONE while there is none."""

    idempotent: bool
    producer_id: int = NONE
    producer_epoch: int = NONE

    def numbers(self, batch: ProducerBatch) -> bool:
        """Whether the batch gets, or has, a number."""
        return self.idempotent and batch.acks == ACKS_ALL

    @property
    def needs_id(self) -> bool:
        """Whether a producer id must be requested before anything is numbered."""
        return self.producer_id == NONE

    def initialised(self, producer_id: int, producer_epoch: int) -> None:
        """A broker assigned an id.

        Args:
            producer_id: the id.
            producer_epoch: its epoch.
        """
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    # ---- may it be sent?

    def next_of(self, line: Line) -> ProducerBatch | None:
        """The next batch to send; None if nothing may be sent now."""
        if line.unresolved:
            undecided = (batch for batch in line.waiting if batch.sequence != NONE and batch.unknown)
            batch = next(undecided, None)
        else:
            batch = line.waiting[0] if line.waiting else None
        if batch is None or not self.numbers(batch):
            return batch
        if batch.sequence == NONE:
            return None if self.needs_id or not self.first_alone(line) else batch
        return batch if self.is_first(line, batch) else None

    def is_first(self, line: Line, batch: ProducerBatch) -> bool:
        """Protection KAFKA-5494: a retry is sent when all batches before it are decided. Otherwise several in
        flight may overtake each other for ever.

        Args:
            line: the batches of the partition.
            batch: the batch.

        Returns:
            whether it may be sent.
        """
        return not any(other.precedes(batch) for other in line.in_flight)

    def first_alone(self, line: Line) -> bool:
        """Protection: a log accepts any number as the first of an unknown producer (KIP-360). So no batch
        follows the first one before it is acknowledged. Kafka relies on the order of messages on one
        connection, which a new connection does not keep."""
        return line.introduced or not line.sequenced()

    def number(self, line: Line, batch: ProducerBatch) -> None:
        """Assign a number to the batch, if it has none."""
        if not self.numbers(batch) or batch.sequence != NONE:
            return
        if line.producer_id == NONE:
            line.producer_id, line.producer_epoch, line.next_sequence = (
                self.producer_id,
                self.producer_epoch,
                0,
            )
        batch.producer_id, batch.producer_epoch = line.producer_id, line.producer_epoch
        batch.sequence = line.next_sequence
        line.next_sequence = (line.next_sequence + batch.count) % SEQUENCES

    def number_half(self, first: ProducerBatch, later: ProducerBatch) -> None:
        """Protection KIP-126: the halves of a batch that was too large have its numbers, each those of its
        own records.

        Args:
            first: what is left of the batch, with its numbers.
            later: the other half.
        """
        if first.sequence != NONE:
            later.producer_id, later.producer_epoch = first.producer_id, first.producer_epoch
            later.sequence = (first.sequence + first.count) % SEQUENCES

    def may_be_split(self, batch: ProducerBatch) -> bool:
        """Whether a batch that is too large goes in two. Protection KAFKA-3995: not one that may be in the
        log already, from before the limit came down; its halves would be there twice."""
        return len(batch.appends) > 1 and not self.may_be_written(batch)

    # ---- results

    def gives_up(self, line: Line, batch: ProducerBatch, error: ErrorCode) -> bool:
        """A numbered attempt was refused with one of SEQUENCE_ERRORS, so it wrote nothing.

        Returns whether the batch ends here, because it cannot be known any more whether an earlier attempt
        was written. Otherwise it is sent again, with this number or in a new epoch.
        """
        overtook = error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not self._is_lowest(line, batch)
        if overtook and not line.unresolved:
            return False
        line.unresolved = True
        return self.may_be_written(batch)

    def may_be_written(self, batch: ProducerBatch) -> bool:
        """Protection KIP-360 (stricter than Kafka, see above): a batch that may be in the log is not sent
        under another number."""
        return batch.unknown

    def _is_lowest(self, line: Line, batch: ProducerBatch) -> bool:
        return not any(other.precedes(batch) for other in line.sequenced())

    def acknowledged(self, line: Line, batch: ProducerBatch) -> None:
        """A batch is in the log, so the log knows the producer from now on."""
        if batch.sequence != NONE:
            line.introduced = True

    def lost(self, line: Line, batch: ProducerBatch) -> None:
        """Protection KIP-360: a numbered batch ended without an acknowledgement, so its number may be
        missing, and the numbers cannot continue."""
        if batch.sequence != NONE:
            line.unresolved = True

    def resolve(self, line: Line) -> None:
        """Begin a new epoch in this partition as soon as no numbered batch is in flight or may be written."""
        if not line.unresolved or any(batch.sequence != NONE for batch in line.in_flight):
            return
        numbered = [batch for batch in line.waiting if batch.sequence != NONE]
        if any(self.may_be_written(batch) for batch in numbered):
            return
        for batch in numbered:
            line.waiting.remove(batch)
        line.waiting.extendleft(reversed(self.in_order(numbered)))
        for batch in numbered:
            batch.producer_id = batch.producer_epoch = batch.sequence = NONE
        self._bump(line)
        line.unresolved = False

    def in_order(self, batches: list[ProducerBatch]) -> list[ProducerBatch]:
        """Protection KAFKA-8484: batches that get new numbers keep the order of their old ones, in which they
        wait."""
        return batches

    def _bump(self, line: Line) -> None:
        """The next epoch, or a new id when the epochs are used up. Other partitions continue in their epochs,
        because a log knows only its own."""
        if line.producer_id == self.producer_id and self.producer_epoch >= LARGEST_EPOCH:
            self.producer_id = self.producer_epoch = NONE
        elif self.producer_id != NONE:
            self.producer_epoch += 1
        line.producer_id = line.producer_epoch = NONE
        line.next_sequence, line.introduced = 0, False
