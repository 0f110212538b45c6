"""Requests and responses of administration, named as Kafka names them; messages/broker_api.py has the others
and what is common to all.

Each is shaped as Kafka's: several topics, resources or partitions in one request, an error for each of them
in the answer. message: why, in one sentence, empty where the error says enough. timeout_ms: how long the
answer may wait for what was asked to be done.
"""

from enum import StrEnum

from msgspec import Struct

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode

BROKERS_CHOICE = -1
"""Instead of a number of partitions or a replication factor: the brokers' default."""


class Result(Struct, frozen=True, kw_only=True, gc=False):
    """What became of one topic, group or resource of a request. name: as the request has it."""

    name: str
    error: ErrorCode
    message: str = ""


class PartitionResult(Struct, frozen=True, kw_only=True, gc=False):
    """What became of one partition of a request."""

    partition: TopicPartition
    error: ErrorCode
    message: str = ""


class ReplicasOf(Struct, frozen=True, kw_only=True, gc=False):
    """Where the replicas of one partition go, the preferred leader first."""

    partition: int
    replicas: tuple[int, ...]


# ---- topics: the controller answers, others NOT_CONTROLLER


class NewTopic(Struct, frozen=True, kw_only=True, gc=False):
    """partitions, replication_factor: BROKERS_CHOICE for the default, and where `assignment` says it all.
    config: a value of None is no value."""

    name: str
    partitions: int = BROKERS_CHOICE
    replication_factor: int = BROKERS_CHOICE
    assignment: tuple[ReplicasOf, ...] = ()
    config: tuple[tuple[str, str | None], ...] = ()


class CreateTopicsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Answered when each partition has a leader. validate_only: nothing is created."""

    correlation_id: int
    topics: tuple[NewTopic, ...]
    timeout_ms: int
    validate_only: bool = False


class CreateTopicsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One result a topic."""

    correlation_id: int
    results: tuple[Result, ...]


class DeleteTopicsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Answered when the topics are gone."""

    correlation_id: int
    names: tuple[str, ...]
    timeout_ms: int


class DeleteTopicsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One result a topic."""

    correlation_id: int
    results: tuple[Result, ...]


class MorePartitions(Struct, frozen=True, kw_only=True, gc=False):
    """count: of all partitions that the topic shall have. assignment: replicas of each new partition;
    None: the broker places them."""

    name: str
    count: int
    assignment: tuple[tuple[int, ...], ...] | None = None


class CreatePartitionsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Answered when each partition has a leader. validate_only: nothing is created."""

    correlation_id: int
    topics: tuple[MorePartitions, ...]
    timeout_ms: int
    validate_only: bool = False


class CreatePartitionsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One result a topic."""

    correlation_id: int
    results: tuple[Result, ...]


# ---- configuration: any broker answers for topics, each broker for itself


class ResourceKind(StrEnum):
    """What has a configuration."""

    TOPIC = "topic"
    BROKER = "broker"


class ConfigSource(StrEnum):
    """Where a value comes from, in Kafka's names."""

    DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
    STATIC_BROKER_CONFIG = "STATIC_BROKER_CONFIG"
    DEFAULT_CONFIG = "DEFAULT_CONFIG"


class DescribedResource(Struct, frozen=True, kw_only=True, gc=False):
    """keys: the settings asked for; None: all."""

    kind: ResourceKind
    name: str
    keys: tuple[str, ...] | None = None


class DescribeConfigsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """What is configured."""

    correlation_id: int
    resources: tuple[DescribedResource, ...]


class ConfigSynonym(Struct, frozen=True, kw_only=True, gc=False):
    """A setting that would count if those before it did not say anything."""

    name: str
    value: str
    source: ConfigSource


class ConfigEntry(Struct, frozen=True, kw_only=True, gc=False):
    """A setting. kind: Kafka's type of it (impl/core/topic_config.py). synonyms: the first one is in
    force."""

    name: str
    value: str
    source: ConfigSource
    kind: str
    read_only: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()


class DescribedConfig(Struct, frozen=True, kw_only=True, gc=False):
    """One resource's settings; none with an error."""

    kind: ResourceKind
    name: str
    error: ErrorCode
    message: str = ""
    entries: tuple[ConfigEntry, ...] = ()


class DescribeConfigsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One answer per resource asked for, in that order."""

    correlation_id: int
    resources: tuple[DescribedConfig, ...]


class Alteration(StrEnum):
    """What IncrementalAlterConfigs does with a setting (KIP-339)."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"


class AlteredSetting(Struct, frozen=True, kw_only=True, gc=False):
    """value: None only for DELETE."""

    name: str
    alteration: Alteration
    value: str | None


class AlteredResource(Struct, frozen=True, kw_only=True, gc=False):
    """settings: what is said of one resource."""

    kind: ResourceKind
    name: str
    settings: tuple[AlteredSetting, ...]


class AlterConfigsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """incremental: what is not named stays as it is (IncrementalAlterConfigs); else it goes
    (AlterConfigs), and every alteration is SET."""

    correlation_id: int
    resources: tuple[AlteredResource, ...]
    incremental: bool
    validate_only: bool = False


class AlteredConfig(Struct, frozen=True, kw_only=True, gc=False):
    """What became of one resource."""

    kind: ResourceKind
    name: str
    error: ErrorCode
    message: str = ""


class AlterConfigsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One answer per resource, in that order."""

    correlation_id: int
    resources: tuple[AlteredConfig, ...]


# ---- replicas and leaders: the controller answers, others NOT_CONTROLLER


class Reassigned(Struct, frozen=True, kw_only=True, gc=False):
    """replicas: the target; None: cancel the reassignment."""

    partition: TopicPartition
    replicas: tuple[int, ...] | None


class AlterPartitionReassignmentsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Answered when the reassignments are under way (KIP-455)."""

    correlation_id: int
    partitions: tuple[Reassigned, ...]
    timeout_ms: int


class AlterPartitionReassignmentsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """error: of the request as a whole; then there are no results."""

    correlation_id: int
    error: ErrorCode
    message: str = ""
    results: tuple[PartitionResult, ...] = ()


class ListPartitionReassignmentsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """partitions: None for all that are reassigned."""

    correlation_id: int
    partitions: tuple[TopicPartition, ...] | None
    timeout_ms: int


class OngoingReassignment(Struct, frozen=True, kw_only=True, gc=False):
    """replicas: all that the partition has now. adding, removing: those of them, or to come, that it did
    not have before, or will not have after."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ListPartitionReassignmentsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """Those of the partitions asked for that are reassigned."""

    correlation_id: int
    error: ErrorCode
    reassignments: tuple[OngoingReassignment, ...] = ()


class ElectLeadersRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Answered when the brokers' metadata shows the new leaders. partitions: None for all. unclean: any
    live replica may lead where no replica in sync is alive, which loses data (KIP-460); else the preferred
    replica shall lead."""

    correlation_id: int
    partitions: tuple[TopicPartition, ...] | None
    timeout_ms: int
    unclean: bool = False


class ElectLeadersResponse(Struct, frozen=True, kw_only=True, gc=False):
    """error: of the request as a whole. results: of all partitions asked for; where all were, of those
    that needed an election."""

    correlation_id: int
    error: ErrorCode
    results: tuple[PartitionResult, ...] = ()


# ---- log directories: each broker answers for itself


class DescribeLogDirsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """partitions: None for all."""

    correlation_id: int
    partitions: tuple[TopicPartition, ...] | None = None


class DescribedLog(Struct, frozen=True, kw_only=True, gc=False):
    """size: of all its segments, bytes. offset_lag: how far the log's end is behind the high watermark, 0
    nearly always."""

    partition: TopicPartition
    size: int
    offset_lag: int


class DescribeLogDirsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """A broker has one log directory; its name in the file system is the host's to know."""

    correlation_id: int
    error: ErrorCode
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
