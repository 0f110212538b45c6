"""One transactional id: what is durable of it, and where it is about to go (Kafka's TransactionMetadata).

Owns the transitions, with their epochs. Must not know logs, requests or time. A transition is prepared,
written, and completed when every replica has the record; until then it is pending, and nobody else may begin
one.
"""

from typing import Any

from attrs import define, evolve

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.transaction_records import NO_EPOCH, NO_ID, NOT_STARTED, TransactionValue
from fencepost.impl.transaction.transaction_states import BETWEEN, PREVIOUS, TransactionPhase

LARGEST_EPOCH = (1 << 15) - 1
EXHAUSTED = LARGEST_EPOCH - 1
"""From this epoch on a producer gets another id: the largest one is left for fencing it."""
_T = TransactionPhase


@define
class Transit:
    """A transition that was prepared."""

    value: TransactionValue
    # What `Transaction.last_epoch` will be.
    last_epoch: int


@define
class Transaction:
    """number: of its partition of __transaction_state. value: as every replica has it, but for partitions
    whose marker is written. last_epoch: the epoch before the last one, if the producer asked for that itself
    (KIP-360), so that its retry is recognised; in memory only. pending: the phase of the transition under
    way. fence_failed: an epoch was raised to fence and may not be durable; it was shown to nobody and is
    used again."""

    transactional_id: str
    number: int
    value: TransactionValue
    last_epoch: int = NO_EPOCH
    pending: TransactionPhase | None = None
    fence_failed: bool = False

    @property
    def phase(self) -> TransactionPhase:
        """As every replica has it."""
        return self.value.phase

    @property
    def exhausted(self) -> bool:
        """Whether the producer needs another id."""
        return self.value.producer_epoch >= EXHAUSTED

    def _prepare(self, phase: TransactionPhase, last_epoch: int, **changes: Any) -> Transit:
        assert self.pending is None, f"{self.transactional_id}: {self.pending} is under way"
        assert self.phase in PREVIOUS[phase], f"{self.transactional_id}: from {self.phase} to {phase}"
        self.pending = phase
        changed = evolve(self.value, phase=phase, **changes)
        return Transit(changed, last_epoch)

    # ---- transitions

    def prepare_bump(self, timeout_ms: int, expected: int | None, now_ms: int) -> Transit | None:
        """InitProducerId: the next epoch. expected: the epoch that the producer names (KIP-360), None if it
        names none. None if it was fenced."""
        epoch = self.value.producer_epoch
        if expected is None:
            following, last = epoch + 1, NO_EPOCH
        elif epoch == NO_EPOCH or expected == epoch:
            following, last = epoch + 1, epoch
        elif expected == self.last_epoch:
            following, last = epoch, self.last_epoch  # the answer to its first attempt was lost
        else:
            return None
        return self._prepare(
            _T.EMPTY,
            last,
            producer_epoch=following,
            previous_producer_id=self.value.producer_id,
            next_producer_id=NO_ID,
            timeout_ms=timeout_ms,
            partitions=(),
            started_ms=NOT_STARTED,
            updated_ms=now_ms,
            client_version=0,
        )

    def prepare_rotation(self, producer_id: int, timeout_ms: int, now_ms: int, *, named: bool) -> Transit:
        """InitProducerId when the epochs are used up: another id. named: the producer named its epoch."""
        return self._prepare(
            _T.EMPTY,
            self.value.producer_epoch if named else NO_EPOCH,
            producer_id=producer_id,
            producer_epoch=0,
            previous_producer_id=self.value.producer_id,
            next_producer_id=NO_ID,
            timeout_ms=timeout_ms,
            partitions=(),
            started_ms=NOT_STARTED,
            updated_ms=now_ms,
            client_version=0,
        )

    def prepare_partitions(self, partitions: tuple[TopicPartition, ...], now_ms: int) -> Transit:
        """AddPartitionsToTxn: the partitions become part of the transaction, which begins if it is not open.

        Args:
            partitions: to be added.
            now_ms: virtual milliseconds.
        """
        begins = self.phase in BETWEEN
        return self._prepare(
            _T.ONGOING,
            self.last_epoch,
            partitions=tuple(sorted({*self.value.partitions, *partitions})),
            previous_producer_id=self.value.producer_id,
            started_ms=now_ms if begins else self.value.started_ms,
            updated_ms=now_ms,
        )

    def fence(self) -> int:
        """Somebody else takes the id over, or the time is up: the epoch of the abort that follows."""
        self.pending = _T.PREPARE_EPOCH_FENCE
        assert self.phase in PREVIOUS[_T.PREPARE_EPOCH_FENCE], self.phase
        return self.value.producer_epoch if self.fence_failed else self.value.producer_epoch + 1

    def prepare_end(self, *, commit: bool, now_ms: int, version: int = 1, next_id: int = NO_ID) -> Transit:
        """EndTxn. version 2: the epoch goes up with it (KIP-890), also where nothing was added; such a
        transaction begins now. next_id: of the producer's next transaction, where the epochs are used up."""
        epoch = self.value.producer_epoch
        bumps = version >= 2
        assert bumps or self.phase is _T.ONGOING, self.phase
        return self._prepare(
            _T.PREPARE_COMMIT if commit else _T.PREPARE_ABORT,
            epoch if bumps else self.last_epoch,
            producer_epoch=epoch + 1 if bumps else epoch,
            previous_producer_id=self.value.producer_id,
            next_producer_id=next_id,
            started_ms=now_ms if self.phase in BETWEEN else self.value.started_ms,
            updated_ms=now_ms,
            client_version=version if bumps else 0,
        )

    def prepare_fenced_abort(self, epoch: int, now_ms: int) -> Transit:
        """The abort after `fence`, in its epoch."""
        assert self.pending is _T.PREPARE_EPOCH_FENCE, self.pending
        self.pending = None
        self.value = evolve(self.value, producer_epoch=epoch)
        self.last_epoch = NO_EPOCH
        return self.prepare_end(commit=False, now_ms=now_ms)

    def prepare_complete(self, now_ms: int) -> Transit:
        """Every partition has its marker."""
        phase = _T.COMPLETE_COMMIT if self.phase is _T.PREPARE_COMMIT else _T.COMPLETE_ABORT
        self.fence_failed = False
        value = self.value
        rotates = value.client_version >= 2 and value.next_producer_id != NO_ID
        return self._prepare(
            phase,
            value.producer_epoch if rotates else self.last_epoch,
            producer_id=value.next_producer_id if rotates else value.producer_id,
            producer_epoch=0 if rotates else value.producer_epoch,
            previous_producer_id=value.producer_id,
            next_producer_id=NO_ID,
            partitions=(),
            updated_ms=now_ms,
        )

    def prepare_removal(self) -> None:
        """The id expires."""
        assert self.pending is None and self.phase in PREVIOUS[_T.DEAD], (self.pending, self.phase)
        self.pending = _T.DEAD

    # ---- what became of it

    def complete(self, transit: Transit) -> None:
        """Every replica has the record."""
        assert self.pending is transit.value.phase, (self.pending, transit.value.phase)
        self.value, self.last_epoch, self.pending = transit.value, transit.last_epoch, None

    def give_up(self) -> None:
        """It was not written, or nobody knows."""
        self.pending = None
