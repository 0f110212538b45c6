"""Sequences of an idempotent producer: which batch may be sent, under which number, and what a lost one means
(KIP-98, KAFKA-5494, KIP-360).

Owns producer id, epoch and the numbers of each partition. Must not know requests or time. The log takes a
batch only behind the one before it, so that

- batches with a sequence go out in its order, and a retry waits until it is the first of them;
- a batch that is given up may or may not be in the log: nothing new goes out to its partition until the
  others are decided, and then under a new epoch, in which the numbers begin at 0 and by which the log refuses
  whatever may still be on its way;
- a batch that may be in the log keeps its number until it is decided: under another one it could be written
  twice. Kafka's client gives it another one.
"""

from attrs import define

from fencepost.impl.client.producer.accumulator import NONE, SEQUENCES, Line, ProducerBatch
from fencepost.traces.operations import ACKS_ALL
from fencepost.traces.outcomes import ErrorCode

LARGEST_EPOCH = (1 << 15) - 2
"""Epochs are 16-bit; Kafka keeps the last one."""
SEQUENCE_ERRORS = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


@define(eq=False)
class Sequences:
    """idempotent: false for a producer that numbers nothing. producer_id, producer_epoch: the latest; NONE
    while there is none."""

    idempotent: bool
    producer_id: int = NONE
    producer_epoch: int = NONE

    def numbers(self, batch: ProducerBatch) -> bool:
        """Whether the batch gets, or has, a number."""
        return self.idempotent and batch.acks == ACKS_ALL

    @property
    def needs_id(self) -> bool:
        """Whether a new producer id must be asked for before anything is numbered."""
        return self.producer_id == NONE

    def initialised(self, producer_id: int, producer_epoch: int) -> None:
        """A broker gave an id."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    # ---- may it go out?

    def next_of(self, line: Line) -> ProducerBatch | None:
        """The waiting batch whose turn it is; None if nothing may be sent now."""
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
        """Protection KAFKA-5494: a retry goes out when all before it are decided, or several in flight
        overtake each other for ever."""
        return not any(other.precedes(batch) for other in line.in_flight)

    def first_alone(self, line: Line) -> bool:
        """Protection: a log takes any number as the first of a producer that it does not know (KIP-360), so
        that nothing follows the first batch before it is acknowledged. Kafka leaves that to the order of
        messages on one connection, which a new connection does not keep."""
        return line.introduced or not line.sequenced()

    def number(self, line: Line, batch: ProducerBatch) -> None:
        """Give the batch its number, if it has none."""
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

    # ---- what became of it

    def gives_up(self, line: Line, batch: ProducerBatch, error: ErrorCode) -> bool:
        """A numbered attempt was refused with one of SEQUENCE_ERRORS, so that it wrote nothing. Returns
        whether the batch ends here: nobody can tell any more whether an earlier attempt did. Otherwise it is
        sent again, by this number or under a new epoch."""
        overtook = error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not self._is_lowest(line, batch)
        if overtook and not line.unresolved:
            return False
        line.unresolved = True
        return self.may_be_written(batch)

    def may_be_written(self, batch: ProducerBatch) -> bool:
        """Protection KIP-360 (stricter than Kafka, see above): what may be in the log is not sent under
        another number."""
        return batch.unknown

    def _is_lowest(self, line: Line, batch: ProducerBatch) -> bool:
        return not any(other.precedes(batch) for other in line.sequenced())

    def acknowledged(self, line: Line, batch: ProducerBatch) -> None:
        """A batch is in the log, which knows the producer from now on."""
        if batch.sequence != NONE:
            line.introduced = True

    def lost(self, line: Line, batch: ProducerBatch) -> None:
        """Protection KIP-360: a numbered batch ended without an acknowledgement, so that its number may be
        missing; the numbers do not go on."""
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
        """The next epoch; another id when the epochs are used up. Other partitions go on in theirs: a log
        knows its own only."""
        if line.producer_id == self.producer_id and self.producer_epoch >= LARGEST_EPOCH:
            self.producer_id = self.producer_epoch = NONE
        elif self.producer_id != NONE:
            self.producer_epoch += 1
        line.producer_id = line.producer_epoch = NONE
        line.next_sequence, line.introduced = 0, False
