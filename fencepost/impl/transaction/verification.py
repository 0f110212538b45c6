"""A leader asks the coordinator before it writes the first batch of a transaction (KIP-890).

Owns which batches wait for an answer. Must not know how batches are written. In the first version the
coordinator says whether the partition is part of the transaction, in the second it makes it one. A marker
that comes between the question and its answer ends what was asked about; the answer then opens nothing:

1. a batch of transaction 1 comes late, the coordinator is asked
2. transaction 1 is aborted: its marker is written here
3. the answer comes. The batch must not begin transaction 2.
"""

from collections.abc import Callable

from attrs import define, field, frozen

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from fencepost.impl.replication.partition import Partition
from fencepost.impl.transaction.transaction_table import TransactionTable
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

TIMER = "transaction_verification"
TIMEOUT_MS = 2_000
"""Of one question; Kafka waits for request.timeout.ms, 30 s, which a producer would not wait out."""
Then = Callable[[ErrorCode], None]
RETRIED = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
"""The producer tries again: as in Kafka it hears NOT_ENOUGH_REPLICAS, which every client retries; so it does
instead of CONCURRENT_TRANSACTIONS in the first version (ReplicaManager.handleProduceAppend)."""


@frozen(kw_only=True)
class Subject:
    """What is asked about."""

    partition: TopicPartition
    transactional_id: str
    producer_id: int
    producer_epoch: int
    # Make it part of the transaction.
    adds: bool


@define
class TransactionVerification:
    """guards: the number of the verification that a first batch may refer to, by partition and producer id.
    waiting: by correlation id."""

    broker_context: BrokerContext
    metadata: MetadataCache
    table: TransactionTable
    guards: dict[tuple[TopicPartition, int], int] = field(factory=dict)
    waiting: dict[int, tuple[Subject, int, Then]] = field(factory=dict)
    _last_guard: int = 0

    def is_needed(self, partition: Partition, producer_id: int, producer_epoch: int, *, adds: bool) -> bool:
        """Protection KIP-890: whether a transactional batch would begin a transaction in this log, so that
        the coordinator must know of it.

        Args:
            partition: to which it goes.
            producer_id: of the batch.
            producer_epoch: of the batch.
            adds: whether the coordinator adds the partition by the same question (TV2).
        """
        if partition.log.producers.has_open_transaction(producer_id, producer_epoch):
            return False
        return adds or self.table.options.verification

    def ask(self, subject: Subject, then: Then) -> None:
        """Ask the coordinator; `then` hears NONE if the batch may be written."""
        node = self.metadata.leader_of(self.table.key_of(subject.transactional_id))
        if node < 0:
            then(ErrorCode.NOT_ENOUGH_REPLICAS)
            return
        place = (subject.partition, subject.producer_id)
        if place not in self.guards:
            self._last_guard += 1
            self.guards[place] = self._last_guard
        number = self.broker_context.next_correlation_id()
        self.waiting[number] = (subject, self.guards[place], then)
        request = AddPartitionsToTxnRequest(
            correlation_id=number,
            transactional_id=subject.transactional_id,
            producer_id=subject.producer_id,
            producer_epoch=subject.producer_epoch,
            partitions=(subject.partition,),
            verify_only=not subject.adds,
        )
        self.broker_context.send_periodic(node, request)
        self.broker_context.set_timer((TIMER, number), TIMEOUT_MS)

    def on_answer(self, source: int, response: AddPartitionsToTxnResponse) -> None:
        """The coordinator has answered.

        Args:
            source: the coordinator's node.
            response: AddPartitionsToTxn.
        """
        asked = self.waiting.pop(response.correlation_id, None)
        if asked is None:
            return
        self.broker_context.cancel_timer((TIMER, response.correlation_id))
        subject, guard, then = asked
        error = response.error
        if error in RETRIED or (error is ErrorCode.CONCURRENT_TRANSACTIONS and not subject.adds):
            error = ErrorCode.NOT_ENOUGH_REPLICAS
        elif error is ErrorCode.PRODUCER_FENCED:
            error = (
                ErrorCode.INVALID_PRODUCER_EPOCH
            )  # as the log itself would answer (AddPartitionsToTxnManager)
        elif error is NO_ERROR and not self.still_guarded(subject, guard):
            error = ErrorCode.INVALID_TXN_STATE
        if error is not NO_ERROR:
            self._forget(subject, guard)
        then(error)

    def _forget(self, subject: Subject, guard: int) -> None:
        """Nothing refers to a guard when nobody waits for it: producers that were refused leave nothing."""
        if not any(waited == guard for _, waited, _ in self.waiting.values()):
            self.marked(subject.partition, subject.producer_id, False)

    def still_guarded(self, subject: Subject, guard: int) -> bool:
        """Protection KIP-890: no marker has ended the transaction here since the question was asked. Once
        another batch of it is written, the log itself says that it is open.

        Args:
            subject: the partition, and the producer's id and epoch.
            guard: the number of the verification when the question was asked.
        """
        partition = self.table.partitions.get(subject.partition)
        if partition is not None and partition.log.producers.has_open_transaction(
            subject.producer_id, subject.producer_epoch
        ):
            return True
        return self.guards.get((subject.partition, subject.producer_id)) == guard

    def expire(self, number: int) -> None:
        """No answer came."""
        asked = self.waiting.pop(number, None)
        if asked is not None:
            subject, guard, then = asked
            self._forget(subject, guard)
            then(ErrorCode.NOT_ENOUGH_REPLICAS)

    def marked(self, key: TopicPartition, producer_id: int, commit: bool) -> None:
        """A transaction has ended here.

        Args:
            key: the partition.
            producer_id: of the transaction.
            commit: whether it committed.
        """
        self.guards.pop((key, producer_id), None)

    def begun(self, key: TopicPartition, producer_id: int) -> None:
        """The first batch is written: from now on the log itself says that the transaction is open.

        Args:
            key: the partition.
            producer_id: of the transaction.
        """
        self.guards.pop((key, producer_id), None)
