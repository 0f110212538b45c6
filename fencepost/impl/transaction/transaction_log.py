"""Writing transactions into __transaction_state.

Owns the answer to "is it me?", and when a transition counts. Must not know what asked for it.
"""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from attrs import define, field

from fencepost.impl.coordinator.durable import Done, DurableAppends, KeyAndValue
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.transaction import Transaction, Transit
from fencepost.impl.transaction.transaction_records import encode_key, encode_value
from fencepost.impl.transaction.transaction_table import TransactionTable
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

Written = Callable[[ErrorCode], None]
COORDINATOR_ERRORS = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error that a producer gets for an append's error (TransactionStateManager.appendTransactionToLog)."""


@define
class TransactionLog(DurableAppends):
    """Of all transactions of this broker."""

    TIMER: ClassVar[str] = "transaction_append"
    table: TransactionTable = field(kw_only=True)

    def not_coordinator(self, number: int) -> ErrorCode:
        """Protection KIP-98: a broker answers for a transaction only while it leads the partition of its id,
        and in the epoch in which it loaded it."""
        return self.table.not_coordinator(number)

    def store(
        self, transaction: Transaction, transit: Transit, written: Written, *, keep_pending: bool = False
    ) -> None:
        """Write a transition; it counts when every replica has it. keep_pending: the caller tries again
        after COORDINATOR_NOT_AVAILABLE, so that nobody may come between."""
        epoch = self.table.epoch_of(transaction)
        version = 1 if self.table.options.version >= 2 else 0
        record = (encode_key(transaction.transactional_id), encode_value(transit.value, version=version))
        done = partial(self._stored, transaction, transit, epoch, written, keep_pending)
        key = self.table.key(transaction.number)
        self.counts_when_durable(key, epoch, record, done)

    def counts_when_durable(self, key: TopicPartition, epoch: int, record: KeyAndValue, done: Done) -> None:
        """Protection KIP-98: a transition counts when every replica has it; else the next coordinator decides
        otherwise than a producer, or a partition, was answered.

        Args:
            key: the partition of `__transaction_state`.
            epoch: of the coordinator.
            record: key and value.
            done: called with the outcome.
        """
        self.write(key, epoch, (record,), done, self.table.options.append_timeout_ms)

    def _stored(
        self,
        transaction: Transaction,
        transit: Transit,
        epoch: int,
        written: Written,
        keep_pending: bool,
        error: ErrorCode,
        base_offset: int,
    ) -> None:
        error = COORDINATOR_ERRORS.get(error, error)
        if not self.table.is_current(transaction, epoch):
            written(ErrorCode.NOT_COORDINATOR)
            return
        if error is NO_ERROR:
            transaction.complete(transit)
            self.table.tell(transaction)
        elif not (keep_pending and error is ErrorCode.COORDINATOR_NOT_AVAILABLE):
            transaction.give_up()
        written(error)

    def remove(self, transaction: Transaction) -> None:
        """Write that the id is no more, and forget it once that is durable."""
        transaction.prepare_removal()
        epoch = self.table.epoch_of(transaction)

        def removed(error: ErrorCode, base_offset: int) -> None:
            if not self.table.is_current(transaction, epoch):
                return
            if error is NO_ERROR:
                del self.table.transactions[transaction.transactional_id]
            else:
                transaction.give_up()

        key = self.table.key(transaction.number)
        tombstone = (encode_key(transaction.transactional_id), None)
        self.write(key, epoch, (tombstone,), removed, self.table.options.append_timeout_ms)
