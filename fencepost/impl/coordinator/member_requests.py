"""Members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (P3).

Owns the admission of members, and the meaning of each request in each state:

    Empty, Stable --a member comes or goes--> PreparingRebalance
        all members have to join again
    PreparingRebalance --all have joined, or the time is over--> CompletingRebalance
        a new generation; its leader gets the list of members
    CompletingRebalance --the leader's assignment is durable--> Stable
        all members get their assignments

Must not know offsets, or how a state ends: rebalance.py does.
"""

from functools import partial

from attrs import define
from msgspec import structs

from fencepost.impl.coordinator.consumer_group import Group, Member, Waiting, member_id_of
from fencepost.impl.coordinator.group_records import fits
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.coordinator.rebalance import STORE_ERRORS, Rebalances
from fencepost.impl.messages import group_api as kafka
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

LONGEST_ID_SUFFIX = 64
"""The longest suffix of a member id: three numbers of 64 bits and their hyphens."""
LONGEST_TIMEOUT_MS = (1 << 31) - 1
"""The largest int32: the field's type in Kafka's protocol."""


@define
class GroupMembership(Rebalances):
    """Membership of all groups of this broker."""

    # The number of ids that this process has assigned.
    last_member: int = 0

    # ---- JoinGroup

    def join(self, source: int, request: kafka.JoinGroupRequest) -> None:
        """Handle JoinGroup. The response is sent when the next generation is known.

        Args:
            source: the client.
            request: the request.
        """
        waiting = Waiting(source, request.correlation_id)
        group, error = self._joinable(request)
        if group is None or error is not NO_ERROR:
            self.refuse_join(waiting, error, request.member_id)
        elif not request.member_id:
            self._join_without_id(group, waiting, request)
        elif request.member_id in group.pending:
            del group.pending[request.member_id]
            self._add(group, waiting, request, request.member_id)
        else:
            self._join_again(group, waiting, request)

    def _joinable(self, request: kafka.JoinGroupRequest) -> tuple[Group | None, ErrorCode]:
        options = self.table.broker_context.options.groups
        if not request.group_id or not fits(request.group_id):
            return None, ErrorCode.INVALID_GROUP_ID
        names = (
            request.client_id,
            request.group_instance_id,
            request.protocol_type,
            *dict(request.protocols),
        )
        if (
            not fits(*names, room=LONGEST_ID_SUFFIX)
            or not 0 < request.rebalance_timeout_ms <= LONGEST_TIMEOUT_MS
        ):
            return None, ErrorCode.INVALID_REQUEST
        error = self.log.not_coordinator(self.table.number_of(request.group_id))
        if error is not NO_ERROR:
            return None, error
        if not options.min_session_timeout_ms <= request.session_timeout_ms <= options.max_session_timeout_ms:
            return None, ErrorCode.INVALID_SESSION_TIMEOUT
        group = self.table.groups.get(request.group_id)
        if group is None:
            if request.member_id:
                return None, ErrorCode.UNKNOWN_MEMBER_ID
            group = self.table.create(request.group_id)
        if group.phase is GroupPhase.DEAD:
            return None, ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not self.has_common_protocol(group, request):
            return group, ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return group, NO_ERROR

    def has_common_protocol(self, group: Group, request: kafka.JoinGroupRequest) -> bool:
        """Protection P3-LISTS: members of a rolling upgrade name two assignors, and it is enough that all
        name one of them, wherever it stands in their lists.

        Args:
            group: the group.
            request: of who wants to join.

        Returns:
            whether it may join.
        """
        return group.accepts(request.protocol_type, request.protocols)

    def _join_without_id(self, group: Group, waiting: Waiting, request: kafka.JoinGroupRequest) -> None:
        instance = request.group_instance_id
        self.last_member += 1
        broker_context = self.table.broker_context
        member_id = member_id_of(
            instance or request.client_id,
            node=broker_context.node,
            broker_epoch=broker_context.broker_epoch,
            number=self.last_member,
        )
        if instance is None:
            # KIP-394: assign an id first. A request with a lost response then leaves no unknown member.
            group.pending[member_id] = None
            broker_context.set_timer(self.session_timer(group, member_id), request.session_timeout_ms)
            self.refuse_join(waiting, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        elif self.replace_static_member(group, instance):
            self._replace(group, waiting, request, member_id)
        else:
            self._add(group, waiting, request, member_id)

    def _add(self, group: Group, waiting: Waiting, request: kafka.JoinGroupRequest, member_id: str) -> None:
        self.table.broker_context.cancel_timer(self.session_timer(group, member_id))
        member = Member(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
            client_host=request.client_host,
            join=waiting,
        )
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        self.prepare(group, f"{member_id} joins")

    def _join_again(self, group: Group, waiting: Waiting, request: kafka.JoinGroupRequest) -> None:
        error = group.identity_error(request.member_id, request.group_instance_id)
        if error is not NO_ERROR:
            self.refuse_join(waiting, error, request.member_id)
            return
        member = group.members[request.member_id]
        same = member.protocols == request.protocols
        member.join, member.protocols = waiting, request.protocols
        self.take_timeouts(member, request)
        if group.phase is GroupPhase.COMPLETING and same:
            self.answer_join(group, member)  # its response was lost
        elif group.phase is GroupPhase.STABLE and same and member.member_id != group.leader:
            self.answer_join(group, member)
        elif group.phase is GroupPhase.PREPARING:
            self._complete_if_all_have_joined(group)
        else:
            self.prepare(group, f"{member.member_id} joins again")

    def take_timeouts(self, member: Member, request: kafka.JoinGroupRequest) -> None:
        """Protection KAFKA-14009: a member has the time-outs of its last JoinGroup, a static member that is
        back too.

        Args:
            member: who joins again, or is back.
            request: its JoinGroup.
        """
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms

    # ---- static members (KIP-345)

    def replace_static_member(self, group: Group, instance: str) -> bool:
        """Protection KAFKA-8500: a static member that comes back takes the place of its instance id, in any
        phase of the group. A member is never in it twice."""
        return instance in group.static

    def _replace(
        self, group: Group, waiting: Waiting, request: kafka.JoinGroupRequest, member_id: str
    ) -> None:
        instance = request.group_instance_id
        assert instance is not None
        before = group.static[instance]
        member = group.members[before]
        self._answer_waiting(member, ErrorCode.FENCED_INSTANCE_ID)
        self.table.broker_context.cancel_timer(self.session_timer(group, before))
        leader = group.leader
        group.rename(member, member_id)
        same = member.subscription(group.protocol or "") == dict(request.protocols).get(group.protocol or "")
        member.join, member.protocols = waiting, request.protocols
        self.take_timeouts(member, request)
        self.heard(group, member_id)
        if group.phase is GroupPhase.STABLE and same:
            named = group.leader if request.may_skip_assignment else leader
            self.persist_static_member(group, member, named or "")
        elif group.phase is GroupPhase.PREPARING:
            self._complete_if_all_have_joined(group)
        else:
            self.prepare(group, f"{instance} is back")

    def persist_static_member(self, group: Group, member: Member, leader: str) -> None:
        """Protection KAFKA-10284: the new id is written before it is sent, so that the next coordinator knows
        it, too.

        Args:
            group: the group.
            member: the static member with its new id.
            leader: the member id of the leader in the response.
        """
        assignments = {known.member_id: known.assignment for known in group.members.values()}
        done = partial(self._persisted, group, member, member.member_id, leader)
        self.log.store(group, self.table.epoch_of(group), assignments, done)

    def _persisted(
        self, group: Group, member: Member, member_id: str, leader: str, error: ErrorCode, _: int
    ) -> None:
        if member.join is None or self.table.groups.get(group.group_id) is not group:
            return
        if member.member_id != member_id:  # yet another process took its place, and waits for its own id
            return
        if error is not NO_ERROR:
            waiting, member.join = member.join, None
            self.refuse_join(waiting, STORE_ERRORS.get(error, error), member.member_id)
        elif group.phase is GroupPhase.STABLE:
            # no new assignment is made, even if it led: it leads on (KIP-814), or becomes a follower
            self.answer_join(group, member, leader)
        else:
            self._complete_if_all_have_joined(group)

    # ---- SyncGroup, Heartbeat, LeaveGroup

    def _member(self, group_id: str, member_id: str, instance: str | None) -> tuple[Group | None, ErrorCode]:
        error = self.log.not_coordinator(self.table.number_of(group_id))
        if error is not NO_ERROR:
            return None, error
        group = self.table.groups.get(group_id)
        if group is None:
            return None, ErrorCode.UNKNOWN_MEMBER_ID
        return group, group.identity_error(member_id, instance)

    def while_loading(self, error: ErrorCode, instead: ErrorCode) -> ErrorCode:
        """The error of a SyncGroup or Heartbeat while the group is loading.

        Clients do not expect COORDINATOR_LOAD_IN_PROGRESS here and may give up. Apache Kafka makes a member
        join again, and answers a heartbeat with no error (GroupCoordinator, 0.9 to 4.x).

        Args:
            error: the error.
            instead: the replacement for COORDINATOR_LOAD_IN_PROGRESS.

        Returns:
            the error to send.
        """
        return instead if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error

    def sync(self, source: int, request: kafka.SyncGroupRequest) -> None:
        """Handle SyncGroup. The response is sent when the generation's assignment is durable.

        Args:
            source: the client.
            request: the request.
        """
        waiting = Waiting(source, request.correlation_id)
        group, error = self._member(request.group_id, request.member_id, request.group_instance_id)
        if group is None or error is not NO_ERROR:
            self.refuse_sync(waiting, self.while_loading(error, ErrorCode.REBALANCE_IN_PROGRESS))
            return
        member = group.members[request.member_id]
        if request.generation_id != group.generation:
            self.refuse_sync(waiting, ErrorCode.ILLEGAL_GENERATION)
        elif group.phase is GroupPhase.STABLE:
            member.sync = waiting
            self.answer_sync(group, member)
        elif group.phase is GroupPhase.COMPLETING:
            member.sync = waiting
            self.heard(group, member.member_id)
            if group.leader == member.member_id:
                self.assign(group, dict(request.assignments))
        else:
            self.refuse_sync(waiting, ErrorCode.REBALANCE_IN_PROGRESS)

    def heartbeat(self, source: int, request: kafka.HeartbeatRequest) -> None:
        """Handle Heartbeat: the member is alive. The response says whether its generation is current.

        Args:
            source: the client.
            request: the request.
        """
        group, error = self._member(request.group_id, request.member_id, request.group_instance_id)
        if group is not None and error is NO_ERROR:
            if request.generation_id != group.generation:
                error = ErrorCode.ILLEGAL_GENERATION
            else:
                self.heard(group, request.member_id)
                if group.phase is GroupPhase.PREPARING:
                    error = ErrorCode.REBALANCE_IN_PROGRESS
        error = self.while_loading(error, NO_ERROR)
        response = kafka.HeartbeatResponse(correlation_id=request.correlation_id, error=error)
        self.table.broker_context.reply(source, response, request.correlation_id)

    def leave(self, source: int, request: kafka.LeaveGroupRequest) -> None:
        """Handle LeaveGroup: the others need not wait for the session timeout. An instance id without a
        member id means its current member (KIP-345: an operator removes a static member).

        Args:
            source: the client.
            request: the request.
        """
        group, error = self._member(request.group_id, request.member_id, request.group_instance_id)
        if group is not None and request.group_instance_id is not None and not request.member_id:
            known = group.static.get(request.group_instance_id)
            if known is not None:
                request, error = structs.replace(request, member_id=known), NO_ERROR
        response = kafka.LeaveGroupResponse(correlation_id=request.correlation_id, error=error)
        if group is not None and request.member_id in group.pending:
            response = kafka.LeaveGroupResponse(correlation_id=request.correlation_id, error=NO_ERROR)
            self.on_session(group.group_id, request.member_id)
        elif group is not None and error is NO_ERROR:
            self.part_with(group, group.members[request.member_id])
        self.table.broker_context.reply(source, response, request.correlation_id)

    def part_with(self, group: Group, member: Member) -> None:
        """Protection P3-LEFT: a member whose LeaveGroup is answered without an error is none any more, and
        the others rebalance at once.

        Args:
            group: the group.
            member: who leaves.
        """
        self.remove(group, member, f"{member.member_id} leaves")
