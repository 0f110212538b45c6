"""The state of the transaction model: compact tuples, and their description in words.

Owns the layout of states, constants, and their description. Must not know actions or invariants.
"""

from typing import ClassVar, NamedTuple

from attrs import frozen

from fencepost.model.dropped import Bounds
from fencepost.traces.errors import FencepostError

OF_TRANSACTIONS = frozenset(
    {
        "epoch_fencing",
        "loaded",
        "go_on_with_ends",
        "to_mark",
        "is_written",
        "last_stable_offset",
        "aborted_transactions",
        "count",
        "ended",
        "check",
        "check_marker",
        "coordinator_fencing",
        "is_needed",
        "still_guarded",
        "settle",
        "fence",
        "abort_open_first",
        "one_at_a_time",
        "decide_durably",
        "no_late_end",
        "no_late_marker",
        "deposed_is_silent",
        "marker_above_epoch",
        "marker_again",
    }
)
"""The registered protections (traces/protections) that this model can drop."""

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
PHASES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
"""Kafka's names, in the order of the numbers."""
ENDING = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
"""The end is decided, and markers are missing."""
BETWEEN = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
"""No transaction is open."""

NEW, OPEN, COMMITTING, ABORTING, RENEWING, DONE = range(6)
PRODUCER_STATES = ("New", "Open", "Committing", "Aborting", "Renewing", "Done")
"""NEW: asks for its first epoch. OPEN: in a transaction. RENEWING: asks for the next epoch (KIP-360). DONE:
has had all its transactions."""

ADD, PRODUCE, END = range(3)
REQUESTS = ("AddPartitionsToTxn", "Produce", "EndTxn")

UNDECIDED, COMMITTED, ABORTED = range(3)
FATES = ("undecided", "committed", "aborted")

NONE = -1
"""No epoch, sequence number, transaction or producer."""

Request = tuple[int, int, int, int, int]
"""(ADD, transaction, epoch, partition, 0), (PRODUCE, transaction, epoch, partition, sequence number) or (END,
transaction, epoch, 1 to commit or 0 to abort, 0). The transaction is a ghost: Kafka's requests do not name
it."""

Marker = tuple[int, int, int, int, int]
"""(number of the coordinator's transaction, producer epoch, coordinator epoch, 1 to commit or 0 to abort,
partitions as a bit set): WriteTxnMarkers. The number is a ghost."""


class Transaction(NamedTuple):
    """A record of __transaction_state."""

    # Index into PHASES.
    phase: int
    # The producer epoch; it never decreases.
    epoch: int
    # The partitions that are part of the transaction, as a bit set.
    partitions: int
    # A ghost: how many transactions this transactional id has begun.
    number: int
    # A ghost: the producer that InitProducerId gave the epoch to.
    owner: int


class Journal(NamedTuple):
    """The partition of __transaction_state."""

    # Its leader epoch, which is the coordinator epoch.
    elected: int
    # The last record that every replica has.
    value: Transaction
    # The record after it, or (). A clean election loses it or keeps it.
    tail: Transaction | tuple[()]


class Coordinator(NamedTuple):
    """The coordinator of one coordinator epoch."""

    # What it has in memory: the last durable record that it knows.
    value: Transaction
    # The partitions with a leader that answered that it has the marker, as a bit set.
    marked: int
    # Whether it sends the markers of an end.
    sending: bool


class Producer(NamedTuple):
    """One process with the transactional id."""

    # Index into PRODUCER_STATES.
    state: int
    # The epoch that it was given, or NONE.
    epoch: int
    # The running number of its transaction.
    transaction: int
    # The partitions that the coordinator confirmed in this transaction (the first version), as a bit set.
    added: int
    # The partitions to which it sent a record in this transaction, as a bit set.
    sent: int
    # Those of them that acknowledged it.
    acked: int
    # The next sequence number for each partition.
    sequences: tuple[int, ...]
    # All requests that may still arrive, any number of times.
    requests: tuple[Request, ...]


class Record(NamedTuple):
    """One record in a partition's log."""

    # The transaction that it was sent in.
    transaction: int
    # A ghost: the number of the coordinator's transaction in which it was written, or NONE.
    under: int
    # Index into FATES.
    fate: int
    # A ghost: the number of the marker that decided it, or NONE.
    ended_by: int
    # A ghost: a later epoch had been given out before it was written.
    late: bool


class Partition(NamedTuple):
    """The leader of one partition."""

    # The epoch of the producer id's last batch or marker, or NONE.
    epoch: int
    # The sequence number of its last batch in this epoch, or NONE.
    sequence: int
    # The coordinator epoch of its last marker, or NONE.
    coordinator_epoch: int
    # Whether a transaction is open here.
    is_open: bool
    # The log.
    records: tuple[Record, ...]
    # Batches for which the coordinator has confirmed that the partition is part of the transaction.
    verified: tuple[Request, ...]


class Ghost(NamedTuple):
    """What no process knows."""

    # The transactions whose commit was asked for, as a bit set.
    asked: int
    # Those whose commit was answered, as a bit set.
    acknowledged: int
    # The numbers of the coordinator's transactions with a durable commit, as a bit set.
    committed: int
    # The same for aborts.
    aborted: int
    # The highest epoch that InitProducerId or EndTxn gave out.
    answered: int


class TransactionState(NamedTuple):
    """A state of the model."""

    # The partition of __transaction_state.
    journal: Journal
    # For each coordinator epoch its coordinator; () before it has loaded and after it has heard of the next.
    coordinators: tuple[Coordinator | tuple[()], ...]
    # The producers, by number; all have one transactional id.
    producers: tuple[Producer, ...]
    # The partitions, by number. With offsets = 1 the last one is a group's partition of __consumer_offsets.
    partitions: tuple[Partition, ...]
    # The markers that may still arrive, any number of times.
    markers: tuple[Marker, ...]
    # What no process knows.
    ghost: Ghost


@frozen(kw_only=True)
class Constants(Bounds):
    """The bounds of the model."""

    PROTECTIONS: ClassVar[frozenset[str]] = OF_TRANSACTIONS
    AREA: ClassVar[str] = "transactions"

    # transaction.version: 1 (KIP-98), or 2 (KIP-890: an epoch for each transaction).
    version: int = 1
    # The number of processes with the transactional id. The first one has its epoch from the start.
    producers: int = 1
    # The number of partitions.
    partitions: int = 1
    # The number of transactions of each process.
    transactions: int = 2
    # The highest coordinator epoch, so a bound on fail-overs.
    epochs: int = 0
    # How many transactions the coordinator begins beyond those, because a request arrives late or again.
    extra: int = 0
    # 1 if the last partition is one of __consumer_offsets.
    offsets: int = 0
    # The highest producer epoch that is given out. Reason: without epoch_fencing they grow without end. With
    # all protections nothing reaches it.
    producer_epochs: int = 8

    def __attrs_post_init__(self) -> None:
        if self.version not in (1, 2):
            raise FencepostError(
                expected="transaction.version 1 or 2", seen=str(self.version), where="version"
            )
        if self.offsets not in (0, 1) or min(self.producers, self.partitions, self.transactions) < 1:
            raise FencepostError(
                expected="offsets 0 or 1, and at least one producer, partition and transaction",
                seen=f"offsets {self.offsets}, producers {self.producers}, partitions {self.partitions}, "
                f"transactions {self.transactions}",
                where="the constants of the transaction model",
            )

    @property
    def most_begun(self) -> int:
        """How many transactions the coordinator begins at most."""
        return self.producers * self.transactions + self.extra

    def name_of(self, producer: int, transaction: int) -> int:
        """The number of a transaction among those of all producers."""
        return producer * self.transactions + transaction


def of(bits: int) -> list[int]:
    """The numbers of a bit set."""
    return [number for number in range(bits.bit_length()) if bits >> number & 1]


def with_request(requests: tuple[Request, ...], request: Request) -> tuple[Request, ...]:
    """The requests with one more."""
    return tuple(sorted({*requests, request}))


# ---- in words


def describe(state: TransactionState) -> str:
    """The state in a few lines: the coordinators, the producers, the partitions."""
    journal = state.journal
    tail = f", then {_transaction(journal.tail)} (not durable)" if journal.tail else ""
    lines = [f"coordinator epoch {journal.elected}: {_transaction(journal.value)}{tail}"]
    for epoch, coordinator in enumerate(state.coordinators):
        if isinstance(coordinator, Coordinator):
            sends = f", sends markers, {of(coordinator.marked)} answered" if coordinator.sending else ""
            lines.append(f"coordinator of epoch {epoch}: {_transaction(coordinator.value)}{sends}")
    for number, producer in enumerate(state.producers):
        arrive = "".join(f" {_request(one)};" for one in producer.requests)
        lines.append(
            f"producer {number}: {PRODUCER_STATES[producer.state]} transaction {producer.transaction} "
            f"epoch {producer.epoch}, acknowledged {of(producer.acked)}; may arrive:{arrive or ' nothing'}"
        )
    for number, partition in enumerate(state.partitions):
        records = ", ".join(_record(record) for record in partition.records)
        ahead = " transaction open" if partition.is_open else ""
        lines.append(f"partition {number}: epoch {partition.epoch}{ahead} [{records}]")
    arrive = ", ".join(_marker(marker) for marker in state.markers)
    return "\n".join([*lines, f"markers that may arrive: {arrive or 'none'}"])


def _transaction(value: Transaction | tuple[()]) -> str:
    assert isinstance(value, Transaction)
    return f"{PHASES[value.phase]} {value.number} epoch {value.epoch} {of(value.partitions)}"


def _request(request: Request) -> str:
    kind, transaction, epoch, what, _ = request
    if kind == END:
        return f"{'commit' if what else 'abort'} of {transaction} in epoch {epoch}"
    return f"{REQUESTS[kind]}({what}) of {transaction} in epoch {epoch}"


def _record(record: Record) -> str:
    return f"transaction {record.transaction} {FATES[record.fate]}"


def _marker(marker: Marker) -> str:
    number, epoch, coordinator_epoch, commit, partitions = marker
    return (
        f"{'commit' if commit else 'abort'} {number} epoch {epoch} of coordinator {coordinator_epoch} "
        f"to {of(partitions)}"
    )
