"""Bugs of leaders that ask the coordinator before they write the first batch of a transaction."""

from fencepost.impl.replication.partition import Partition
from fencepost.impl.transaction.verification import Subject, TransactionVerification


class WritesUnasked(TransactionVerification):
    """KIP-890: a first batch is written whether or not its transaction is open, as before Kafka 3.6."""

    def is_needed(self, partition: Partition, producer_id: int, producer_epoch: int, *, adds: bool) -> bool:
        """Only where the question makes the partition part of the transaction (TV2).

        Args:
            partition: to which the batch goes.
            producer_id: of the batch.
            producer_epoch: of the batch.
            adds: whether the coordinator adds the partition by the same question.
        """
        return adds and super().is_needed(partition, producer_id, producer_epoch, adds=adds)


class BelievesOldAnswers(TransactionVerification):
    """T10: an answer about one transaction opens the next (KAFKA-14884)."""

    def still_guarded(self, subject: Subject, guard: int) -> bool:
        """An answer is an answer. subject, guard: as in the class that this replaces."""
        return True
