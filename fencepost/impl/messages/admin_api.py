"""Requests and responses of administration, named as in Kafka. messages/broker_api.py has the other messages
and the common parts.

They have Kafka's shape: one request may name several topics, resources or partitions, and the response has an
error for each. message: the reason in one sentence, empty if the error says enough. timeout_ms: how long the
response may wait until the request is carried out.
"""

from enum import StrEnum

from msgspec import Struct

from fencepost.impl.messages.correlation import Answered, Correlated
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode

BROKERS_CHOICE = -1
"""In place of a number of partitions or a replication factor: use the broker's default."""


class Result(Struct, frozen=True, kw_only=True, gc=False):
    """The result for one topic, group or resource of a request."""

    # As in the request.
    name: str
    error: ErrorCode
    message: str = ""


class PartitionResult(Struct, frozen=True, kw_only=True, gc=False):
    """The result for one partition of a request."""

    partition: TopicPartition
    error: ErrorCode
    message: str = ""


class ReplicasOf(Struct, frozen=True, kw_only=True, gc=False):
    """The replicas of one partition, the preferred leader first."""

    partition: int
    replicas: tuple[int, ...]


# ---- topics: the controller answers, other brokers return NOT_CONTROLLER


class NewTopic(Struct, frozen=True, kw_only=True, gc=False):
    """A topic to create."""

    name: str
    # BROKERS_CHOICE for the default, or if `assignment` gives them.
    partitions: int = BROKERS_CHOICE
    replication_factor: int = BROKERS_CHOICE
    assignment: tuple[ReplicasOf, ...] = ()
    # A value of None counts as no value.
    config: tuple[tuple[str, str | None], ...] = ()


class CreateTopicsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Answered when each partition has a leader."""

    topics: tuple[NewTopic, ...]
    timeout_ms: int
    # Nothing is created.
    validate_only: bool = False


class CreateTopicsResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """One result per topic."""

    results: tuple[Result, ...]


class DeleteTopicsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Answered when the topics are gone."""

    names: tuple[str, ...]
    timeout_ms: int


class DeleteTopicsResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """One result per topic."""

    results: tuple[Result, ...]


class MorePartitions(Struct, frozen=True, kw_only=True, gc=False):
    """More partitions for a topic."""

    name: str
    # The number of partitions after the request.
    count: int
    # The replicas of each new partition; None: the broker places them.
    assignment: tuple[tuple[int, ...], ...] | None = None


class CreatePartitionsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Answered when each partition has a leader."""

    topics: tuple[MorePartitions, ...]
    timeout_ms: int
    # Nothing is created.
    validate_only: bool = False


class CreatePartitionsResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """One result per topic."""

    results: tuple[Result, ...]


# ---- configuration: any broker answers for topics, each broker for itself


class ResourceKind(StrEnum):
    """The kinds of resources that have a configuration."""

    TOPIC = "topic"
    BROKER = "broker"


class ConfigSource(StrEnum):
    """The source of a value, in Kafka's names."""

    DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
    DYNAMIC_BROKER_CONFIG = "DYNAMIC_BROKER_CONFIG"
    DYNAMIC_DEFAULT_BROKER_CONFIG = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    STATIC_BROKER_CONFIG = "STATIC_BROKER_CONFIG"
    DEFAULT_CONFIG = "DEFAULT_CONFIG"


class DescribedResource(Struct, frozen=True, kw_only=True, gc=False):
    """keys: the requested settings; None: all."""

    kind: ResourceKind
    name: str
    keys: tuple[str, ...] | None = None


class DescribeConfigsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Request configurations."""

    resources: tuple[DescribedResource, ...]


class ConfigSynonym(Struct, frozen=True, kw_only=True, gc=False):
    """A value of a setting that applies if those before it are missing."""

    name: str
    value: str
    source: ConfigSource


class ConfigEntry(Struct, frozen=True, kw_only=True, gc=False):
    """A setting of a resource."""

    # The name of the setting.
    name: str
    # The value in force, as text.
    value: str
    # Where the value comes from.
    source: ConfigSource
    # Kafka's type of the setting (impl/core/topic_config.py).
    kind: str
    # Whether clients cannot change it.
    read_only: bool = False
    # All values that could apply; the first one is in force.
    synonyms: tuple[ConfigSynonym, ...] = ()


class DescribedConfig(Struct, frozen=True, kw_only=True, gc=False):
    """The settings of one resource; none with an error."""

    kind: ResourceKind
    name: str
    error: ErrorCode
    message: str = ""
    entries: tuple[ConfigEntry, ...] = ()


class DescribeConfigsResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """One result per requested resource, in the same order."""

    resources: tuple[DescribedConfig, ...]


class Alteration(StrEnum):
    """What IncrementalAlterConfigs does with a setting (KIP-339)."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"


class AlteredSetting(Struct, frozen=True, kw_only=True, gc=False):
    """A change of one setting."""

    name: str
    alteration: Alteration
    # None only for DELETE.
    value: str | None


class AlteredResource(Struct, frozen=True, kw_only=True, gc=False):
    """Changes of the settings of one resource."""

    kind: ResourceKind
    name: str
    settings: tuple[AlteredSetting, ...]


class AlterConfigsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Change configurations."""

    resources: tuple[AlteredResource, ...]
    # Settings that are not named stay (IncrementalAlterConfigs). Otherwise they are removed (AlterConfigs),
    # and every alteration is SET.
    incremental: bool
    validate_only: bool = False


class AlteredConfig(Struct, frozen=True, kw_only=True, gc=False):
    """The result for one resource."""

    kind: ResourceKind
    name: str
    error: ErrorCode
    message: str = ""


class AlterConfigsResponse(Correlated, frozen=True, kw_only=True, gc=False):
    """One result per resource, in the same order."""

    resources: tuple[AlteredConfig, ...]


# ---- replicas and leaders: the controller answers, other brokers return NOT_CONTROLLER


class Reassigned(Struct, frozen=True, kw_only=True, gc=False):
    """A partition to reassign."""

    partition: TopicPartition
    # The target; None: cancel the reassignment.
    replicas: tuple[int, ...] | None


class AlterPartitionReassignmentsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Answered when the reassignments have begun (KIP-455)."""

    partitions: tuple[Reassigned, ...]
    timeout_ms: int


class AlterPartitionReassignmentsResponse(Answered, frozen=True, kw_only=True, gc=False):
    """error: of the request as a whole; then there are no results."""

    message: str = ""
    results: tuple[PartitionResult, ...] = ()


class ListPartitionReassignmentsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """partitions: None for all partitions under reassignment."""

    partitions: tuple[TopicPartition, ...] | None
    timeout_ms: int


class OngoingReassignment(Struct, frozen=True, kw_only=True, gc=False):
    """A reassignment in progress."""

    partition: TopicPartition
    # All current replicas.
    replicas: tuple[int, ...]
    # The replicas that it adds and removes.
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ListPartitionReassignmentsResponse(Answered, frozen=True, kw_only=True, gc=False):
    """Those of the requested partitions that are being reassigned."""

    reassignments: tuple[OngoingReassignment, ...] = ()


class ElectLeadersRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Answered when the brokers' metadata shows the new leaders."""

    # None for all.
    partitions: tuple[TopicPartition, ...] | None
    timeout_ms: int
    # If no in-sync replica is alive, any live replica may lead, which loses data (KIP-460); otherwise the
    # preferred replica becomes leader.
    unclean: bool = False


class ElectLeadersResponse(Answered, frozen=True, kw_only=True, gc=False):
    """error: of the whole request."""

    # Of all requested partitions; if all were requested, of those that needed an election.
    results: tuple[PartitionResult, ...] = ()


# ---- log directories: each broker answers for itself


class DescribeLogDirsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """partitions: None for all."""

    partitions: tuple[TopicPartition, ...] | None = None


class DescribedLog(Struct, frozen=True, kw_only=True, gc=False):
    """A replica's log."""

    partition: TopicPartition
    # Bytes of all its segments.
    size: int
    # How many offsets the log end is below the high watermark; almost always 0.
    offset_lag: int


class DescribeLogDirsResponse(Answered, frozen=True, kw_only=True, gc=False):
    """A broker has one log directory; only the host knows its name in the file system."""

    logs: tuple[DescribedLog, ...] = ()


AdminRequest = (
    CreateTopicsRequest
    | DeleteTopicsRequest
    | CreatePartitionsRequest
    | DescribeConfigsRequest
    | AlterConfigsRequest
    | AlterPartitionReassignmentsRequest
    | ListPartitionReassignmentsRequest
    | ElectLeadersRequest
    | DescribeLogDirsRequest
)
AdminResponse = (
    CreateTopicsResponse
    | DeleteTopicsResponse
    | CreatePartitionsResponse
    | DescribeConfigsResponse
    | AlterConfigsResponse
    | AlterPartitionReassignmentsResponse
    | ListPartitionReassignmentsResponse
    | ElectLeadersResponse
    | DescribeLogDirsResponse
)
