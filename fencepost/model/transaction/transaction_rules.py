"""The transitions of a transaction at its coordinator: pure functions on one record of __transaction_state.

Owns which state follows which, with its epochs, and which requests a coordinator refuses (KIP-98, KIP-890).
Must not know logs, messages or bounds.
"""

from fencepost.model.transaction.transaction_state import (
    BETWEEN,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ENDING,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Constants,
    Marker,
    Transaction,
)


def is_of(constants: Constants, value: Transaction, epoch: int) -> bool:
    """epoch_fencing (T1): the coordinator refuses every producer epoch but the last one."""
    return epoch == value.epoch or not constants.keeps("epoch_fencing")


def with_partition(constants: Constants, value: Transaction, partition: int) -> Transaction | None:
    """AddPartitionsToTxn: the partition is part of the transaction, which begins if none is open.

    one_at_a_time (T25): while the last one ends, the answer is CONCURRENT_TRANSACTIONS.

    Args:
        constants: the constants.
        value: the transaction.
        partition: the partition.

    Returns:
        the record to write, or None if there is nothing to write or the request is refused.
    """
    if value.phase == ONGOING:
        if value.partitions >> partition & 1:
            return None
        return value._replace(partitions=value.partitions | 1 << partition)
    if value.phase in ENDING and constants.keeps("one_at_a_time"):
        return None
    if value.number == constants.most_begun:
        return None
    return value._replace(phase=ONGOING, partitions=1 << partition, number=value.number + 1)


def has(value: Transaction, partition: int) -> bool:
    """Whether the partition is part of the open transaction: the answer to a verification (KIP-890)."""
    return value.phase == ONGOING and bool(value.partitions >> partition & 1)


def ended(constants: Constants, value: Transaction, *, commit: bool) -> Transaction | None:
    """EndTxn of the producer. In the second version the epoch grows with it, and an abort finds a transaction
    to end although nothing was added to it (KIP-890).

    Args:
        constants: the constants.
        value: the transaction.
        commit: commit or abort.

    Returns:
        the record to write, or None if there is nothing to end.
    """
    second = constants.version == 2
    if value.phase == ONGOING:
        phase = PREPARE_COMMIT if commit else PREPARE_ABORT
        return value._replace(phase=phase, epoch=value.epoch + second)
    if second and not commit and value.phase in BETWEEN and value.number < constants.most_begun:
        number = value.number + 1
        return value._replace(phase=PREPARE_ABORT, epoch=value.epoch + 1, partitions=0, number=number)
    return None


def aborted(constants: Constants, value: Transaction) -> Transaction:
    """The coordinator aborts by itself. fence (KAFKA-6119): in a new epoch, so that the producer's requests
    are refused from then on. In the second version each end has a new epoch anyway.

    Args:
        constants: the bounds, and what is dropped.
        value: the transaction.
    """
    bumps = constants.version == 2 or constants.keeps("fence")
    return value._replace(phase=PREPARE_ABORT, epoch=value.epoch + bumps)


def completed(value: Transaction) -> Transaction:
    """Each partition has its marker."""
    phase = COMPLETE_COMMIT if value.phase == PREPARE_COMMIT else COMPLETE_ABORT
    return value._replace(phase=phase, partitions=0)


def initialised(constants: Constants, value: Transaction, producer: int) -> Transaction | None:
    """InitProducerId: the next epoch is the producer's own. A transaction that is open is aborted first.

    abort_open_first (T24): without it the new epoch is given out while a transaction is open.

    Args:
        constants: the constants.
        value: the transaction.
        producer: the producer.

    Returns:
        the record to write, or None if the producer must ask again.
    """
    if value.phase in ENDING:
        return None
    if value.phase == ONGOING and constants.keeps("abort_open_first"):
        return aborted(constants, value)
    return value._replace(phase=EMPTY, epoch=value.epoch + 1, partitions=0, owner=producer)


def to_mark(constants: Constants, value: Transaction) -> int:
    """to_mark (T3): every partition of the transaction gets its marker. Without it, the last one of several
    gets none.

    Args:
        constants: the constants.
        value: the transaction.

    Returns:
        the partitions as a bit set.
    """
    bits = value.partitions
    if constants.keeps("to_mark") or not bits & (bits - 1):
        return bits
    return bits & ~(1 << bits.bit_length() - 1)


def marker_of(constants: Constants, value: Transaction, coordinator_epoch: int) -> Marker:
    """The marker of a transaction that ends.

    Args:
        constants: the bounds.
        value: the transaction.
        coordinator_epoch: of the coordinator that decided.
    """
    commit = int(value.phase == PREPARE_COMMIT)
    return value.number, value.epoch, coordinator_epoch, commit, to_mark(constants, value)
