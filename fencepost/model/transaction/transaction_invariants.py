"""The invariants of the transaction model.

Owns TXN-ATOM, ONE-DECISION, MARKER-MATCH, TXN-FENCE, READ-COMMITTED and NO-HANGING, on states; what must stay
possible (TXN-END); and the `sometimes` goals that a useful exploration reaches. Must not know the bodies of
actions.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations, product

from fencepost.model.explore.transition_system import Eventually, Part, Value
from fencepost.model.transaction import leader
from fencepost.model.transaction.transaction_state import (
    ABORTED,
    BETWEEN,
    COMMITTED,
    ENDING,
    NONE,
    ONGOING,
    UNDECIDED,
    Constants,
    Coordinator,
    Ghost,
    Journal,
    Marker,
    Partition,
    Producer,
)


def all_or_nothing(one: Partition, other: Partition) -> bool:
    """TXN-ATOM: no transaction is committed in one partition and aborted in another."""
    fates = {(record.transaction, record.fate) for record in (*one.records, *other.records)}
    return not any((name, ABORTED) in fates for name, fate in fates if fate == COMMITTED)


def as_told(partition: Partition, ghost: Ghost) -> bool:
    """TXN-ATOM: a record is committed only if its producer asked to commit its transaction, and is never
    aborted after the commit was acknowledged.

    Args:
        partition: the partition.
        ghost: what was asked and acknowledged.

    Returns:
        whether it holds.
    """
    for record in partition.records:
        if record.fate == COMMITTED and not ghost.asked >> record.transaction & 1:
            return False
        if record.fate == ABORTED and ghost.acknowledged >> record.transaction & 1:
            return False
    return True


def one_decision(ghost: Ghost) -> bool:
    """ONE-DECISION: no transaction has two decisions."""
    return not ghost.committed & ghost.aborted


def decided_as_marked(partition: Partition, ghost: Ghost) -> bool:
    """ONE-DECISION: a marker says what the coordinator decided for its transaction.

    Args:
        partition: with the marker.
        ghost: what was decided.
    """
    return all(
        record.fate == UNDECIDED
        or (ghost.committed if record.fate == COMMITTED else ghost.aborted) >> record.ended_by & 1
        for record in partition.records
    )


def ends_its_own(partition: Partition) -> bool:
    """MARKER-MATCH: a marker ends the transaction in which the records were written."""
    return all(
        record.fate == UNDECIDED or record.under in (NONE, record.ended_by) for record in partition.records
    )


def nothing_late(partition: Partition) -> bool:
    """TXN-FENCE: what was written after a later epoch had been given out is never committed."""
    return not any(record.late and record.fate == COMMITTED for record in partition.records)


def shows_committed(constants: Constants, offsets: bool, partition: Partition) -> bool:
    """READ-COMMITTED: readers are shown the committed records and no others.

    Args:
        constants: the constants.
        offsets: whether the partition is one of __consumer_offsets.
        partition: the partition.

    Returns:
        whether it holds.
    """
    end = next(
        (at for at, record in enumerate(partition.records) if record.fate == UNDECIDED),
        len(partition.records),
    )
    promised = tuple(record for record in partition.records[:end] if record.fate == COMMITTED)
    return leader.shown(constants, partition, offsets=offsets) == promised


def never_hangs(at: int, partition: Partition, journal: Journal) -> bool:
    """NO-HANGING: a transaction that is open in a partition is open at the coordinator, with that partition.
    Otherwise nobody will ever send a marker.

    Args:
        at: the partition's number.
        partition: the partition.
        journal: the log of transactions.

    Returns:
        whether it holds.
    """
    value = journal.value
    known = value.phase == ONGOING or value.phase in ENDING
    return not partition.is_open or (known and bool(value.partitions >> at & 1))


OF_STATES = ("TXN-ATOM", "ONE-DECISION", "MARKER-MATCH", "TXN-FENCE", "READ-COMMITTED", "NO-HANGING")
"""The invariants of states. If several are violated, the first one names the violation."""

OF_STEPS: Mapping[str, Callable[..., bool]] = {}


def _log(value: Value) -> Value:
    """The part of a partition that most invariants read, as a partition."""
    assert isinstance(value, Partition)
    return Partition(NONE, NONE, NONE, value.is_open, value.records, ())


def _log_or_other(value: Value) -> Value:
    return _log(value) if isinstance(value, Partition) else value


def _places(constants: Constants) -> tuple[int, int, range, range, int, int]:
    """The slots: journal, first coordinator, producers, partitions, markers, ghost."""
    producers = range(constants.epochs + 2, constants.epochs + 2 + constants.producers)
    partitions = range(producers.stop, producers.stop + constants.partitions)
    return 0, 1, producers, partitions, partitions.stop, partitions.stop + 1


def parts(constants: Constants) -> Mapping[str, tuple[Part, ...]]:
    """The invariants of states, partition by partition."""
    journal, _, _, partitions, _, ghost = _places(constants)
    atom = [Part(pair, all_or_nothing, _log) for pair in combinations(partitions, 2)]
    atom += [Part((at, ghost), as_told, _log_or_other) for at in partitions]
    decided = [Part((ghost,), one_decision)]
    decided += [Part((at, ghost), decided_as_marked, _log_or_other) for at in partitions]
    shows = [
        Part(
            (slot,),
            partial(shows_committed, constants, bool(constants.offsets) and slot == partitions[-1]),
            _log,
        )
        for slot in partitions
    ]
    return {
        "TXN-ATOM": tuple(atom),
        "ONE-DECISION": tuple(decided),
        "MARKER-MATCH": tuple(Part((at,), ends_its_own, _log) for at in partitions),
        "TXN-FENCE": tuple(Part((at,), nothing_late, _log) for at in partitions),
        "READ-COMMITTED": tuple(shows),
        "NO-HANGING": tuple(
            Part((slot, journal), partial(never_hangs, at), _log_or_other)
            for at, slot in enumerate(partitions)
        ),
    }


# ---- what must stay possible


def _is_settled(journal: Journal, *partitions: Partition) -> bool:
    settled = journal.value.phase in BETWEEN and journal.tail == ()
    return settled and not any(partition.is_open for partition in partitions)


BY_ITSELF = frozenset({"replicate", "load", "mark", "complete", "time_out"})
"""The actions of brokers that happen in the end, whatever clients do."""


def transactions_end(constants: Constants, names: tuple[str, ...]) -> Eventually:
    """TXN-END: each transaction is decided and complete in the end, by the brokers' own steps.

    Args:
        constants: the constants.
        names: the names of all actions.

    Returns:
        the property.
    """
    journal, _, _, partitions, _, _ = _places(constants)
    return Eventually((Part((journal, *partitions), _is_settled),), frozenset(names) - BY_ITSELF)


# ---- goals


def _is_committed(partition: Partition) -> bool:
    return any(record.fate == COMMITTED for record in partition.records)


def _is_aborted(partition: Partition) -> bool:
    return any(record.fate == ABORTED for record in partition.records)


def _is_overtaken(producer: Producer) -> bool:
    return any(request[1] < producer.transaction for request in producer.requests)


def _is_late(markers: tuple[Marker, ...], journal: Journal) -> bool:
    return any(marker[0] < journal.value.number for marker in markers)


def _is_deposed(epoch: int, held: Value, journal: Journal) -> bool:
    return isinstance(held, Coordinator) and journal.elected > epoch


def _is_fenced(producer: Producer, journal: Journal) -> bool:
    return 0 <= producer.epoch < journal.value.epoch and producer.sent != 0


def goals(constants: Constants) -> Mapping[str, tuple[Part, ...]]:
    """The goals that a useful exploration reaches."""
    journal, first, producers, partitions, markers, _ = _places(constants)
    made = {
        "a record is committed": tuple(Part((slot,), _is_committed) for slot in partitions),
        "a record is aborted": tuple(Part((slot,), _is_aborted) for slot in partitions),
        "a request outlives its transaction": tuple(Part((slot,), _is_overtaken) for slot in producers),
        "a producer is fenced in a transaction": tuple(
            Part(pair, _is_fenced) for pair in product(producers, (journal,))
        ),
    }
    if constants.epochs:
        made["a coordinator is deposed"] = tuple(
            Part((first + epoch, journal), partial(_is_deposed, epoch)) for epoch in range(constants.epochs)
        )
        made["a marker outlives its transaction"] = (Part((markers, journal), _is_late),)
    return made
