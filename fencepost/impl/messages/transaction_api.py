"""Requests and responses of transactions, named as Kafka names them (KIP-98, KIP-447, KIP-890).

producer_id, producer_epoch: of the producer that asks; a coordinator refuses an earlier epoch than it has
given last.
"""

from msgspec import Struct

from fencepost.impl.messages.correlation import Answered, Correlated
from fencepost.impl.messages.group_api import NO_GENERATION, NO_MEMBER, CommittedOffset
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode

NO_PRODUCER, NO_PRODUCER_EPOCH = -1, -1


class InitProducerIdRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """A producer asks for its id: an idempotent one any broker, for one that nobody else has; a transactional
    one the coordinator, which ends what is open and fences the process that had the id before (KIP-98)."""

    transactional_id: str | None = None
    transaction_timeout_ms: int = 0
    # Those that it has and wants to go on with after an error (KIP-360), or -1.
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER_EPOCH


class InitProducerIdResponse(Answered, frozen=True, kw_only=True, gc=False):
    """producer_id: -1 with an error. A fresh id begins in epoch 0."""

    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER_EPOCH


class AddPartitionsToTxnRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """These partitions become part of the transaction, which begins with its first one."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    # A leader asks whether they are (KIP-890). A leader asks in place of the producer in the second version.
    verify_only: bool = False


class AddPartitionsToTxnResponse(Answered, frozen=True, kw_only=True, gc=False):
    """All of them are part of it, or none."""


class AddOffsetsToTxnRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """The group's partition of __consumer_offsets becomes part of the transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


class AddOffsetsToTxnResponse(Answered, frozen=True, kw_only=True, gc=False):
    """TxnOffsetCommit may follow."""


class TxnOffsetCommitRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Offsets that count when the transaction commits."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str
    offsets: tuple[CommittedOffset, ...]
    # Of the consumer that read them (KIP-447), or none.
    generation_id: int = NO_GENERATION
    member_id: str = NO_MEMBER
    group_instance_id: str | None = None
    # The group's coordinator adds its partition to the transaction (KIP-890, second version).
    adds_partition: bool = False


class TxnOffsetCommitResponse(Answered, frozen=True, kw_only=True, gc=False):
    """coordinator_epoch as in OffsetCommitResponse."""

    coordinator_epoch: int = -1


class EndTxnRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Commit or abort."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    # 2: the producer takes a new epoch from the answer (KIP-890).
    version: int = 1


class EndTxnResponse(Answered, frozen=True, kw_only=True, gc=False):
    """The end is decided; markers follow."""

    # Of the next transaction, in the second version.
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER_EPOCH


class TxnMarker(Struct, frozen=True, kw_only=True, gc=False):
    """The end of a transaction in some partitions."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]
    # Of the transaction (KIP-1228).
    version: int = 1


class WriteTxnMarkersRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """A coordinator asks a leader to end a transaction."""

    marker: TxnMarker


class WriteTxnMarkersResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """One error for each partition, NONE once every replica has the marker."""

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]


class DescribeTransactionRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask the coordinator what it knows of a transactional id (KIP-664)."""

    transactional_id: str


class DescribeTransactionResponse(Answered, frozen=True, kw_only=True, gc=False):
    """state: as Kafka names it. started_ms: when the transaction began, -1 if none did. partitions: of an
    open transaction all, of one that ends those without their marker."""

    state: str = ""
    timeout_ms: int = 0
    started_ms: int = -1
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER_EPOCH
    partitions: tuple[TopicPartition, ...] = ()


class ListTransactionsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask a broker which transactional ids it coordinates (KIP-664)."""

    # Only these, if there are any.
    states: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    # Only transactions that began before so long (KIP-994); -1: all.
    longer_than_ms: int = -1


class ListTransactionsResponse(Answered, frozen=True, kw_only=True, gc=False):
    """transactions: (transactional id, producer id, state). unknown_states: of the request."""

    unknown_states: tuple[str, ...] = ()
    transactions: tuple[tuple[str, int, str], ...] = ()


class DescribeProducersRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask a replica which producers its log remembers (KIP-664)."""

    partition: TopicPartition


class ActiveProducer(Struct, frozen=True, kw_only=True, gc=False):
    """coordinator_epoch: of its last marker. open_since: the first offset of its open transaction. Each is -1
    if there is none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    open_since: int


class DescribeProducersResponse(Answered, frozen=True, kw_only=True, gc=False):
    """The producers by id."""

    producers: tuple[ActiveProducer, ...] = ()


TransactionRequest = (
    InitProducerIdRequest
    | AddPartitionsToTxnRequest
    | AddOffsetsToTxnRequest
    | TxnOffsetCommitRequest
    | EndTxnRequest
    | WriteTxnMarkersRequest
    | DescribeTransactionRequest
    | ListTransactionsRequest
    | DescribeProducersRequest
)
TransactionResponse = (
    InitProducerIdResponse
    | AddPartitionsToTxnResponse
    | AddOffsetsToTxnResponse
    | TxnOffsetCommitResponse
    | EndTxnResponse
    | WriteTxnMarkersResponse
    | DescribeTransactionResponse
    | ListTransactionsResponse
    | DescribeProducersResponse
)
