"""Requests and responses of consumer groups, named as Kafka names them; broker_api.py has the others and what
is common to all.

Subscriptions and assignments travel as bytes in Kafka's consumer protocol (client/consumer_protocol.py): the
coordinator never looks inside. generation_id -1: not a member, an offset commit of somebody who assigns
himself. group_instance_id: of a static member (KIP-345).
"""

from msgspec import Struct

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode

NO_GENERATION = -1
NO_MEMBER = ""
NO_OFFSET = -1
"""The committed offset where none is committed."""


class FindCoordinatorRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Ask any broker who coordinates a group, or the transactions of a transactional id."""

    correlation_id: int
    group_id: str
    transactional: bool = False
    """group_id is a transactional id."""


class FindCoordinatorResponse(Struct, frozen=True, kw_only=True, gc=False):
    """node: leader of the group's partition of __consumer_offsets, as far as the broker knows."""

    correlation_id: int
    error: ErrorCode
    node: int = -1


class JoinGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    """protocols: (name of an assignor, subscription), in the order of preference. client_id: begins the
    member id. client_host: as in MemberDescription, empty if it is not known."""

    correlation_id: int
    group_id: str
    client_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    client_host: str = ""


class JoinGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    """members: (member id, subscription) of everybody, told to the leader only. member_id: kept beside
    MEMBER_ID_REQUIRED."""

    correlation_id: int
    error: ErrorCode
    generation_id: int = NO_GENERATION
    protocol_name: str = ""
    leader: str = ""
    member_id: str = ""
    members: tuple[tuple[str, bytes], ...] = ()
    instances: tuple[tuple[str, str], ...] = ()
    """(member id, group.instance.id) of the static ones among them."""


class SyncGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    """assignments: (member id, assignment) of everybody, from the leader only."""

    correlation_id: int
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    assignments: tuple[tuple[str, bytes], ...] = ()


class SyncGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    """assignment: of the member that asked. coordinator_epoch as in OffsetCommitResponse."""

    correlation_id: int
    error: ErrorCode
    assignment: bytes = b""
    coordinator_epoch: int = -1


class HeartbeatRequest(Struct, frozen=True, kw_only=True, gc=False):
    """I am here."""

    correlation_id: int
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class HeartbeatResponse(Struct, frozen=True, kw_only=True, gc=False):
    """REBALANCE_IN_PROGRESS: join again."""

    correlation_id: int
    error: ErrorCode


class LeaveGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    """A member goes, and says so."""

    correlation_id: int
    group_id: str
    member_id: str
    group_instance_id: str | None


class LeaveGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    """It is gone."""

    correlation_id: int
    error: ErrorCode


class CommittedOffset(Struct, frozen=True, kw_only=True, gc=False):
    """The next offset to process of one partition, -1 for none. leader_epoch: of the last record before it
    (-1: not told)."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class OffsetCommitRequest(Struct, frozen=True, kw_only=True, gc=False):
    """All offsets or none of them are committed: they are one batch."""

    correlation_id: int
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    offsets: tuple[CommittedOffset, ...]


class OffsetCommitResponse(Struct, frozen=True, kw_only=True, gc=False):
    """appended: the coordinator wrote before it met the error, so that the commit may come to pass.
    coordinator_epoch: leader epoch of the offsets partition in which the coordinator answers."""

    correlation_id: int
    error: ErrorCode
    appended: bool = False
    coordinator_epoch: int = -1


class OffsetFetchRequest(Struct, frozen=True, kw_only=True, gc=False):
    """partitions: empty for all that have one."""

    correlation_id: int
    group_id: str
    partitions: tuple[TopicPartition, ...] = ()
    require_stable: bool = False
    """Refuse while a transaction that has not ended commits one of them (KIP-447)."""


class OffsetFetchResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One answer per partition asked for, in that order. coordinator_epoch as in OffsetCommitResponse."""

    correlation_id: int
    error: ErrorCode
    offsets: tuple[CommittedOffset, ...] = ()
    coordinator_epoch: int = -1


class ListGroupsRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Ask one broker for the groups that it coordinates."""

    correlation_id: int


class ListGroupsResponse(Struct, frozen=True, kw_only=True, gc=False):
    """groups: (group id, protocol type, state)."""

    correlation_id: int
    error: ErrorCode
    groups: tuple[tuple[str, str, str], ...] = ()


class DescribeGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Ask a group's coordinator for all about it."""

    correlation_id: int
    group_id: str


class MemberDescription(Struct, frozen=True, kw_only=True, gc=False):
    """assignment: as the leader made it, b"" while there is none; so is the subscription under the group's
    protocol. client_host: where the member joined from, as Kafka writes it: /127.0.0.1."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    assignment: bytes
    subscription: bytes = b""
    client_host: str = ""


class DescribeGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    """A group that nobody knows is Dead."""

    correlation_id: int
    error: ErrorCode
    state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    generation_id: int = NO_GENERATION
    members: tuple[MemberDescription, ...] = ()


class DeleteGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Ask a group's coordinator to forget it, with all its offsets (KIP-229)."""

    correlation_id: int
    group_id: str


class DeleteGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    """NON_EMPTY_GROUP while it has members."""

    correlation_id: int
    error: ErrorCode


class OffsetDeleteRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Ask a group's coordinator to forget what it committed for these partitions (KIP-496)."""

    correlation_id: int
    group_id: str
    partitions: tuple[TopicPartition, ...]


class OffsetDeleteResponse(Struct, frozen=True, kw_only=True, gc=False):
    """error: of the group as a whole; then there are no results. results: of each partition."""

    correlation_id: int
    error: ErrorCode
    results: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


GroupRequest = (
    FindCoordinatorRequest
    | JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | ListGroupsRequest
    | DescribeGroupRequest
    | DeleteGroupRequest
    | OffsetDeleteRequest
)
GroupResponse = (
    FindCoordinatorResponse
    | JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | ListGroupsResponse
    | DescribeGroupResponse
    | DeleteGroupResponse
    | OffsetDeleteResponse
)
