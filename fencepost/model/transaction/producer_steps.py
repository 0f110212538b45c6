"""The steps of producers in the transaction model, and the leaders' handling of their batches, on the values
of the slots that they read.

Owns transactions as a client makes them, and the answers that it gets. An answer is what a coordinator has in
memory: a producer that asks again gets it again. Must not know which slots exist, or how a coordinator
decides.
"""

from fencepost.model.explore.transition_system import EnabledActions
from fencepost.model.transaction import leader, transaction_rules
from fencepost.model.transaction.journal import Held, is_given
from fencepost.model.transaction.transaction_state import (
    ABORTING,
    ADD,
    BETWEEN,
    COMMITTING,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DONE,
    END,
    NEW,
    OPEN,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PRODUCE,
    RENEWING,
    Constants,
    Coordinator,
    Ghost,
    Journal,
    Partition,
    Producer,
    Transaction,
    with_request,
)


def answers(constants: Constants, epoch: int, journal: Journal, held: Held) -> bool:
    """Whether a coordinator answers from its memory. deposed_is_silent (T21): without it, one that has not
    heard of its successor still does.

    Args:
        constants: the bounds.
        epoch: of the coordinator.
        journal: the partition of `__transaction_state`.
        held: what the coordinator has in memory.
    """
    current = journal.elected == epoch or not constants.keeps("deposed_is_silent")
    return held != () and current


def ask_to_add(constants: Constants, number: int, producer: Producer) -> EnabledActions:
    """AddPartitionsToTxn is sent (the first version).

    Args:
        constants: the bounds.
        number: of the producer.
        producer: its state.
    """
    if constants.version == 2 or producer.state != OPEN:
        return
    for partition in range(constants.partitions):
        request = (ADD, producer.transaction, producer.epoch, partition, 0)
        if request not in producer.requests:
            after = producer._replace(requests=with_request(producer.requests, request))
            yield ("ask_to_add", number, partition), (after,)


def added(
    constants: Constants, number: int, epoch: int, producer: Producer, journal: Journal, held: Held
) -> EnabledActions:
    """AddPartitionsToTxn is answered.

    Args:
        constants: the constants.
        number: the producer's number.
        epoch: the coordinator epoch.
        producer: the producer.
        journal: the log.
        held: the coordinator's memory.

    Returns:
        the enabled actions.
    """
    if not isinstance(held, Coordinator) or producer.state != OPEN or constants.version == 2:
        return
    if not answers(constants, epoch, journal, held) or not transaction_rules.is_of(
        constants, held.value, producer.epoch
    ):
        return
    for partition in range(constants.partitions):
        asked = (ADD, producer.transaction, producer.epoch, partition, 0) in producer.requests
        if asked and not producer.added >> partition & 1 and transaction_rules.has(held.value, partition):
            after = producer._replace(added=producer.added | 1 << partition)
            yield ("added", number, epoch, partition), (after,)


def send(constants: Constants, number: int, producer: Producer) -> EnabledActions:
    """A record is sent to a partition; in the first version only after that was added.

    Args:
        constants: the bounds.
        number: of the producer.
        producer: its state.
    """
    if producer.state != OPEN:
        return
    for at in range(constants.partitions):
        allowed = constants.version == 2 or producer.added >> at & 1
        if not allowed or producer.sent >> at & 1:
            continue
        sequence = producer.sequences[at]
        request = (PRODUCE, producer.transaction, producer.epoch, at, sequence)
        after = producer._replace(
            sent=producer.sent | 1 << at,
            sequences=(*producer.sequences[:at], sequence + 1, *producer.sequences[at + 1 :]),
            requests=with_request(producer.requests, request),
        )
        yield ("send", number, at), (after,)


def verify(
    constants: Constants,
    number: int,
    at: int,
    epoch: int,
    producer: Producer,
    partition: Partition,
    journal: Journal,
    held: Held,
) -> EnabledActions:
    """A batch arrives that would begin a transaction here: the leader asks whether the partition is part of
    it, and hears that it is.

    Args:
        constants: the constants.
        number: the producer's number.
        at: the partition's number.
        epoch: the coordinator epoch.
        producer: the producer.
        partition: the partition.
        journal: the log.
        held: the coordinator's memory.

    Returns:
        the enabled actions.
    """
    if not isinstance(held, Coordinator) or not constants.keeps("is_needed"):
        return
    if not answers(constants, epoch, journal, held) or not transaction_rules.has(held.value, at):
        return
    for request in producer.requests:
        kind, transaction, request_epoch, target, _ = request
        if kind != PRODUCE or target != at or request in partition.verified:
            continue
        if partition.is_open and partition.epoch == request_epoch:
            continue
        if constants.keeps("check") and leader.is_stale(partition, request):
            continue
        if transaction_rules.is_of(constants, held.value, request_epoch):
            after = partition._replace(verified=with_request(partition.verified, request))
            yield ("verify", number, at, epoch, transaction), (after,)


def append(
    constants: Constants,
    number: int,
    at: int,
    producer: Producer,
    partition: Partition,
    journal: Journal,
    ghost: Ghost,
) -> EnabledActions:
    """A batch is written.

    Args:
        constants: the constants.
        number: the producer's number.
        at: the partition's number.
        producer: the producer.
        partition: the partition.
        journal: the log of transactions; only for the ghost in the record.
        ghost: the ghost.

    Returns:
        the enabled actions.
    """
    under = journal.value.number if transaction_rules.has(journal.value, at) else -1
    for request in producer.requests:
        kind, transaction, epoch, target, _ = request
        if kind != PRODUCE or target != at:
            continue
        name = constants.name_of(number, transaction)
        if leader.may_append(constants, partition, request, name):
            late = ghost.answered > epoch
            after = leader.appended(constants, partition, request, name, under, late=late)
            yield ("append", number, at, transaction), (after,)


def acked(
    constants: Constants, number: int, at: int, producer: Producer, partition: Partition
) -> EnabledActions:
    """The batch is in the log, and the producer gets the acknowledgement.

    Args:
        constants: the constants.
        number: the producer's number.
        at: the partition's number.
        producer: the producer.
        partition: the partition.

    Returns:
        the enabled actions.
    """
    if producer.state != OPEN or not producer.sent & ~producer.acked & 1 << at:
        return
    name = constants.name_of(number, producer.transaction)
    if any(record.transaction == name for record in partition.records):
        yield ("acked", number, at), (producer._replace(acked=producer.acked | 1 << at),)


def ask_to_end(constants: Constants, number: int, producer: Producer, ghost: Ghost) -> EnabledActions:
    """EndTxn is sent: a commit only after each record is acknowledged.

    Args:
        constants: the bounds.
        number: of the producer.
        producer: its state.
        ghost: what was decided.
    """
    if producer.state != OPEN:
        return
    begun = producer.sent or any(
        kind == ADD and transaction == producer.transaction
        for kind, transaction, _, _, _ in producer.requests
    )
    if not begun:
        return
    for commit in (0, 1):
        if commit and (not producer.sent or producer.sent != producer.acked):
            continue
        request = (END, producer.transaction, producer.epoch, commit, 0)
        after = producer._replace(
            state=COMMITTING if commit else ABORTING, requests=with_request(producer.requests, request)
        )
        asked = ghost.asked | commit << constants.name_of(number, producer.transaction)
        yield ("ask_to_end", number, commit), (after, ghost._replace(asked=asked))


def is_ended(constants: Constants, producer: Producer, value: Transaction) -> bool:
    """Whether EndTxn is answered without an error. The second version names the epoch after the producer's;
    that is the producer's next one.

    Args:
        constants: the constants.
        producer: the producer.
        value: the coordinator's transaction.

    Returns:
        whether it is.
    """
    expected = producer.epoch + (constants.version == 2)
    if value.epoch != expected:
        return False
    nothing = producer.state == ABORTING and constants.version == 1 and not producer.added
    if nothing and value.phase in BETWEEN:
        return True  # INVALID_TXN_STATE: there is nothing to abort
    phases = (
        (PREPARE_COMMIT, COMPLETE_COMMIT) if producer.state == COMMITTING else (PREPARE_ABORT, COMPLETE_ABORT)
    )
    return value.phase in phases


def ended(
    constants: Constants,
    number: int,
    epoch: int,
    producer: Producer,
    journal: Journal,
    held: Held,
    ghost: Ghost,
) -> EnabledActions:
    """EndTxn is answered. no_late_end (KAFKA-17754): no EndTxn of this transaction is still on its way.
    settle (KAFKA-8805): if a batch may still arrive, the producer asks for another epoch.

    Args:
        constants: the constants.
        number: the producer's number.
        epoch: the coordinator epoch.
        producer: the producer.
        journal: the log.
        held: the coordinator's memory.
        ghost: the ghost.

    Returns:
        the enabled actions.
    """
    if not isinstance(held, Coordinator) or producer.state not in (COMMITTING, ABORTING):
        return
    if not answers(constants, epoch, journal, held) or not is_ended(constants, producer, held.value):
        return
    requests = producer.requests
    if constants.keeps("no_late_end"):
        requests = tuple(request for request in requests if request[0] != END)
    unknown = producer.sent != producer.acked and constants.version == 1 and constants.keeps("settle")
    after = _next(constants, producer, OPEN)._replace(requests=requests)
    if after.state == OPEN and unknown:
        after = after._replace(state=RENEWING)
    if constants.version == 2:
        after = _in_epoch(constants, after, held.value.epoch)
        ghost = ghost._replace(answered=max(ghost.answered, held.value.epoch))
    if producer.state == COMMITTING:
        name = constants.name_of(number, producer.transaction)
        ghost = ghost._replace(acknowledged=ghost.acknowledged | 1 << name)
    yield ("ended", number, epoch), (after, ghost)


def given(
    constants: Constants,
    number: int,
    epoch: int,
    producer: Producer,
    journal: Journal,
    held: Held,
    ghost: Ghost,
) -> EnabledActions:
    """InitProducerId is answered: the producer has an epoch of its own.

    Args:
        constants: the constants.
        number: the producer's number.
        epoch: the coordinator epoch.
        producer: the producer.
        journal: the log.
        held: the coordinator's memory.
        ghost: the ghost.

    Returns:
        the enabled actions.
    """
    if not isinstance(held, Coordinator) or producer.state not in (NEW, RENEWING):
        return
    if not answers(constants, epoch, journal, held) or not is_given(number, producer, held.value):
        return
    after = _in_epoch(constants, producer._replace(state=OPEN), held.value.epoch)
    answered = max(ghost.answered, held.value.epoch)
    yield ("given", number, epoch), (after, ghost._replace(answered=answered))


def _next(constants: Constants, producer: Producer, state: int) -> Producer:
    """The producer after a transaction."""
    following = producer.transaction + 1
    over = following == constants.transactions
    return producer._replace(state=DONE if over else state, transaction=following, added=0, sent=0, acked=0)


def _in_epoch(constants: Constants, producer: Producer, epoch: int) -> Producer:
    """Sequence numbers begin again in each epoch."""
    return producer._replace(epoch=epoch, sequences=(0,) * constants.partitions)
