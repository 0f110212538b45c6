"""The steps of coordinators in the transaction model, on the values of the slots that they read.

Owns __transaction_state with its elections and loads, the coordinator's handling of requests, and markers.
Must not know which slots exist, or what producers do.
"""

from fencepost.model.explore.transition_system import EnabledActions
from fencepost.model.transaction import leader, transaction_rules
from fencepost.model.transaction.transaction_state import (
    ADD,
    BETWEEN,
    END,
    ENDING,
    NEW,
    ONGOING,
    PREPARE_COMMIT,
    PRODUCE,
    RENEWING,
    Constants,
    Coordinator,
    Ghost,
    Journal,
    Marker,
    Partition,
    Producer,
    Transaction,
)

Held = Coordinator | tuple[()]
Markers = tuple[Marker, ...]


def _with(markers: Markers, marker: Marker) -> Markers:
    return tuple(sorted({*markers, marker})) if marker[4] else markers


def _decided(ghost: Ghost, value: Transaction) -> Ghost:
    """The decision is durable."""
    if value.phase not in ENDING:
        return ghost
    if value.phase == PREPARE_COMMIT:
        return ghost._replace(committed=ghost.committed | 1 << value.number)
    return ghost._replace(aborted=ghost.aborted | 1 << value.number)


def writes(epoch: int, journal: Journal, held: Held) -> bool:
    """Whether the coordinator may write the next record: it leads, and no transition is under way.

    Args:
        epoch: of the coordinator.
        journal: the partition of `__transaction_state`.
        held: what the coordinator has in memory.
    """
    return held != () and journal.elected == epoch and journal.tail == ()


# ---- the log


def elect(constants: Constants, journal: Journal, ghost: Ghost) -> EnabledActions:
    """The next broker leads the partition of `__transaction_state`. It has what was durable; it has the
    record after that, or not.

    Args:
        constants: the bounds.
        journal: the partition.
        ghost: what was decided.
    """
    if journal.elected == constants.epochs:
        return
    following = journal.elected + 1
    yield ("elect", 0), (Journal(following, journal.value, ()), ghost)
    if isinstance(journal.tail, Transaction):
        yield ("elect", 1), (Journal(following, journal.tail, ()), _decided(ghost, journal.tail))


def load(constants: Constants, epoch: int, journal: Journal, held: Held, markers: Markers) -> EnabledActions:
    """The new coordinator reads the last record. loaded (T2): with the epoch that was given out last.
    go_on_with_ends (KAFKA-16352): it sends the markers of an end that was decided.

    Args:
        constants: the constants.
        epoch: the coordinator epoch.
        journal: the log.
        held: the coordinator's memory.
        markers: the markers that may arrive.

    Returns:
        the enabled actions.
    """
    if held != () or journal.elected != epoch:
        return
    value = journal.value
    if not constants.keeps("loaded"):
        value = value._replace(epoch=max(0, value.epoch - 1))
    sends = value.phase in ENDING and constants.keeps("go_on_with_ends")
    if sends:
        markers = _with(markers, transaction_rules.marker_of(constants, value, epoch))
    yield ("load", epoch), (Coordinator(value, 0, sends), markers)


def unload(constants: Constants, epoch: int, journal: Journal, held: Held) -> EnabledActions:
    """A coordinator learns that another one was elected.

    Args:
        constants: the bounds.
        epoch: of the coordinator.
        journal: the partition.
        held: what the coordinator has in memory.
    """
    if held != () and journal.elected > epoch:
        yield ("unload", epoch), ((),)


def replicate(
    constants: Constants, epoch: int, journal: Journal, held: Held, markers: Markers, ghost: Ghost
) -> EnabledActions:
    """Every replica has the record. A decision counts from now on, and its markers are sent.

    Args:
        constants: the constants.
        epoch: the coordinator epoch.
        journal: the log.
        held: the coordinator's memory.
        markers: the markers that may arrive.
        ghost: the ghost.

    Returns:
        the enabled actions.
    """
    value = journal.tail
    if held == () or journal.elected != epoch or not isinstance(value, Transaction):
        return
    if value.phase in ENDING:
        markers = _with(markers, transaction_rules.marker_of(constants, value, epoch))
    after = Coordinator(value, 0, value.phase in ENDING)
    yield ("replicate", epoch), (Journal(epoch, value, ()), after, markers, _decided(ghost, value))


# ---- requests


def add(
    constants: Constants, number: int, epoch: int, producer: Producer, journal: Journal, held: Held
) -> EnabledActions:
    """AddPartitionsToTxn of the producer; in the second version the leader asks for it when a batch arrives.

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
    if not isinstance(held, Coordinator) or not writes(epoch, journal, held):
        return
    asks = ADD if constants.version == 1 else PRODUCE
    for kind, transaction, request_epoch, partition, _ in producer.requests:
        if kind != asks or not transaction_rules.is_of(constants, held.value, request_epoch):
            continue
        after = transaction_rules.with_partition(constants, held.value, partition)
        if after is not None:
            yield ("add", number, epoch, transaction, partition), (journal._replace(tail=after),)


def end(
    constants: Constants,
    number: int,
    epoch: int,
    producer: Producer,
    journal: Journal,
    held: Held,
    markers: Markers,
) -> EnabledActions:
    """EndTxn arrives. decide_durably (T23): markers are sent after the decision is durable.

    Args:
        constants: the constants.
        number: the producer's number.
        epoch: the coordinator epoch.
        producer: the producer.
        journal: the log.
        held: the coordinator's memory.
        markers: the markers that may arrive.

    Returns:
        the enabled actions.
    """
    if not isinstance(held, Coordinator) or not writes(epoch, journal, held):
        return
    for kind, transaction, request_epoch, commit, _ in producer.requests:
        if kind != END or not transaction_rules.is_of(constants, held.value, request_epoch):
            continue
        after = transaction_rules.ended(constants, held.value, commit=bool(commit))
        if after is not None:
            sent = markers
            if not constants.keeps("decide_durably"):
                sent = _with(markers, transaction_rules.marker_of(constants, after, epoch))
            yield ("end", number, epoch, transaction, commit), (journal._replace(tail=after), sent)


def init(
    constants: Constants, number: int, epoch: int, producer: Producer, journal: Journal, held: Held
) -> EnabledActions:
    """InitProducerId: of a new process, which names no epoch, or of one that wants its next epoch and names
    its last one (KIP-360).

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
    if not isinstance(held, Coordinator) or not writes(epoch, journal, held):
        return
    value = held.value
    if value.epoch >= constants.producer_epochs:
        return
    if producer.state == RENEWING:
        if value.phase not in BETWEEN or value.epoch != producer.epoch:
            return
    elif producer.state != NEW or is_given(number, producer, value):
        return
    after = transaction_rules.initialised(constants, value, number)
    if after is not None:
        yield ("init", number, epoch), (journal._replace(tail=after),)


def is_given(number: int, producer: Producer, value: Transaction) -> bool:
    """Whether the coordinator has an epoch for this producer that it was not told.

    Args:
        number: the producer's number.
        producer: the producer.
        value: the coordinator's transaction.

    Returns:
        whether it has.
    """
    return value.phase == 0 and value.owner == number and value.epoch > producer.epoch


def time_out(constants: Constants, epoch: int, journal: Journal, held: Held) -> EnabledActions:
    """A transaction is open for too long: the coordinator aborts it.

    Args:
        constants: the bounds.
        epoch: of the coordinator.
        journal: the partition.
        held: what the coordinator has in memory.
    """
    if not isinstance(held, Coordinator) or not writes(epoch, journal, held):
        return
    if held.value.phase == ONGOING and held.value.epoch < constants.producer_epochs:
        yield ("time_out", epoch), (journal._replace(tail=transaction_rules.aborted(constants, held.value)),)


# ---- markers


def _answered(constants: Constants, markers: Markers, at: int, epoch: int) -> Markers:
    """no_late_marker (T22): when a leader has answered, no copy of that marker is still on its way there."""
    if not constants.keeps("no_late_marker"):
        return markers
    left = ((*one[:4], one[4] & ~(1 << at)) if one[2] == epoch else one for one in markers)
    return tuple(sorted({one for one in left if one[4]}))


def mark(
    constants: Constants,
    at: int,
    epoch: int,
    journal: Journal,
    held: Held,
    partition: Partition,
    markers: Markers,
) -> EnabledActions:
    """The leader of a partition writes the marker, and its answer arrives. After a refusal for good the
    coordinator gives up. is_written (T4): without it a marker counts as written, whatever the leader answers.

    Args:
        constants: the constants.
        at: the partition's number.
        epoch: the coordinator epoch.
        journal: the log.
        held: the coordinator's memory.
        partition: the partition.
        markers: the markers that may arrive.

    Returns:
        the enabled actions.
    """
    if not isinstance(held, Coordinator) or not held.sending or journal.elected != epoch:
        return
    if not transaction_rules.to_mark(constants, held.value) & ~held.marked & 1 << at:
        return
    marker = transaction_rules.marker_of(constants, held.value, epoch)
    has_it = held._replace(marked=held.marked | 1 << at)
    if leader.is_refused(constants, partition, marker):
        yield ("give_up", at, epoch), (held._replace(sending=False), partition, markers)
    else:
        written = leader.marked(constants, partition, marker)
        yield ("mark", at, epoch), (has_it, written, _answered(constants, markers, at, epoch))
    if not constants.keeps("is_written"):
        yield ("count_as_written", at, epoch), (has_it, partition, markers)


def deliver(constants: Constants, at: int, markers: Markers, partition: Partition) -> EnabledActions:
    """A marker arrives, and its answer does not: it is one of a coordinator that was deposed, or it was sent
    twice.

    Args:
        constants: the constants.
        at: the partition's number.
        markers: the markers that may arrive.
        partition: the partition.

    Returns:
        the enabled actions.
    """
    for marker in markers:
        if marker[4] >> at & 1 and not leader.is_refused(constants, partition, marker):
            after = leader.marked(constants, partition, marker)
            if after != partition:
                yield ("deliver", at, *marker[:4]), (after,)


def complete(constants: Constants, epoch: int, journal: Journal, held: Held) -> EnabledActions:
    """Each partition has its marker.

    Args:
        constants: the bounds.
        epoch: of the coordinator.
        journal: the partition.
        held: what the coordinator has in memory.
    """
    if not isinstance(held, Coordinator) or not writes(epoch, journal, held) or not held.sending:
        return
    if held.marked == transaction_rules.to_mark(constants, held.value):
        yield ("complete", epoch), (journal._replace(tail=transaction_rules.completed(held.value)),)
