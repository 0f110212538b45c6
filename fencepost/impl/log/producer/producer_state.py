"""The producers that a log remembers, so that a batch that was sent twice is written once (KIP-98, KIP-360).

Owns the last batches of each producer id, the checks of a produced batch, and open transactions. Must not
know files or whether an append worked. `check` changes nothing; `update` is called for a batch that is in the
log. (KAFKA-6683: a state ahead of the log refuses the retry of a failed append.)
"""

from attrs import define, field, frozen

from fencepost.impl.log.batch.control_records import EndTransaction
from fencepost.impl.log.batch.header import NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, BatchHeader
from fencepost.traces.errors import FencepostError

REMEMBERED_BATCHES = 5
"""The batches remembered per producer. Reason: a producer has at most five batches in flight
(max.in.flight.requests.per.connection), so a retry is one of the last five."""
LARGEST_SEQUENCE = (1 << 31) - 1
NO_EPOCH, NO_OFFSET, NO_COORDINATOR = -1, -1, -1


class OutOfOrderSequenceError(FencepostError):
    """OUT_OF_ORDER_SEQUENCE_NUMBER: earlier batches of this producer are missing, or the batch is an old
    one."""


class InvalidProducerEpochError(FencepostError):
    """INVALID_PRODUCER_EPOCH: a later incarnation of this producer has already written."""


class CoordinatorFencedError(FencepostError):
    """TRANSACTION_COORDINATOR_FENCED: a later coordinator of this producer has written a marker already."""


class NotTransactionalError(FencepostError):
    """INVALID_TXN_STATE: a batch outside of transactions, while a transaction of its producer is open
    here."""


@frozen(kw_only=True)
class ProducedBatch:
    """A batch that is in the log."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


@frozen(kw_only=True)
class EndedTransaction:
    """A transaction with its marker in the log."""

    producer_id: int
    # Of its first record here.
    first_offset: int
    # Of the marker.
    last_offset: int
    aborted: bool


@define(eq=True)
class Producer:
    """The state of one producer."""

    # The producer id.
    producer_id: int
    # The epoch of its last batch; it never decreases.
    epoch: int = NO_EPOCH
    # The last REMEMBERED_BATCHES batches of this epoch, oldest first.
    batches: list[ProducedBatch] = field(factory=list)
    # The time of its last batch.
    timestamp_ms: int = NO_TIMESTAMP
    # The first offset of its open transaction, or NO_OFFSET.
    open_since: int = NO_OFFSET
    # The coordinator epoch of its last marker.
    coordinator_epoch: int = NO_COORDINATOR

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last batch; NO_SEQUENCE if none is known."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


@define
class ProducerState:
    """The producers of a log.

    Attributes:
        producers: by id.
        end_offset: the state is that of the log up to here; every update moves it.
        uncommitted: ended transactions with a marker that may still be truncated: at or above the last known
            high watermark.
    """

    producers: dict[int, Producer] = field(factory=dict)
    end_offset: int = 0
    uncommitted: list[EndedTransaction] = field(factory=list, eq=False)

    # ---- may it be appended?

    def check(self, header: BatchHeader) -> ProducedBatch | None:
        """Check whether a produced batch may be appended.

        Returns None if it may, or the batch in the log that it duplicates. Raises OutOfOrderSequenceError or
        InvalidProducerEpochError. Only a leader checks: a follower appends what its leader has (KAFKA-6003).
        """
        known = self.producers.get(header.producer_id)
        if header.producer_id == NO_PRODUCER_ID or known is None:
            return None
        if header.producer_epoch < known.epoch:
            raise InvalidProducerEpochError(
                expected=f"epoch {known.epoch} or later", seen=f"{header.producer_epoch}", where=_who(header)
            )
        if header.is_control or header.base_sequence == NO_SEQUENCE:
            return None
        duplicate = self.duplicate_of(known, header)
        if duplicate is None:
            self.sequence_follows(known, header)
            if known.open_since != NO_OFFSET and not header.is_transactional:
                raise NotTransactionalError(
                    expected="a transactional batch", seen="one that is not", where=_who(header)
                )
        return duplicate

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, version: int = 1
    ) -> None:
        """Whether a marker may be appended.

        Args:
            producer_id: of the transaction.
            producer_epoch: of the transaction.
            coordinator_epoch: of the coordinator that decided.
            version: of the transaction (KIP-890).

        Raises:
            InvalidProducerEpochError: if the producer has a later epoch, or this is the epoch of its next
                transaction.
            CoordinatorFencedError: if a later coordinator has written a marker.
        """
        known = self.producers.get(producer_id)
        if known is None:
            return
        where = f"marker of producer {producer_id}"
        if producer_epoch < known.epoch:
            raise InvalidProducerEpochError(
                expected=f"epoch {known.epoch} or later", seen=f"{producer_epoch}", where=where
            )
        if version >= 2:
            self.marker_above_epoch(known, producer_epoch, where)
        self.coordinator_fencing(known, coordinator_epoch, where)

    def marker_above_epoch(self, known: Producer, producer_epoch: int, where: str) -> None:
        """Protection KIP-1228 (Kafka 4.2): in the second version the epoch of a marker is also that of the
        next transaction's batches, so that a marker that comes late would end that one. With no transaction
        open the marker is a repetition, and does no harm (KAFKA-19999).

        Args:
            known: what the log knows of the producer.
            producer_epoch: of the marker.
            where: the partition, for the message.

        Raises:
            InvalidProducerEpochError: if a transaction of this epoch is open.
        """
        if producer_epoch == known.epoch and known.open_since != NO_OFFSET:
            raise InvalidProducerEpochError(
                expected=f"an epoch above {known.epoch}, in which a transaction is open",
                seen=f"{producer_epoch}",
                where=where,
            )

    def coordinator_fencing(self, known: Producer, coordinator_epoch: int, where: str) -> None:
        """Protection KIP-98: a marker of a coordinator that another one has replaced comes too late. The
        transaction that it would end may be the next one.

        Args:
            known: what the log knows of the producer.
            coordinator_epoch: of the marker.
            where: the partition, for the message.

        Raises:
            CoordinatorFencedError: if a later coordinator has written a marker.
        """
        if coordinator_epoch < known.coordinator_epoch:
            raise CoordinatorFencedError(
                expected=f"coordinator epoch {known.coordinator_epoch} or later",
                seen=f"{coordinator_epoch}",
                where=where,
            )

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of the producer is open in this log.

        Args:
            producer_id: of the producer.
            producer_epoch: of the producer.
        """
        known = self.producers.get(producer_id)
        return known is not None and known.open_since != NO_OFFSET and known.epoch == producer_epoch

    def duplicate_of(self, known: Producer, header: BatchHeader) -> ProducedBatch | None:
        """Protection: detect a retry of one of the last five batches.

        Args:
            known: the producer.
            header: the header of the new batch.

        Returns:
            the batch in the log, or None.
        """
        if known.epoch != header.producer_epoch:
            return None
        sequences = (header.base_sequence, header.last_sequence)
        return next(
            (batch for batch in known.batches if (batch.first_sequence, batch.last_sequence) == sequences),
            None,
        )

    def sequence_follows(self, known: Producer, header: BatchHeader) -> None:
        """Protection: sequence numbers have no gap. An unknown producer may begin anywhere (its records may
        have been deleted); a new epoch begins at 0.

        Args:
            known: the producer.
            header: the header of the new batch.

        Raises:
            OutOfOrderSequenceError: if the batch does not continue the producer's sequence.
        """
        if known.epoch == header.producer_epoch:
            if not known.batches:
                return
            expected = 0 if known.last_sequence == LARGEST_SEQUENCE else known.last_sequence + 1
        else:
            if known.epoch == NO_EPOCH:
                return
            expected = 0
        if header.base_sequence != expected:
            raise OutOfOrderSequenceError(
                expected=f"sequence {expected} in epoch {header.producer_epoch}",
                seen=str(header.base_sequence),
                where=_who(header),
            )

    # ---- it was appended

    def update(self, header: BatchHeader, marker: EndTransaction | None = None) -> EndedTransaction | None:
        """A batch is in the log. marker: the transaction marker in it, if any. Returns the transaction that
        it ends."""
        assert header.base_offset >= self.end_offset, (header.base_offset, self.end_offset)
        self.end_offset = header.next_offset
        if header.producer_id == NO_PRODUCER_ID:
            return None
        producer = self.producers.setdefault(header.producer_id, Producer(header.producer_id))
        if header.producer_epoch != producer.epoch:
            producer.epoch, producer.batches = header.producer_epoch, []
        producer.timestamp_ms = header.max_timestamp_ms
        if header.is_control:
            return None if marker is None else self._end(producer, header, marker)
        if header.is_transactional and producer.open_since == NO_OFFSET:
            producer.open_since = header.base_offset
        if header.base_sequence != NO_SEQUENCE:
            batch = ProducedBatch(
                first_sequence=header.base_sequence,
                last_sequence=header.last_sequence,
                first_offset=header.base_offset,
                last_offset=header.last_offset,
                timestamp_ms=header.max_timestamp_ms,
            )
            producer.batches = [*producer.batches, batch][-REMEMBERED_BATCHES:]
        return None

    def _end(
        self, producer: Producer, header: BatchHeader, marker: EndTransaction
    ) -> EndedTransaction | None:
        """End a transaction; None if it wrote nothing here."""
        begun, producer.open_since = producer.open_since, NO_OFFSET
        producer.coordinator_epoch = marker.coordinator_epoch
        if begun == NO_OFFSET:
            return None
        ended = EndedTransaction(
            producer_id=producer.producer_id,
            first_offset=begun,
            last_offset=header.last_offset,
            aborted=not marker.commit,
        )
        self.uncommitted.append(ended)
        return ended

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that have been silent for too long and have no open transaction.

        Args:
            now_ms: the current time in milliseconds.
            expiration_ms: how long a producer may be silent.
        """
        for producer in list(self.producers.values()):
            if producer.open_since == NO_OFFSET and now_ms - producer.timestamp_ms >= expiration_ms:
                del self.producers[producer.producer_id]

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The first offset of the oldest transaction that is not finally decided; None if there is none. A
        transaction is not finally decided if it is open, or if its marker is not committed (a leader without
        the marker may decide otherwise).

        high_watermark: it never decreases, except with a truncation, which rebuilds this state.
        """
        if not (self.uncommitted or self.producers):
            return None
        self.uncommitted = [ended for ended in self.uncommitted if ended.last_offset >= high_watermark]
        opened = self.first_open_offset()
        begun = [ended.first_offset for ended in self.uncommitted] + ([] if opened is None else [opened])
        return min(begun, default=None)

    def stable_after(self, ended: EndedTransaction) -> int:
        """The last stable offset right after this transaction, once everything is committed."""
        opened = self.first_open_offset()
        return ended.last_offset + 1 if opened is None else opened

    def first_open_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if there is none."""
        opened = [one.open_since for one in self.producers.values() if one.open_since != NO_OFFSET]
        return min(opened, default=None)


def _who(header: BatchHeader) -> str:
    return f"batch of producer {header.producer_id}"
