"""Bugs of static members."""

from fencepost.impl.coordinator.consumer_group import Group, Member
from fencepost.impl.coordinator.member_requests import GroupMembership
from fencepost.impl.messages.group_api import JoinGroupRequest
from fencepost.traces.kafka_names.outcomes import ErrorCode


class KeepsNewIdsInMemory(GroupMembership):
    """KAFKA-10284: the new id of a static member that came back is answered, and not written: the next
    coordinator fences it."""

    def persist_static_member(self, group: Group, member: Member, leader: str) -> None:
        """Tell it at once."""
        self._persisted(group, member, member.member_id, leader, ErrorCode.NONE, -1)


class ReplacesOnlyWhenStable(GroupMembership):
    """KAFKA-8500: a static member that comes back during a rebalance is in the group twice."""

    def replace_static_member(self, group: Group, instance: str) -> bool:
        """Only in a stable group."""
        return group.phase == "Stable" and super().replace_static_member(group, instance)


class WaitsForTheAssignment(GroupMembership):
    """KAFKA-12890: the assignment of a generation is waited for as long as the leader's heartbeats come."""

    def await_assignment(self, group: Group) -> None:
        """No timer."""


class KeepsFormerTimeouts(GroupMembership):
    """KAFKA-14009: a static member that is back with other time-outs keeps those of its former process."""

    def take_timeouts(self, member: Member, request: JoinGroupRequest) -> None:
        """Only those of a process that is known already."""
        if request.member_id:
            super().take_timeouts(member, request)
