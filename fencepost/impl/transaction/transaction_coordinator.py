"""The transaction coordinator of one broker: what producers ask of it (Kafka's TransactionCoordinator).

Owns the rules by which a request is answered. Must not know how records become durable (transaction_log.py),
how markers travel (markers.py), or how ids are given (broker/producer_ids.py). Every refusal is Kafka's:

    another producer id          INVALID_PRODUCER_ID_MAPPING
    an earlier epoch             PRODUCER_FENCED
    a transition is under way    CONCURRENT_TRANSACTIONS: ask again
    the wrong state              INVALID_TXN_STATE
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from attrs import define, field
from msgspec import Struct

from fencepost.impl.coordinator.group_table import GroupTable
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.messages import transaction_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.impl.transaction.markers import (
    AGAIN_TIMER,
    COMPLETION_TIMER,
    REQUEST_TIMER,
    TransactionMarkers,
)
from fencepost.impl.transaction.transaction import EXHAUSTED, LARGEST_EPOCH, Transaction, Transit
from fencepost.impl.transaction.transaction_loading import TransactionLoading
from fencepost.impl.transaction.transaction_log import TransactionLog
from fencepost.impl.transaction.transaction_records import NO_EPOCH, NO_ID, TransactionValue
from fencepost.impl.transaction.transaction_states import BETWEEN, ENDING, TransactionPhase
from fencepost.impl.transaction.transaction_table import TransactionTable
from fencepost.traces.kafka_names.internal_topics import STATE_TOPIC
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

ABORT_TIMER, EXPIRY_TIMER = ("transaction_timeouts",), ("transaction_expiry",)
LONGEST_ID = (1 << 15) - 1
"""Bytes of a transactional id: the length of a record's key is an int16."""
Answer = Callable[[ErrorCode], None]
_T = TransactionPhase


class Ids(Protocol):
    """Who gives producer ids (broker/producer_ids.py)."""

    def init_producer_id(self, source: int, request: kafka.InitProducerIdRequest) -> None:
        """Answer an idempotent producer.

        Args:
            source: the node that asks.
            request: InitProducerId without a transactional id.
        """

    def take(self, then: Callable[[int], None]) -> None:
        """Hand over an id, now or later."""


@define
class TransactionCoordinator:
    """groups: says where a group's offsets are."""

    table: TransactionTable
    log: TransactionLog
    loading: TransactionLoading
    markers: TransactionMarkers
    ids: Ids
    metadata: MetadataCache
    groups: GroupTable
    started: bool = False
    handlers: dict[type, Callable[[int, Any], None]] = field(factory=dict)
    timers: dict[str | int, Callable[..., None]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.loading.on_ending.append(self.markers.begin)
        self.loading.on_unload.append(self.markers.forget)
        self.handlers = {
            kafka.InitProducerIdRequest: self.init_producer_id,
            kafka.AddPartitionsToTxnRequest: self.add_partitions,
            kafka.AddOffsetsToTxnRequest: self.add_offsets,
            kafka.EndTxnRequest: self.end,
            kafka.WriteTxnMarkersResponse: self.markers.on_answer,
        }
        self.timers = {
            TransactionLog.TIMER: self.log.expire,
            **self.loading.timers,
            REQUEST_TIMER: self.markers.on_request_timer,
            AGAIN_TIMER: self.markers.on_again,
            COMPLETION_TIMER: self.markers.on_completion_timer,
            ABORT_TIMER[0]: self.abort_timed_out,
            EXPIRY_TIMER[0]: self.expire,
        }

    def moved(self, partition: Partition) -> None:
        """A replica's role or high watermark may have changed; those of other topics are nothing to it."""
        if partition.key.topic != STATE_TOPIC:
            return
        if not self.started:
            self.started = True
            self._later()
        self.log.moved(partition)
        self.loading.moved(partition)

    def _later(self) -> None:
        options = self.table.options
        self.table.broker_context.set_timer(ABORT_TIMER, options.abort_check_ms)
        self.table.broker_context.set_timer(EXPIRY_TIMER, options.expiration_check_ms)

    def _reply(self, source: int, answer: Struct, request: Any) -> None:
        self.table.broker_context.reply(source, answer, request.correlation_id)  # type: ignore[arg-type]

    # ---- InitProducerId

    def init_producer_id(self, source: int, request: kafka.InitProducerIdRequest) -> None:
        """Give out an id and an epoch; with a transactional id no other producer has the same from now on.

        Args:
            source: the node that asks.
            request: InitProducerId.
        """
        if request.transactional_id is None:
            self.ids.init_producer_id(source, request)
        else:
            self._init(source, request, NO_ID)

    def _init(self, source: int, request: kafka.InitProducerIdRequest, fresh: int) -> None:
        """fresh: a new producer id, or NO_ID while none was asked for."""
        name = request.transactional_id or ""
        number = self.table.key_of(name).partition
        error = self._may_init(name, number, request)
        if error is not NO_ERROR:
            self._initialised(source, request, error)
            return
        transaction = self.table.transactions.get(name)
        if self._needs_id(transaction, request) and fresh == NO_ID:
            self.ids.take(partial(self._init, source, request))
            return
        if transaction is None:
            value = TransactionValue(
                producer_id=fresh,
                producer_epoch=self.table.options.first_epoch - 1,  # NO_EPOCH, as in Kafka, unless asked for
                phase=_T.EMPTY,
                timeout_ms=request.transaction_timeout_ms,
                updated_ms=self.table.now_ms,
            )
            transaction = self.table.transactions[name] = Transaction(name, number, value)
        self._init_known(source, request, transaction, fresh)

    def _may_init(self, name: str, number: int, request: kafka.InitProducerIdRequest) -> ErrorCode:
        if not name or len(name.encode()) > LONGEST_ID:
            return ErrorCode.INVALID_REQUEST
        if not 0 < request.transaction_timeout_ms <= self.table.options.max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return self.log.not_coordinator(number)

    def _needs_id(self, transaction: Transaction | None, request: kafka.InitProducerIdRequest) -> bool:
        if transaction is None:
            return True
        named = request.producer_epoch in (NO_EPOCH, transaction.value.producer_epoch)
        between = transaction.pending is None and transaction.phase in BETWEEN
        return transaction.exhausted and named and between

    def _init_known(
        self, source: int, request: kafka.InitProducerIdRequest, transaction: Transaction, fresh: int
    ) -> None:
        if transaction.pending is not None or transaction.phase in ENDING:
            self._initialised(source, request, ErrorCode.CONCURRENT_TRANSACTIONS)
        elif not self._is_same_producer(transaction, request):
            self._initialised(source, request, ErrorCode.PRODUCER_FENCED)
        elif transaction.phase is _T.ONGOING:
            # the epoch of this abort is shown to nobody: the producer asks again, and gets the next one
            on_fenced = partial(self._fenced, source, request)
            self._abort_and_fence(transaction, on_fenced)
        else:
            transit = self.next_epoch(transaction, request, fresh)
            if transit is None:
                self._initialised(source, request, ErrorCode.PRODUCER_FENCED)
            else:
                written = partial(self._initialised, source, request, transit=transit)
                self.log.store(transaction, transit, written)

    def _is_same_producer(self, transaction: Transaction, request: kafka.InitProducerIdRequest) -> bool:
        """Whether a producer that names its id may go on with it (KIP-360)."""
        value = transaction.value
        if request.producer_id == NO_ID or value.producer_epoch == NO_EPOCH:
            return True
        retried = request.producer_id == value.previous_producer_id and request.producer_epoch >= EXHAUSTED
        return request.producer_id == value.producer_id or retried

    def next_epoch(
        self, transaction: Transaction, request: kafka.InitProducerIdRequest, fresh: int
    ) -> Transit | None:
        """Protection KIP-98: each producer that asks gets an epoch of its own, which fences the one before.

        Args:
            transaction: as the coordinator knows it.
            request: InitProducerId.
            fresh: a producer id that was never given out.

        Returns:
            The transition; None if the request is refused.
        """
        timeout_ms, now_ms = request.transaction_timeout_ms, self.table.now_ms
        expected = None if request.producer_epoch == NO_EPOCH else request.producer_epoch
        if transaction.exhausted and expected in (None, transaction.value.producer_epoch):
            return transaction.prepare_rotation(fresh, timeout_ms, now_ms, named=expected is not None)
        return transaction.prepare_bump(timeout_ms, expected, now_ms)

    def _fenced(self, source: int, request: kafka.InitProducerIdRequest, error: ErrorCode) -> None:
        again = ErrorCode.CONCURRENT_TRANSACTIONS
        self._initialised(source, request, again if error is NO_ERROR else error)

    def _initialised(
        self,
        source: int,
        request: kafka.InitProducerIdRequest,
        error: ErrorCode,
        transit: Transit | None = None,
    ) -> None:
        answer = kafka.InitProducerIdResponse(correlation_id=request.correlation_id, error=error)
        if error is NO_ERROR and transit is not None:
            answer = kafka.InitProducerIdResponse(
                correlation_id=request.correlation_id,
                error=error,
                producer_id=transit.value.producer_id,
                producer_epoch=transit.value.producer_epoch,
            )
        self._reply(source, answer, request)

    # ---- what belongs to it

    def add_partitions(self, source: int, request: kafka.AddPartitionsToTxnRequest) -> None:
        """Add partitions to a transaction. The answer follows when that is durable.

        Args:
            source: the node that asks.
            request: AddPartitionsToTxn.
        """

        def answer(error: ErrorCode) -> None:
            answered = kafka.AddPartitionsToTxnResponse(correlation_id=request.correlation_id, error=error)
            self._reply(source, answered, request)

        if request.verify_only:
            answer(self._verified(request))
        elif not all(self._exists(key) for key in request.partitions):
            answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            self._add(request, request.partitions, answer)

    def _exists(self, key: TopicPartition) -> bool:
        """As far as this broker has heard (KafkaApis.handleAddPartitionsToTxn)."""
        return key in self.metadata.leaders

    def add_offsets(self, source: int, request: kafka.AddOffsetsToTxnRequest) -> None:
        """As `add_partitions`, for the partition that holds the group's offsets.

        Args:
            source: the node that asks.
            request: AddOffsetsToTxn.
        """

        def answer(error: ErrorCode) -> None:
            answered = kafka.AddOffsetsToTxnResponse(correlation_id=request.correlation_id, error=error)
            self._reply(source, answered, request)

        key = self.groups.key(self.groups.number_of(request.group_id))
        if not request.group_id:
            answer(ErrorCode.INVALID_GROUP_ID)
        else:
            self._add(request, (key,), answer)

    def _add(self, request: Any, partitions: tuple[TopicPartition, ...], answer: Answer) -> None:
        transaction, error = self._of_producer(request)
        if transaction is None:
            answer(error)
            return
        if not self.epoch_fencing(transaction, request.producer_epoch):
            answer(ErrorCode.PRODUCER_FENCED)
        elif transaction.pending is not None or transaction.phase in ENDING:
            answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        elif transaction.phase is _T.ONGOING and set(partitions) <= set(transaction.value.partitions):
            answer(NO_ERROR)
        else:
            self.log.store(transaction, transaction.prepare_partitions(partitions, self.table.now_ms), answer)

    def epoch_fencing(self, transaction: Transaction, producer_epoch: int) -> bool:
        """Protection KIP-98: a producer of another epoch than the last one given out is refused.

        Args:
            transaction: as the coordinator knows it.
            producer_epoch: of the request.

        Returns:
            Whether the request may go on.
        """
        return producer_epoch == transaction.value.producer_epoch

    def _of_producer(self, request: Any) -> tuple[Transaction | None, ErrorCode]:
        """The transaction of this id, if its producer id is the one that asks."""
        name = request.transactional_id
        if not name:
            return None, ErrorCode.INVALID_REQUEST
        error = self.log.not_coordinator(self.table.key_of(name).partition)
        if error is not NO_ERROR:
            return None, error
        transaction = self.table.transactions.get(name)
        if transaction is None or transaction.value.producer_id != request.producer_id:
            return None, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return transaction, NO_ERROR

    def _verified(self, request: kafka.AddPartitionsToTxnRequest) -> ErrorCode:
        """Whether these partitions are part of the open transaction (KIP-890)."""
        transaction, error = self._of_producer(request)
        if transaction is None:
            return error
        if not self.epoch_fencing(transaction, request.producer_epoch):
            return ErrorCode.PRODUCER_FENCED
        if transaction.phase in ENDING:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if not set(request.partitions) <= set(transaction.value.partitions):
            return ErrorCode.TRANSACTION_ABORTABLE
        return NO_ERROR

    # ---- EndTxn

    def end(self, source: int, request: kafka.EndTxnRequest) -> None:
        """End a transaction. The answer follows when the decision is durable; the markers come later.

        Args:
            source: the node that asks.
            request: EndTxn.
        """
        name = request.transactional_id

        def answer(error: ErrorCode) -> None:
            answered = kafka.EndTxnResponse(correlation_id=request.correlation_id, error=error)
            known = self.table.transactions.get(name)
            if error is NO_ERROR and request.version >= 2 and known is not None:
                value = known.value
                rotated = value.next_producer_id != NO_ID
                answered = kafka.EndTxnResponse(
                    correlation_id=request.correlation_id,
                    error=error,
                    producer_id=value.next_producer_id if rotated else value.producer_id,
                    producer_epoch=0 if rotated else value.producer_epoch,
                )
            self._reply(source, answered, request)

        transaction, error = self._ending(request)
        if transaction is None or error is not NO_ERROR:
            answer(error)
        elif not self._may_prepare(transaction, request):
            answer(self._ended_before(transaction, request))
        elif request.version >= 2 and transaction.exhausted:
            self.ids.take(partial(self._end_with_id, request, answer))
        else:
            self._end(transaction, request, answer, NO_ID)

    def _ending(self, request: kafka.EndTxnRequest) -> tuple[Transaction | None, ErrorCode]:
        """The transaction that this producer may end, or has ended just now."""
        name = request.transactional_id
        transaction, error = self._of_producer(request)
        if error is ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            known = self.table.transactions.get(name)
            if known is not None and self._is_retry(known, request):
                return known, NO_ERROR
        if transaction is None:
            return None, error
        if not self._may_end(transaction, request):
            return transaction, ErrorCode.PRODUCER_FENCED
        if transaction.pending is not None:
            return transaction, ErrorCode.CONCURRENT_TRANSACTIONS
        return transaction, NO_ERROR

    def _is_retry(self, transaction: Transaction, request: kafka.EndTxnRequest) -> bool:
        """In the second version the epoch of a transaction that has ended is one more than that of whoever
        ended it, or the first of another id."""
        value, epoch = transaction.value, request.producer_epoch
        if value.client_version < 2 or transaction.phase in (_T.ONGOING, _T.EMPTY):
            return False
        if value.producer_id == request.producer_id:
            return value.producer_epoch == epoch + 1
        rotated = transaction.phase not in ENDING and value.previous_producer_id == request.producer_id
        return rotated and (epoch, value.producer_epoch) == (EXHAUSTED, 0)

    def _may_end(self, transaction: Transaction, request: kafka.EndTxnRequest) -> bool:
        """In the second version nobody has the epoch of a transaction that is ending."""
        if self._is_retry(transaction, request):
            return True
        given = transaction.value.client_version < 2 or transaction.phase not in ENDING
        return given and self.epoch_fencing(transaction, request.producer_epoch)

    def _may_prepare(self, transaction: Transaction, request: kafka.EndTxnRequest) -> bool:
        """Whether there is something to end. In the second version the producer does not know whether
        anything was added: it may abort without that, and is given the next epoch, so that a batch that
        comes late is refused (KIP-890, TransactionCoordinator.endTransaction)."""
        nothing = request.version >= 2 and not request.commit and transaction.phase in BETWEEN
        return transaction.phase is _T.ONGOING or (nothing and not self._is_retry(transaction, request))

    def _ended_before(self, transaction: Transaction, request: kafka.EndTxnRequest) -> ErrorCode:
        """Whether this is the end that it had, or is having."""
        commit = request.commit
        if request.version >= 2 and not self._is_retry(transaction, request):
            return ErrorCode.INVALID_TXN_STATE  # its last transaction has another epoch
        if transaction.phase is (_T.COMPLETE_COMMIT if commit else _T.COMPLETE_ABORT):
            return NO_ERROR
        if transaction.phase is (_T.PREPARE_COMMIT if commit else _T.PREPARE_ABORT):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return ErrorCode.INVALID_TXN_STATE

    def _end_with_id(self, request: kafka.EndTxnRequest, answer: Answer, fresh: int) -> None:
        transaction, error = self._ending(request)
        if transaction is None or error is not NO_ERROR:
            answer(error)
        elif not self._may_prepare(transaction, request):
            answer(self._ended_before(transaction, request))
        else:
            self._end(transaction, request, answer, fresh)

    def _end(
        self, transaction: Transaction, request: kafka.EndTxnRequest, answer: Answer, fresh: int
    ) -> None:
        transit = transaction.prepare_end(
            commit=request.commit, now_ms=self.table.now_ms, version=request.version, next_id=fresh
        )
        self.log.store(transaction, transit, partial(self._decided, transaction, answer))

    def _decided(self, transaction: Transaction, answer: Answer, error: ErrorCode) -> None:
        answer(error)
        if error is NO_ERROR:
            self.markers.begin(transaction)

    # ---- fencing, time-outs, expiry

    def _abort_and_fence(self, transaction: Transaction, answer: Answer) -> None:
        epoch = transaction.fence()
        assert epoch <= LARGEST_EPOCH, epoch
        transit = transaction.prepare_fenced_abort(epoch, self.table.now_ms)

        def decided(error: ErrorCode) -> None:
            transaction.fence_failed = transaction.fence_failed or error is not NO_ERROR
            self._decided(transaction, answer, error)

        self.log.store(transaction, transit, decided)

    def abort_timed_out(self) -> None:
        """A transaction that is open for longer than its producer allowed is aborted, and its producer
        fenced."""
        for _, transaction in sorted(self.table.transactions.items()):
            if (
                transaction.phase is _T.ONGOING
                and transaction.pending is None
                and self.log.not_coordinator(transaction.number) is NO_ERROR
                and self.is_overdue(transaction)
            ):
                self._abort_and_fence(transaction, lambda error: None)
        self.table.broker_context.set_timer(ABORT_TIMER, self.table.options.abort_check_ms)

    def is_overdue(self, transaction: Transaction) -> bool:
        """Protection KIP-98: nobody waits for a producer beyond the time-out that it named. Its time began
        with the transaction, by the present coordinator."""
        return transaction.value.started_ms + transaction.value.timeout_ms < self.table.now_ms

    def expire(self) -> None:
        """A transactional id that nobody uses is forgotten."""
        for _, transaction in sorted(self.table.transactions.items()):
            if (
                transaction.pending is None
                and transaction.phase in BETWEEN
                and self.log.not_coordinator(transaction.number) is NO_ERROR
                and transaction.value.updated_ms + self.table.options.expiration_ms <= self.table.now_ms
            ):
                self.log.remove(transaction)
        self.table.broker_context.set_timer(EXPIRY_TIMER, self.table.options.expiration_check_ms)
