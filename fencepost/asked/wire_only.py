"""Questions that only Kafka's brokers answer, in the shape of the core's messages.

Owns these messages. Must not know how they travel (kafka.py).
"""

from msgspec import Struct

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode


class ConsumerGroupDescribeRequest(Struct, frozen=True, kw_only=True):
    """Ask a coordinator for a group of the consumer protocol (KIP-848)."""

    correlation_id: int
    group_id: str


class ConsumerGroupDescribeResponse(Struct, frozen=True, kw_only=True):
    """members: (member id, group.instance.id, partitions, member epoch, client id, host)."""

    correlation_id: int
    error: ErrorCode
    state: str = ""
    group_epoch: int = -1
    assignor: str = ""
    members: tuple[tuple[str, str | None, tuple[TopicPartition, ...], int, str, str], ...] = ()


class DescribeQuorumRequest(Struct, frozen=True, kw_only=True):
    """Ask the active controller, through any broker, about the metadata log."""

    correlation_id: int


class QuorumReplica(Struct, frozen=True, kw_only=True):
    """A voter or observer. Times in milliseconds of the controller's clock, -1 for unknown."""

    node: int
    log_end_offset: int
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


class DescribeQuorumResponse(Struct, frozen=True, kw_only=True):
    """The leader of the metadata log, and how far its replicas are."""

    correlation_id: int
    error: ErrorCode
    leader: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    voters: tuple[QuorumReplica, ...] = ()
    observers: tuple[QuorumReplica, ...] = ()


class DescribeTopicPartitionsRequest(Struct, frozen=True, kw_only=True):
    """Ask a broker for its metadata of topics, with the eligible leader replicas (KIP-966)."""

    correlation_id: int
    topics: tuple[str, ...]


class EligiblePartition(Struct, frozen=True, kw_only=True):
    """One partition."""

    partition: TopicPartition
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    # Replicas that may lead although they are not in the ISR.
    eligible: tuple[int, ...]
    last_known: tuple[int, ...]


class DescribeTopicPartitionsResponse(Struct, frozen=True, kw_only=True):
    """Topics that are not known are left out."""

    correlation_id: int
    partitions: tuple[EligiblePartition, ...]


class DescribeClusterRequest(Struct, frozen=True, kw_only=True):
    """Ask a broker for all that are registered, fenced ones included."""

    correlation_id: int


class DescribeClusterResponse(Struct, frozen=True, kw_only=True):
    """addresses: (host, port) by broker, as the listener that was asked names them."""

    correlation_id: int
    error: ErrorCode
    addresses: dict[int, tuple[str, int]] = {}


WIRE_ONLY = (
    ConsumerGroupDescribeRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
)
"""Requests that the simulated brokers do not know."""
