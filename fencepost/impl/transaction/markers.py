"""The end of a transaction is sent to the leader of each of its partitions, until all have it (Kafka's
TransactionMarkerChannelManager).

Owns which markers are under way. Must not know why a transaction ends. A marker is sent again until its
leader says that every replica has it; twice does no harm. Kafka puts markers of many transactions in one
request; here each transaction has its own.
"""

from functools import partial

from attrs import define, field

from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import TxnMarker, WriteTxnMarkersRequest, WriteTxnMarkersResponse
from fencepost.impl.transaction.transaction import Transaction, Transit
from fencepost.impl.transaction.transaction_log import TransactionLog
from fencepost.impl.transaction.transaction_states import TransactionPhase
from fencepost.impl.transaction.transaction_table import TransactionTable
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

REQUEST_TIMER, AGAIN_TIMER, COMPLETION_TIMER = ("marker_request", "marker_again", "transaction_completion")
FOR_GOOD = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""Somebody else has ended it, or begun anew."""
MOST_UNKNOWN = 600
"""How often a partition may be unknown to the metadata before its topic counts as deleted. Kafka gives it up
at once; metadata that comes late would leave the transaction open there for ever. At the default back-off it
is a minute, as long as a controller may take to tell a broker everything."""


@define
class Ending:
    """A transaction whose end is decided."""

    transaction: Transaction
    epoch: int
    commit: bool
    producer_id: int
    producer_epoch: int
    # Of the client that ended it.
    version: int
    transit: Transit
    # Partitions whose marker must be sent.
    waiting: set[TopicPartition]
    # Those on their way, by correlation id.
    asked: dict[int, tuple[TopicPartition, ...]] = field(factory=dict)
    # How often nobody knew the partition.
    unknown: dict[TopicPartition, int] = field(factory=dict)


@define
class TransactionMarkers:
    """ends: by transactional id."""

    table: TransactionTable
    log: TransactionLog
    metadata: MetadataCache
    ends: dict[str, Ending] = field(factory=dict)

    def begin(self, transaction: Transaction) -> None:
        """Every replica knows that it ends: send the markers."""
        value = transaction.value
        ending = Ending(
            transaction=transaction,
            epoch=self.table.epoch_of(transaction),
            commit=transaction.phase is TransactionPhase.PREPARE_COMMIT,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            version=value.client_version,
            transit=transaction.prepare_complete(self.table.now_ms),
            waiting=self.to_mark(transaction),
        )
        self.ends[transaction.transactional_id] = ending
        self._send(ending)

    def to_mark(self, transaction: Transaction) -> set[TopicPartition]:
        """Protection KIP-98: every partition of the transaction gets its marker."""
        return set(transaction.value.partitions)

    def forget(self, number: int) -> None:
        """Another broker coordinates these transactions: it sends the markers."""
        gone = [name for name, ending in self.ends.items() if ending.transaction.number == number]
        for name in gone:
            ending = self.ends.pop(name)
            for asked in ending.asked:
                self.table.broker_context.cancel_timer((REQUEST_TIMER, name, asked))
            self.table.broker_context.cancel_timer((AGAIN_TIMER, name))
            self.table.broker_context.cancel_timer((COMPLETION_TIMER, name))

    # ---- sending

    def _send(self, ending: Ending) -> None:
        by_leader: dict[int, list[TopicPartition]] = {}
        for key in sorted(ending.waiting):
            leader = self.metadata.leader_of(key)
            if leader >= 0:
                by_leader.setdefault(leader, []).append(key)
            elif key not in self.metadata.leaders:
                ending.unknown[key] = ending.unknown.get(key, 0) + 1
                if ending.unknown[key] >= MOST_UNKNOWN:
                    ending.waiting.discard(key)
        for leader, keys in sorted(by_leader.items()):
            self._ask(ending, leader, tuple(keys))
        self._settle(ending)

    def _ask(self, ending: Ending, leader: int, keys: tuple[TopicPartition, ...]) -> None:
        broker_context = self.table.broker_context
        number = broker_context.next_correlation_id()
        ending.waiting.difference_update(keys)
        ending.asked[number] = keys
        marker = TxnMarker(
            producer_id=ending.producer_id,
            producer_epoch=ending.producer_epoch,
            commit=ending.commit,
            coordinator_epoch=ending.epoch,
            partitions=keys,
            version=ending.version,
        )
        broker_context.send_periodic(leader, WriteTxnMarkersRequest(correlation_id=number, marker=marker))
        name = ending.transaction.transactional_id
        broker_context.set_timer((REQUEST_TIMER, name, number), 2 * self.table.options.append_timeout_ms)

    def _settle(self, ending: Ending) -> None:
        """Send again what was not taken, or complete the transaction."""
        name = ending.transaction.transactional_id
        if ending.waiting:
            delay_ms = self.table.options.marker_backoff_ms
            self.table.broker_context.set_timer((AGAIN_TIMER, name), delay_ms)
        elif not ending.asked:
            self._complete(ending)

    def on_again(self, name: str) -> None:
        """The rest is over."""
        ending = self.ends.get(name)
        if ending is not None:
            self._send(ending)

    # ---- answers

    def on_request_timer(self, name: str, number: int) -> None:
        """No answer came: send again.

        Args:
            name: the timer's.
            number: of the request.
        """
        ending = self.ends.get(name)
        if ending is not None and number in ending.asked:
            ending.waiting.update(ending.asked.pop(number))
            self._settle(ending)

    def on_answer(self, source: int, response: WriteTxnMarkersResponse) -> None:
        """A leader has written the markers, or refused them.

        Args:
            source: the leader's node.
            response: WriteTxnMarkers.
        """
        number = response.correlation_id
        ending = next((one for one in self.ends.values() if number in one.asked), None)
        if ending is None:
            return
        keys = ending.asked.pop(number)
        name = ending.transaction.transactional_id
        self.table.broker_context.cancel_timer((REQUEST_TIMER, name, number))
        errors = dict(response.errors)
        if any(error in FOR_GOOD for error in errors.values()):
            self.cancel(ending)
            return
        ending.waiting.update(key for key in keys if not self.is_written(errors.get(key)))
        self._settle(ending)

    def is_written(self, error: ErrorCode | None) -> bool:
        """Protection KIP-98: a marker is sent until every replica has it."""
        return error is NO_ERROR

    def cancel(self, ending: Ending) -> None:
        """Nobody here may end it. As in Kafka the transaction keeps its pending transition: the coordinator
        that loads it next goes on."""
        del self.ends[ending.transaction.transactional_id]

    # ---- the end

    def _complete(self, ending: Ending) -> None:
        name = ending.transaction.transactional_id
        if not self.table.is_current(ending.transaction, ending.epoch):
            self.ends.pop(name, None)
            return
        written = partial(self._completed, ending)
        self.log.store(ending.transaction, ending.transit, written, keep_pending=True)

    def _completed(self, ending: Ending, error: ErrorCode) -> None:
        name = ending.transaction.transactional_id
        if self.ends.get(name) is not ending:
            return
        if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            delay_ms = self.table.options.marker_backoff_ms
            self.table.broker_context.set_timer((COMPLETION_TIMER, name), delay_ms)
            return
        del self.ends[name]

    def on_completion_timer(self, name: str) -> None:
        """Write the last record again."""
        ending = self.ends.get(name)
        if ending is not None:
            self._complete(ending)
