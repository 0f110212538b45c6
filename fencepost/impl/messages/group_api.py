"""Requests and responses of consumer groups, named as in Kafka. broker_api.py has the other messages and the
common parts.

Subscriptions and assignments are bytes in Kafka's consumer protocol (client/consumer_protocol.py); the
coordinator does not decode them. generation_id -1: no member, for example an offset commit of a consumer that
assigns partitions itself. group_instance_id: of a static member (KIP-345).
"""

from msgspec import Struct

from fencepost.impl.messages.correlation import Answered, Correlated
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode

NO_GENERATION = -1
NO_MEMBER = ""
NO_OFFSET = -1
"""The committed offset if nothing is committed."""


class FindCoordinatorRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask any broker who coordinates a group, or the transactions of a transactional id."""

    group_id: str
    # group_id is a transactional id.
    transactional: bool = False


class FindCoordinatorResponse(Answered, frozen=True, kw_only=True, gc=False):
    """node: the leader of the group's partition of __consumer_offsets, in the broker's metadata."""

    node: int = -1


class JoinGroupRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Join a group."""

    # The group.
    group_id: str
    # The client id; the member id begins with it.
    client_id: str
    # session.timeout.ms of the member.
    session_timeout_ms: int
    # How long the coordinator waits for the member in a rebalance.
    rebalance_timeout_ms: int
    # The member id; "" before the coordinator has assigned one.
    member_id: str
    # group.instance.id of a static member; None for a dynamic one.
    group_instance_id: str | None
    # "consumer" for consumers; all members of a group have the same.
    protocol_type: str
    # (name of an assignor, subscription), in the order of preference.
    protocols: tuple[tuple[str, bytes], ...]
    # As in MemberDescription; "" if it is not known.
    client_host: str = ""
    # Whether it knows `skip_assignment` (KIP-814, version 9).
    may_skip_assignment: bool = True


class JoinGroupResponse(Answered, frozen=True, kw_only=True, gc=False):
    """The response to a join, sent when the rebalance is complete."""

    # The new generation.
    generation_id: int = NO_GENERATION
    # The assignor that the coordinator chose.
    protocol_name: str = ""
    # The member id of the group's leader.
    leader: str = ""
    # The member id of the receiver; also sent with MEMBER_ID_REQUIRED.
    member_id: str = ""
    # (member id, subscription) of all members; only in the leader's response.
    members: tuple[tuple[str, bytes], ...] = ()
    # (member id, group.instance.id) of the static members in `members`.
    instances: tuple[tuple[str, str], ...] = ()
    # The leader keeps the assignment that the group has (KIP-814).
    skip_assignment: bool = False


class SyncGroupRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Send the leader's assignments, or wait for them."""

    # The group.
    group_id: str
    # The generation of the sender.
    generation_id: int
    # The member id of the sender.
    member_id: str
    # group.instance.id of a static member; None for a dynamic one.
    group_instance_id: str | None
    # (member id, assignment) of all members; only from the leader.
    assignments: tuple[tuple[str, bytes], ...] = ()


class SyncGroupResponse(Answered, frozen=True, kw_only=True, gc=False):
    """assignment: of the member that asked. coordinator_epoch: as in OffsetCommitResponse."""

    assignment: bytes = b""
    coordinator_epoch: int = -1


class HeartbeatRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Keep the session of a member alive."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class HeartbeatResponse(Answered, frozen=True, kw_only=True, gc=False):
    """REBALANCE_IN_PROGRESS: the member must join again."""


class LeaveGroupRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """A member leaves its group."""

    group_id: str
    member_id: str
    group_instance_id: str | None


class LeaveGroupResponse(Answered, frozen=True, kw_only=True, gc=False):
    """The member has left, or the error."""


class CommittedOffset(Struct, frozen=True, kw_only=True, gc=False):
    """The next offset to process of one partition, -1 for none."""

    partition: TopicPartition
    offset: int
    # Of the last record before it (-1: not known).
    leader_epoch: int = -1
    metadata: str = ""


class OffsetCommitRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Commit offsets. Either all of them are committed or none, because they are one batch."""

    # The group.
    group_id: str
    # The generation of the sender; -1 if it is no member.
    generation_id: int
    # The member id of the sender; "" if it is no member.
    member_id: str
    # group.instance.id of a static member; None for a dynamic one.
    group_instance_id: str | None
    # The offsets to commit.
    offsets: tuple[CommittedOffset, ...]


class OffsetCommitResponse(Answered, frozen=True, kw_only=True, gc=False):
    """appended: the coordinator wrote the records before the error, so the commit may still take effect.
    coordinator_epoch: the leader epoch of the offsets partition in which the coordinator answers."""

    appended: bool = False
    coordinator_epoch: int = -1


class OffsetFetchRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """partitions: empty for all that have a committed offset."""

    group_id: str
    partitions: tuple[TopicPartition, ...] = ()
    # Refuse while a transaction that has not ended commits one of them (KIP-447).
    require_stable: bool = False


class OffsetFetchResponse(Answered, frozen=True, kw_only=True, gc=False):
    """One result per requested partition, in the same order."""

    offsets: tuple[CommittedOffset, ...] = ()
    # As in OffsetCommitResponse.
    coordinator_epoch: int = -1


class ListGroupsRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask one broker for the groups that it coordinates."""


class ListGroupsResponse(Answered, frozen=True, kw_only=True, gc=False):
    """groups: (group id, protocol type, state)."""

    groups: tuple[tuple[str, str, str], ...] = ()


class DescribeGroupRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask a group's coordinator for the description of the group."""

    group_id: str


class MemberDescription(Struct, frozen=True, kw_only=True, gc=False):
    """A member of a group."""

    # The member id.
    member_id: str
    # group.instance.id of a static member; None for a dynamic one.
    group_instance_id: str | None
    # The client id.
    client_id: str
    # The assignment from the group's leader; b"" before there is one.
    assignment: bytes
    # The subscription under the group's protocol; b"" before there is one.
    subscription: bytes = b""
    # The host that the member joined from, as Kafka writes it: /127.0.0.1.
    client_host: str = ""


class DescribeGroupResponse(Answered, frozen=True, kw_only=True, gc=False):
    """The description of a group."""

    # The group's state in Kafka's names; Dead for an unknown group.
    state: str = ""
    # "consumer" for consumers.
    protocol_type: str = ""
    # The assignor; "" if there is none yet.
    protocol_name: str = ""
    # The current generation.
    generation_id: int = NO_GENERATION
    # The members.
    members: tuple[MemberDescription, ...] = ()


class DeleteGroupRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask a group's coordinator to delete the group with all its offsets (KIP-229)."""

    group_id: str


class DeleteGroupResponse(Answered, frozen=True, kw_only=True, gc=False):
    """NON_EMPTY_GROUP if it has members."""


class OffsetDeleteRequest(Correlated, frozen=True, kw_only=True, gc=False):
    """Ask a group's coordinator to delete the committed offsets of these partitions (KIP-496)."""

    group_id: str
    partitions: tuple[TopicPartition, ...]


class OffsetDeleteResponse(Answered, frozen=True, kw_only=True, gc=False):
    """error: of the whole request; then there are no results."""

    # One per partition.
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
