"""Bugs of joining: who may be a member of a group."""

from msgspec.structs import replace

from fencepost.impl.coordinator.consumer_group import Group, Member
from fencepost.impl.coordinator.member_requests import GroupMembership
from fencepost.impl.messages.group_api import JoinGroupRequest


class ComparesFirstAssignors(GroupMembership):
    """P3-LISTS: only the assignor that a member names first counts, so that a rolling upgrade, in which the
    new members name the old one second, refuses them."""

    def has_common_protocol(self, group: Group, request: JoinGroupRequest) -> bool:
        """As if it had named one."""
        return super().has_common_protocol(group, replace(request, protocols=request.protocols[:1]))


class KeepsWhoLeft(GroupMembership):
    """P3-LEFT: who leaves is answered, and stays a member until its session ends."""

    def part_with(self, group: Group, member: Member) -> None:
        """Its silence will do."""
