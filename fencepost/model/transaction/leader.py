"""What the leader of a partition writes and refuses: pure functions on one partition.

Owns sequence numbers, the epochs of batches and markers, and what readers are shown. Must not know
coordinators or producers.
"""

from fencepost.model.transaction.transaction_state import (
    ABORTED,
    COMMITTED,
    NONE,
    UNDECIDED,
    Constants,
    Marker,
    Partition,
    Record,
    Request,
)

MOST_COPIES = 2
"""How often a batch is written if nothing prevents it. Reason: two copies show the mistake."""


def follows(partition: Partition, request: Request) -> bool:
    """check (KIP-98): a batch is neither of an earlier epoch, nor a duplicate, nor does it leave a gap. The
    first batch of a producer that the log does not know may have any number, and so may the first one after a
    marker with a new epoch.

    Args:
        partition: the partition.
        request: the batch.

    Returns:
        whether it may be appended.
    """
    _, _, epoch, _, sequence = request
    if epoch != partition.epoch:
        return epoch > partition.epoch and (sequence == 0 or partition.epoch == NONE)
    return partition.sequence == NONE or sequence == partition.sequence + 1


def is_stale(partition: Partition, request: Request) -> bool:
    """Whether a batch can never be appended any more: the log has it, or has a later epoch.

    Args:
        partition: the log.
        request: with the batch.
    """
    _, _, epoch, _, sequence = request
    return epoch < partition.epoch or (epoch == partition.epoch and sequence <= partition.sequence)


def may_append(constants: Constants, partition: Partition, request: Request, name: int) -> bool:
    """Whether the leader appends a batch. is_needed (KIP-890): the first batch of a transaction is appended
    only after the coordinator has confirmed that the partition is part of it.

    Args:
        constants: the constants.
        partition: the partition.
        request: the batch.
        name: the transaction that it was sent in.

    Returns:
        whether it does.
    """
    known = partition.is_open and partition.epoch == request[2]
    if not known and request not in partition.verified and constants.keeps("is_needed"):
        return False
    if constants.keeps("check"):
        return follows(partition, request)
    return sum(record.transaction == name for record in partition.records) < MOST_COPIES


def appended(
    constants: Constants, partition: Partition, request: Request, name: int, under: int, *, late: bool
) -> Partition:
    """The partition with one more record.

    Args:
        constants: the constants.
        partition: the partition.
        request: the batch.
        name: the transaction that it was sent in.
        under: the number of the coordinator's transaction.
        late: whether a later epoch had been given out.

    Returns:
        the new partition.
    """
    kept = (
        () if constants.keeps("still_guarded") else tuple(one for one in partition.verified if one != request)
    )
    return Partition(
        epoch=request[2],
        sequence=request[4],
        coordinator_epoch=partition.coordinator_epoch,
        is_open=True,
        records=(*partition.records, Record(name, under, UNDECIDED, NONE, late)),
        verified=kept,
    )


def is_refused(constants: Constants, partition: Partition, marker: Marker) -> bool:
    """Whether the leader refuses a marker for good.

    check_marker (KAFKA-5231): a marker of an earlier producer epoch. coordinator_fencing (T16): one of
    an earlier coordinator epoch. marker_above_epoch (KIP-1228): in the second version, one of an epoch that
    the log has already, unless it was written before (marker_again, KAFKA-19999).

    Args:
        constants: the constants.
        partition: the partition.
        marker: the marker.

    Returns:
        whether it is refused.
    """
    _, epoch, coordinator_epoch, _, _ = marker
    if epoch < partition.epoch and constants.keeps("check_marker"):
        return True
    if coordinator_epoch < partition.coordinator_epoch and constants.keeps("coordinator_fencing"):
        return True
    if constants.version == 2 and epoch == partition.epoch and constants.keeps("marker_above_epoch"):
        return partition.is_open or not constants.keeps("marker_again")
    return False


def marked(constants: Constants, partition: Partition, marker: Marker) -> Partition:
    """The partition after a marker: the records before it are decided. still_guarded (T10): it makes
    each earlier verification void.

    Args:
        constants: the constants.
        partition: the partition.
        marker: the marker.

    Returns:
        the new partition.
    """
    number, epoch, coordinator_epoch, commit, _ = marker
    fate = COMMITTED if commit else ABORTED
    records = tuple(
        record._replace(fate=fate, ended_by=number) if record.fate == UNDECIDED else record
        for record in partition.records
    )
    return Partition(
        epoch=epoch,
        sequence=partition.sequence if epoch == partition.epoch else NONE,
        coordinator_epoch=coordinator_epoch,
        is_open=False,
        records=records,
        verified=() if constants.keeps("still_guarded") else partition.verified,
    )


def shown(constants: Constants, partition: Partition, *, offsets: bool) -> tuple[Record, ...]:
    """What a reader of committed records is shown. last_stable_offset (T5): it stops at the first record of a
    transaction that is open. aborted_transactions (T6): it leaves out those of aborted ones. For a group's
    offsets: count (T7), those of a committed transaction count; ended (T8), those of an aborted one do not.

    Args:
        constants: the constants.
        partition: the partition.
        offsets: whether it is one of __consumer_offsets.

    Returns:
        the records.
    """
    end = len(partition.records)
    if constants.keeps("last_stable_offset"):
        undecided = (at for at, record in enumerate(partition.records) if record.fate == UNDECIDED)
        end = next(undecided, end)
    hides = constants.keeps("ended" if offsets else "aborted_transactions")
    counts = constants.keeps("count") or not offsets
    return tuple(
        record
        for record in partition.records[:end]
        if (record.fate != ABORTED or not hides) and (record.fate != COMMITTED or counts)
    )
