"""Kafka's requests and responses as plain values, named as in Kafka.

Every request has a correlation id. The response repeats it, so that the sender can drop the response to an
abandoned request. Records are the bytes of the log (impl/log): a follower appends the bytes that the leader
read, and a client decodes them.
"""

from msgspec import Struct

from fencepost.impl.messages.admin_api import AdminRequest, AdminResponse
from fencepost.impl.messages.correlation import Answered, Correlated
from fencepost.impl.messages.group_api import GroupRequest, GroupResponse
from fencepost.impl.messages.topic_partition import TopicPartition as TopicPartition
from fencepost.impl.messages.transaction_api import InitProducerIdRequest as InitProducerIdRequest
from fencepost.impl.messages.transaction_api import InitProducerIdResponse as InitProducerIdResponse
from fencepost.impl.messages.transaction_api import TransactionRequest, TransactionResponse
from fencepost.traces.kafka_names.outcomes import ErrorCode

NO_EPOCH = -1
LATEST, EARLIEST = -1, -2
"""Timestamps of ListOffsets that ask for the end or the start of the log."""
DEBUGGER = -2
"""The replica id in ListOffsets of a client that asks any replica about its own log: the end is the log's,
not the high watermark (Request.DebuggingConsumerId in Kafka)."""
NO_LEADER = -1
LEADER_DURING_DELETE = -2
"""The leader in UpdateMetadata for a partition of a topic that is being deleted: the receiver forgets the
partition."""
EPOCH_DURING_DELETE = -2
"""The leader epoch in StopReplica for a topic that is being deleted. It is valid for every epoch that the
broker has obeyed (KIP-570)."""


# ---- data path


class ProduceRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Append a batch."""

    partition: TopicPartition
    acks: int
    # One batch, with offsets that count from 0.
    records: bytes
    # How long acks=all may wait, in nanoseconds.
    timeout: int
    transactional_id: str | None = None
    # The leader adds the partition to the transaction (KIP-890, second version).
    adds_partition: bool = False


class ProduceResponse(Answered, frozen=True, kw_only=True, gc=False):
    """base_offset: -1 if nothing was appended; kept together with an error if the append came first."""

    base_offset: int = -1
    leader_epoch: int = NO_EPOCH
    log_start_offset: int = -1


class FetchPartition(Struct, frozen=True, kw_only=True, gc=False):
    """One partition of a fetch."""

    partition: TopicPartition
    offset: int
    # The epoch that the fetcher knows (-1: not sent).
    leader_epoch: int = NO_EPOCH
    log_start_offset: int = 0
    # Bound for this partition in bytes; 0: the request's max_bytes.
    max_bytes: int = 0


class FetchRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Read records of several partitions."""

    # The follower, or -1 for a client.
    replica_id: int
    # How long the response may wait for data, in nanoseconds.
    max_wait: int
    # Bytes of records per partition.
    max_bytes: int
    # The partitions to read.
    partitions: tuple[FetchPartition, ...]
    # fetch.min.bytes: with fewer bytes of records over all partitions, the response waits until max_wait.
    min_bytes: int = 1
    # Bound in bytes over all partitions; the first batch is returned whole even if it is larger (KIP-74). 0:
    # no bound.
    total_max_bytes: int = 0
    # Return nothing at or after the last stable offset, and list the aborted transactions (KIP-98).
    read_committed: bool = False
    # Whether a follower may answer this client, up to the high watermark that it knows (KIP-392).
    from_follower: bool = False


class FetchedPartition(Struct, frozen=True, kw_only=True, gc=False):
    """The result for one partition of a fetch."""

    # The partition.
    partition: TopicPartition
    # The error; NONE if there is none.
    error: ErrorCode
    # The leader epoch of the broker that answers.
    leader_epoch: int = NO_EPOCH
    # The leader's high watermark; -1 with an error.
    high_watermark: int = -1
    # The leader's log start offset; -1 with an error.
    log_start_offset: int = -1
    # Batches in the log's format, from the batch that contains the requested offset.
    records: bytes = b""
    # Every transaction below it is decided; at most the high watermark. Only in a response to a client.
    last_stable_offset: int = -1
    # (producer id, first offset) of the aborted transactions in `records`, if read_committed was requested.
    aborted: tuple[tuple[int, int], ...] = ()


class FetchResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """One result per requested partition, in the same order."""

    partitions: tuple[FetchedPartition, ...]


class ListOffsetsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask for an offset by time."""

    # The partition.
    partition: TopicPartition
    # The epoch that the sender knows (-1: not sent).
    leader_epoch: int = NO_EPOCH
    # LATEST for the latest offset that a client may read, EARLIEST for the first. Otherwise milliseconds: the
    # first record with this timestamp or a later one.
    timestamp: int = LATEST
    # The follower, -1 for a client, DEBUGGER for one that asks about this replica.
    replica_id: int = -1
    # LATEST means the last stable offset, and records at or after it are not found.
    read_committed: bool = False


class ListOffsetsResponse(Answered, frozen=True, kw_only=True, gc=False):
    """offset: the high watermark, or the log start offset, or the offset of the record found (-1: there is no
    such record)."""

    offset: int = -1
    leader_epoch: int = NO_EPOCH
    # The timestamp of the record found in milliseconds; -1 for an end of the log.
    timestamp: int = -1


class DeleteRecordsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Delete the records below `offset`, which is at most the high watermark (KIP-107)."""

    partition: TopicPartition
    offset: int


class DeleteRecordsResponse(Answered, frozen=True, kw_only=True, gc=False):
    """low_watermark: the leader's log start offset; -1 with an error."""

    low_watermark: int = -1


class EpochQuery(Struct, frozen=True, kw_only=True, gc=False):
    """Ask where `asked_epoch` ends in the leader's log."""

    partition: TopicPartition
    # Fences the request.
    current_leader_epoch: int
    asked_epoch: int


class EpochEnd(Struct, frozen=True, kw_only=True, gc=False):
    """epoch: the largest epoch <= the requested one that the leader knows; end_offset: its end offset. Both
    -1 if it knows no such epoch."""

    partition: TopicPartition
    error: ErrorCode
    epoch: int = NO_EPOCH
    end_offset: int = -1


class OffsetsForLeaderEpochRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Sent by a follower before it fetches (KIP-101, KIP-279)."""

    replica_id: int
    queries: tuple[EpochQuery, ...]


class OffsetsForLeaderEpochResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """One result per query, in the same order."""

    ends: tuple[EpochEnd, ...]


class MetadataRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask any broker for the leaders of partitions."""

    # The topics; None: all.
    topics: tuple[str, ...] | None = None
    # Whether unknown topics may be created.
    allow_auto_topic_creation: bool = False


class PartitionMetadata(Struct, frozen=True, kw_only=True, gc=False):
    """A broker's view of one partition, from UpdateMetadata."""

    partition: TopicPartition
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()


class MetadataResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """The response may be stale: brokers learn leaders from UpdateMetadata only."""

    partitions: tuple[PartitionMetadata, ...]
    live_brokers: tuple[int, ...]
    # The controller that sent the last applied UpdateMetadata; -1 before the first.
    controller_id: int = -1
    # Topics that were requested by name and are unknown here.
    errors: tuple[tuple[str, ErrorCode], ...] = ()


# ---- control plane


class PartitionState(Struct, frozen=True, array_like=True, gc=False):
    """A partition's state in a controller's request. It is encoded as an array, because a controller sends
    hundreds of thousands of them."""

    # The partition.
    partition: TopicPartition
    # The epoch of the controller that wrote the state.
    controller_epoch: int
    # The leader; -1 if there is none.
    leader: int
    # The leader epoch; it never decreases.
    leader_epoch: int
    # The in-sync replicas.
    isr: tuple[int, ...]
    # The version of the partition's state node, for conditional writes.
    zk_version: int
    # The assigned replicas (AR), the preferred leader first.
    replicas: tuple[int, ...]


class LeaderAndIsrRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Become leader or follower of the partitions."""

    # The controller.
    controller_id: int
    # The controller's epoch.
    controller_epoch: int
    # The incarnation of the receiver that the request is for.
    broker_epoch: int
    # The new states.
    partitions: tuple[PartitionState, ...]
    # The brokers that may lead or join an ISR.
    live_brokers: tuple[int, ...]


class UpdateMetadataRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """The metadata that every broker returns to clients."""

    # The controller.
    controller_id: int
    # The controller's epoch.
    controller_epoch: int
    # The incarnation of the receiver that the request is for.
    broker_epoch: int
    # The states.
    partitions: tuple[PartitionState, ...]
    # The brokers that may lead or join an ISR.
    live_brokers: tuple[int, ...]
    # Brokers that still run and are about to stop.
    shutting_down: tuple[int, ...] = ()


class StopReplicaRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Stop fetching, and delete the log if requested."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    # Each with its leader epoch (KIP-570), and whether its log is deleted.
    partitions: tuple[tuple[TopicPartition, int, bool], ...]


class ControlResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """The response to the three requests above."""

    # The request's class name.
    kind: str
    error: ErrorCode
    # The highest that the broker has seen.
    controller_epoch: int = NO_EPOCH
    # For StopReplica, the error of each partition.
    partition_errors: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


class ControlledShutdownRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """A stopping broker asks the controller to move its leaders."""

    broker_id: int
    # The incarnation of the sender (KIP-380).
    broker_epoch: int


class ControlledShutdownResponse(Answered, frozen=True, kw_only=True, gc=False):
    """remaining: partitions that the broker still leads although they have other replicas. If empty, the
    broker may stop."""

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
