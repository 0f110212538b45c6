"""Kafka's requests and responses as plain values, named as Kafka names them.

Every request carries a correlation id; its response repeats it, so that an answer to an abandoned request is
recognised and dropped. Records travel as the log's own bytes (impl/log): a follower appends what the leader
read, a client decodes it.
"""

from msgspec import Struct

from fencepost.impl.messages.admin_api import AdminRequest, AdminResponse
from fencepost.impl.messages.group_api import GroupRequest, GroupResponse
from fencepost.impl.messages.topic_partition import TopicPartition as TopicPartition
from fencepost.impl.messages.transaction_api import InitProducerIdRequest as InitProducerIdRequest
from fencepost.impl.messages.transaction_api import InitProducerIdResponse as InitProducerIdResponse
from fencepost.impl.messages.transaction_api import TransactionRequest, TransactionResponse
from fencepost.traces.outcomes import ErrorCode

NO_EPOCH = -1
LATEST, EARLIEST = -1, -2
"""Timestamps of ListOffsets that ask for an end of the log."""
NO_LEADER = -1
LEADER_DURING_DELETE = -2
"""The leader that UpdateMetadata names for a partition whose topic is being deleted: forget it."""
EPOCH_DURING_DELETE = -2
"""The leader epoch of a StopReplica for a topic that is being deleted: whatever epoch the broker has obeyed
(KIP-570)."""


# ---- data path


class ProduceRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Append a batch. records: one batch whose offsets count from 0. timeout: how long acks=all may wait,
    nanoseconds."""

    correlation_id: int
    partition: TopicPartition
    acks: int
    records: bytes
    timeout: int
    transactional_id: str | None = None
    adds_partition: bool = False
    """The leader adds the partition to the transaction (KIP-890, second version)."""


class ProduceResponse(Struct, frozen=True, kw_only=True, gc=False):
    """base_offset: -1 if nothing was appended; kept beside an error if the append came first."""

    correlation_id: int
    error: ErrorCode
    base_offset: int = -1
    leader_epoch: int = NO_EPOCH
    log_start_offset: int = -1


class FetchPartition(Struct, frozen=True, kw_only=True, gc=False):
    """One partition of a fetch. leader_epoch: that the fetcher believes in (-1: does not say)."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = NO_EPOCH
    log_start_offset: int = 0
    max_bytes: int = 0
    """Of this partition; 0: the request's max_bytes."""


class FetchRequest(Struct, frozen=True, kw_only=True, gc=False):
    """replica_id: the follower, or -1 for a client. max_wait: nanoseconds; max_bytes: per partition."""

    correlation_id: int
    replica_id: int
    max_wait: int
    max_bytes: int
    partitions: tuple[FetchPartition, ...]
    min_bytes: int = 1
    """Of records over all partitions: with fewer the answer waits until max_wait (fetch.min.bytes)."""
    total_max_bytes: int = 0
    """Of records over all partitions; the first batch comes whole even if it is larger (KIP-74). 0: no
    bound."""
    read_committed: bool = False
    """Nothing at or after the last stable offset, and which transactions were aborted (KIP-98)."""


class FetchedPartition(Struct, frozen=True, kw_only=True, gc=False):
    """records: batches in the log's format, from the batch that holds the offset asked for."""

    partition: TopicPartition
    error: ErrorCode
    leader_epoch: int = NO_EPOCH
    high_watermark: int = -1
    log_start_offset: int = -1
    records: bytes = b""
    last_stable_offset: int = -1
    """Every transaction below it is decided; at most the high watermark. Only in an answer to a client."""
    aborted: tuple[tuple[int, int], ...] = ()
    """(producer id, first offset) of the aborted transactions in `records`, if read_committed was asked
    for."""


class FetchResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One answer per partition asked for, in that order."""

    correlation_id: int
    partitions: tuple[FetchedPartition, ...]


class ListOffsetsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """timestamp: LATEST for the latest offset that a client may read, EARLIEST for the first, else
    milliseconds: the first record as late as that. replica_id: a follower's, or -1 for a client. leader_epoch
    as in FetchPartition."""

    correlation_id: int
    partition: TopicPartition
    leader_epoch: int = NO_EPOCH
    timestamp: int = LATEST
    replica_id: int = -1
    read_committed: bool = False
    """The latest offset is the last stable one, and a record at or after it is not found."""


class ListOffsetsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """offset: the high watermark, or the log start offset, or that of the record found (-1: there is none as
    late)."""

    correlation_id: int
    error: ErrorCode
    offset: int = -1
    leader_epoch: int = NO_EPOCH
    timestamp: int = -1
    """Of the record found, in milliseconds; -1 for an end of the log."""


class DeleteRecordsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Delete what lies below `offset`, which may be the high watermark at most (KIP-107)."""

    correlation_id: int
    partition: TopicPartition
    offset: int


class DeleteRecordsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """low_watermark: the leader's log start offset; -1 with an error."""

    correlation_id: int
    error: ErrorCode
    low_watermark: int = -1


class EpochQuery(Struct, frozen=True, kw_only=True, gc=False):
    """Where does `asked_epoch` end in your log? current_leader_epoch: fences the question."""

    partition: TopicPartition
    current_leader_epoch: int
    asked_epoch: int


class EpochEnd(Struct, frozen=True, kw_only=True, gc=False):
    """epoch: the largest one <= asked that the leader knows; end_offset: where it ends; both -1 if it knows
    none at all."""

    partition: TopicPartition
    error: ErrorCode
    epoch: int = NO_EPOCH
    end_offset: int = -1


class OffsetsForLeaderEpochRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Asked by a follower before it fetches (KIP-101, KIP-279)."""

    correlation_id: int
    replica_id: int
    queries: tuple[EpochQuery, ...]


class OffsetsForLeaderEpochResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One answer per query, in that order."""

    correlation_id: int
    ends: tuple[EpochEnd, ...]


class MetadataRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Ask any broker who leads what."""

    correlation_id: int
    topics: tuple[str, ...] | None = None
    """None: all of them."""
    allow_auto_topic_creation: bool = False
    """An unknown topic may be created."""


class PartitionMetadata(Struct, frozen=True, kw_only=True, gc=False):
    """A broker's view of one partition, from UpdateMetadata."""

    partition: TopicPartition
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()


class MetadataResponse(Struct, frozen=True, kw_only=True, gc=False):
    """May be stale: brokers learn by UpdateMetadata only."""

    correlation_id: int
    partitions: tuple[PartitionMetadata, ...]
    live_brokers: tuple[int, ...]
    controller_id: int = -1
    """Whose UpdateMetadata was taken over last."""
    errors: tuple[tuple[str, ErrorCode], ...] = ()
    """Of topics that were asked for by name and are not known here."""


# ---- control plane


class PartitionState(Struct, frozen=True, array_like=True, gc=False):
    """A partition as the controller tells it. controller_epoch: of the controller that wrote the state;
    replicas: AR. array_like: encoded as it is, because a controller tells hundreds of thousands of them."""

    partition: TopicPartition
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    replicas: tuple[int, ...]


class LeaderAndIsrRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Become leader or follower. broker_epoch: the receiver's incarnation that is meant."""

    correlation_id: int
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[PartitionState, ...]
    live_brokers: tuple[int, ...]


class UpdateMetadataRequest(Struct, frozen=True, kw_only=True, gc=False):
    """What every broker tells clients. live_brokers: those that may lead or join an ISR; shutting_down: those
    that still run and are about to stop."""

    correlation_id: int
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[PartitionState, ...]
    live_brokers: tuple[int, ...]
    shutting_down: tuple[int, ...] = ()


class StopReplicaRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Stop fetching, and delete the log if asked. leader_epochs: per partition (KIP-570)."""

    correlation_id: int
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[tuple[TopicPartition, int, bool], ...]


class ControlResponse(Struct, frozen=True, kw_only=True, gc=False):
    """To any of the three. kind: the request's class name; controller_epoch: the highest that the broker has
    seen. partition_errors: to a StopReplica, of each of its partitions."""

    correlation_id: int
    kind: str
    error: ErrorCode
    controller_epoch: int = NO_EPOCH
    partition_errors: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


class ControlledShutdownRequest(Struct, frozen=True, kw_only=True, gc=False):
    """A broker asks the controller to take its leaders away, so that it may stop. broker_epoch: of the
    incarnation that asks (KIP-380)."""

    correlation_id: int
    broker_id: int
    broker_epoch: int


class ControlledShutdownResponse(Struct, frozen=True, kw_only=True, gc=False):
    """remaining: partitions that the broker still leads although they have other replicas; empty: it may
    stop."""

    correlation_id: int
    error: ErrorCode
    remaining: tuple[TopicPartition, ...] = ()


Request = (
    ProduceRequest
    | FetchRequest
    | ListOffsetsRequest
    | DeleteRecordsRequest
    | OffsetsForLeaderEpochRequest
    | MetadataRequest
    | LeaderAndIsrRequest
    | UpdateMetadataRequest
    | StopReplicaRequest
    | ControlledShutdownRequest
    | TransactionRequest
    | GroupRequest
    | AdminRequest
)
Response = (
    ProduceResponse
    | FetchResponse
    | ListOffsetsResponse
    | DeleteRecordsResponse
    | OffsetsForLeaderEpochResponse
    | MetadataResponse
    | ControlResponse
    | ControlledShutdownResponse
    | TransactionResponse
    | GroupResponse
    | AdminResponse
)
ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
Message = Request | Response
