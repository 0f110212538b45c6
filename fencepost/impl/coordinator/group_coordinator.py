"""The group coordinator of one broker: it passes requests and timers of consumer groups to the responsible
part.

Owns the wiring, FindCoordinator, and the descriptions of groups. Must not know any rule. Kafka's
GroupCoordinator and GroupMetadataManager in one.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.impl.coordinator.committed_offsets import EXPIRY_TIMER, GroupOffsets
from fencepost.impl.coordinator.deletion import GroupDeletion
from fencepost.impl.coordinator.group_loading import GroupLoading
from fencepost.impl.coordinator.group_log import APPEND_TIMER, GroupLog
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.coordinator.group_table import GroupTable
from fencepost.impl.coordinator.internal_topic import InternalTopic
from fencepost.impl.coordinator.member_requests import GroupMembership
from fencepost.impl.coordinator.rebalance import JOIN_TIMER, SESSION_TIMER, SYNC_TIMER
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.replication.partition import Partition
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode


@define
class GroupCoordinator:
    """topic: __consumer_offsets."""

    # The groups, and the state of each offsets partition.
    table: GroupTable
    # Appends to __consumer_offsets.
    log: GroupLog
    # Loads and unloads groups.
    loading: GroupLoading
    # JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
    membership: GroupMembership
    # Committed offsets.
    offsets: GroupOffsets
    # The metadata from UpdateMetadata.
    metadata: MetadataCache
    topic: InternalTopic
    started: bool = False
    # The handler of each class of requests.
    handlers: dict[type, Callable[[int, Any], None]] = field(factory=dict)
    # The handler of each timer, by the first element of its key.
    timers: dict[str | int, Callable[..., None]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.loading.on_loaded.append(self.membership.loaded)
        self.loading.on_unload.append(self.membership.unloaded)
        deletion = GroupDeletion(self.table, self.log, self.offsets, self.metadata)
        self.handlers = {
            kafka.FindCoordinatorRequest: self.find,
            kafka.JoinGroupRequest: self.membership.join,
            kafka.SyncGroupRequest: self.membership.sync,
            kafka.HeartbeatRequest: self.membership.heartbeat,
            kafka.LeaveGroupRequest: self.membership.leave,
            kafka.OffsetCommitRequest: self.offsets.commit,
            kafka.OffsetFetchRequest: self.offsets.fetch,
            kafka.ListGroupsRequest: self.list_groups,
            kafka.DescribeGroupRequest: self.describe,
            kafka.DeleteGroupRequest: deletion.delete_group,
            kafka.OffsetDeleteRequest: deletion.delete_offsets,
        }
        self.timers = {
            APPEND_TIMER: self.log.expire,
            **self.loading.timers,
            JOIN_TIMER: self.membership.on_join_timer,
            SYNC_TIMER: self.membership.on_sync_timer,
            SESSION_TIMER: self.membership.on_session,
            EXPIRY_TIMER[0]: self.offsets.expire,
        }

    def moved(self, partition: Partition) -> None:
        """A replica's role or high watermark may have changed. Replicas of other topics are ignored."""
        if partition.key.topic != OFFSETS_TOPIC:
            return
        if not self.started:
            self.started = True
            self.offsets.start()
        self.log.moved(partition)
        self.loading.moved(partition)

    def find(self, source: int, request: kafka.FindCoordinatorRequest) -> None:
        """Answer who coordinates a group.

        Args:
            source: the node that asks.
            request: names the group.
        """
        self.topic.find(source, request, self.table.number_of(request.group_id))

    # ---- descriptions of groups

    def list_groups(self, source: int, request: kafka.ListGroupsRequest) -> None:
        """Answer with the groups that this broker coordinates.

        Args:
            source: the client.
            request: the request.
        """
        groups = tuple(
            (group_id, group.protocol_type, group.phase.value)
            for group_id, group in sorted(self.table.groups.items())
            if self.log.not_coordinator(group.number) is NO_ERROR
        )
        loading = any(place.load is not None for place in self.table.places.values())
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else NO_ERROR
        response = kafka.ListGroupsResponse(correlation_id=request.correlation_id, error=error, groups=groups)
        self.table.broker_context.reply(source, response, request.correlation_id)

    def describe(self, source: int, request: kafka.DescribeGroupRequest) -> None:
        """Answer with the description of one group.

        Args:
            source: the client.
            request: the group.
        """
        error = self.log.not_coordinator(self.table.number_of(request.group_id))
        response = kafka.DescribeGroupResponse(correlation_id=request.correlation_id, error=error)
        if error is NO_ERROR:
            response = self._description(request)
        self.table.broker_context.reply(source, response, request.correlation_id)

    def _description(self, request: kafka.DescribeGroupRequest) -> kafka.DescribeGroupResponse:
        group = self.table.groups.get(request.group_id)
        if group is None:
            return kafka.DescribeGroupResponse(
                correlation_id=request.correlation_id, error=NO_ERROR, state=GroupPhase.DEAD.value
            )
        stable = group.phase is GroupPhase.STABLE
        return kafka.DescribeGroupResponse(
            correlation_id=request.correlation_id,
            error=NO_ERROR,
            state=group.phase.value,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol or "" if stable else "",
            generation_id=group.generation,
            members=tuple(
                kafka.MemberDescription(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    assignment=member.assignment if stable else b"",
                    subscription=member.subscription(group.protocol or "") if stable else b"",
                    client_host=member.client_host,
                )
                for member in group.members.values()
            ),
        )
