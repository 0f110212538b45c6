"""A rebalance, from a change of membership until all members have their assignments.

Owns the states of a group and their timeouts. Must not know the requests and their reasons:
member_requests.py does. Static members that do not join stay in the group until their session ends (KIP-345).
"""

from functools import partial

from attrs import define

from fencepost.impl.coordinator.consumer_group import Group, Member, Waiting
from fencepost.impl.coordinator.group_log import GroupLog, nobody_waits
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.coordinator.group_table import GroupTable
from fencepost.impl.messages import group_api as kafka
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

JOIN_TIMER, SYNC_TIMER, SESSION_TIMER = "group_join", "group_sync", "group_session"
STORE_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The members' error for each error of writing an assignment."""


@define
class Rebalances:
    """Rebalances of all groups of this broker."""

    table: GroupTable
    log: GroupLog

    # ---- sessions

    def session_timer(self, group: Group, member_id: str) -> tuple[str, str, str]:
        """The timer of a member's session, or of an assigned id.

        Args:
            group: the group.
            member_id: the member id.

        Returns:
            the key of the timer.
        """
        return (SESSION_TIMER, group.group_id, member_id)

    def heard(self, group: Group, member_id: str) -> None:
        """A member is alive: restart its session.

        Args:
            group: the group.
            member_id: the member id.
        """
        member = group.members.get(member_id)
        if member is not None:
            self.table.broker_context.set_timer(
                self.session_timer(group, member_id), member.session_timeout_ms
            )

    def on_session(self, group_id: str, member_id: str) -> None:
        """A session timed out. A member with a waiting request cannot send another one, so it does not count
        as silent.

        Args:
            group_id: the group.
            member_id: the member id.
        """
        group = self.table.groups.get(group_id)
        if group is None:
            return
        if member_id in group.pending:
            del group.pending[member_id]
            self._complete_if_all_have_joined(group)
            return
        member = group.members.get(member_id)
        if member is None:
            return
        if member.join is not None or member.sync is not None:
            self.heard(group, member_id)
        else:
            self.remove(group, member, f"the session of {member_id} has ended")

    def remove(self, group: Group, member: Member, why: str) -> None:
        """Remove a member; the others rebalance."""
        self._answer_waiting(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self.table.broker_context.cancel_timer(self.session_timer(group, member.member_id))
        group.remove(member)
        if group.phase in (GroupPhase.STABLE, GroupPhase.COMPLETING):
            self.prepare(group, why)
        else:
            self._complete_if_all_have_joined(group)

    # ---- joining

    def prepare(self, group: Group, why: str) -> None:
        """Start a rebalance: all members have to join again. If one is already being prepared, it waits for
        one more member.

        Args:
            group: the group.
            why: the reason, for the event.
        """
        broker_context = self.table.broker_context
        if group.phase is GroupPhase.PREPARING:
            group.newcomer = True
            self._complete_if_all_have_joined(group)
            return
        if group.phase is GroupPhase.COMPLETING:
            self._void_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        delay_ms = broker_context.options.groups.initial_rebalance_delay_ms
        group.delaying = group.phase is GroupPhase.EMPTY and delay_ms > 0
        wait_ms = group.rebalance_timeout_ms()
        if group.delaying:
            group.newcomer, group.remaining_ms = False, max(0, wait_ms - delay_ms)
            wait_ms = min(delay_ms, wait_ms)
        self.table.move(group, GroupPhase.PREPARING, why)
        broker_context.set_timer((JOIN_TIMER, group.group_id), wait_ms)
        self._complete_if_all_have_joined(group)

    def _complete_if_all_have_joined(self, group: Group) -> None:
        if group.phase is GroupPhase.PREPARING and not group.delaying and group.all_have_joined():
            self.complete_join(group)

    def on_join_timer(self, group_id: str) -> None:
        """The time to join is over, or the delay of an empty group; the delay is extended while members
        come."""
        group = self.table.groups.get(group_id)
        if group is None or group.phase is not GroupPhase.PREPARING:
            return
        if group.delaying and group.newcomer and group.remaining_ms > 0:
            wait_ms = min(
                self.table.broker_context.options.groups.initial_rebalance_delay_ms, group.remaining_ms
            )
            group.newcomer, group.remaining_ms = False, group.remaining_ms - wait_ms
            self.table.broker_context.set_timer((JOIN_TIMER, group_id), wait_ms)
            return
        self.complete_join(group)

    def complete_join(self, group: Group) -> None:
        """Remove members that have not joined (a static member stays until its session ends) and begin a new
        generation."""
        group.delaying = False
        for member in list(group.members.values()):
            if member.join is None and member.group_instance_id is None:
                self.table.broker_context.cancel_timer(self.session_timer(group, member.member_id))
                group.remove(member)
        if group.members and not group.elect_joined_leader():
            self.table.broker_context.set_timer((JOIN_TIMER, group.group_id), group.rebalance_timeout_ms())
            return
        self.table.broker_context.cancel_timer((JOIN_TIMER, group.group_id))
        group.generation += 1
        if not group.members:
            group.protocol = None
            self.table.move(group, GroupPhase.EMPTY, "nobody is left")
            self.log.store(group, self.table.epoch_of(group), {}, nobody_waits)
            return
        group.protocol = group.choose_protocol()
        self.table.move(group, GroupPhase.COMPLETING, "all have joined")
        for member in group.members.values():
            if member.join is not None:
                self.answer_join(group, member)
            self.heard(group, member.member_id)
        self.await_assignment(group)

    def await_assignment(self, group: Group) -> None:
        """Protection KAFKA-12890: the wait for the assignment is limited to the rebalance timeout."""
        self.table.broker_context.set_timer((SYNC_TIMER, group.group_id), group.rebalance_timeout_ms())

    def answer_join(self, group: Group, member: Member, leader: str | None = None) -> None:
        """Send the response to JoinGroup; the leader gets the list of members. leader: named in the response
        if the group keeps its assignment; None: the member that will send a new one."""
        assert member.join is not None
        waiting, member.join = member.join, None
        named = group.leader or "" if leader is None else leader
        leads = member.member_id == named
        response = kafka.JoinGroupResponse(
            correlation_id=waiting.correlation_id,
            error=NO_ERROR,
            generation_id=group.generation,
            protocol_name=group.protocol or "",
            leader=named,
            member_id=member.member_id,
            members=group.subscriptions() if leads else (),
            instances=tuple((known, name) for name, known in group.static.items()) if leads else (),
            skip_assignment=leads and leader is not None,
        )
        self.table.broker_context.reply(waiting.source, response, waiting.correlation_id)

    # ---- the assignment

    def assign(self, group: Group, assignments: dict[str, bytes]) -> None:
        """The leader has sent the assignments; all members get theirs once that is durable.

        Args:
            group: the group.
            assignments: the assignment of each member.
        """
        known = {member_id: assignments.get(member_id, b"") for member_id in group.members}
        done = partial(self._assigned, group, group.generation, known)
        self.log.store(group, self.table.epoch_of(group), known, done)

    def _assigned(
        self, group: Group, generation: int, assignments: dict[str, bytes], error: ErrorCode, _: int
    ) -> None:
        current = self.table.groups.get(group.group_id) is group and group.generation == generation
        if not current or group.phase is not GroupPhase.COMPLETING:
            return
        if error is not NO_ERROR:
            self._void_assignment(group, STORE_ERRORS.get(error, error))
            self.prepare(group, f"the assignment was not written: {error}")
            return
        self.table.broker_context.cancel_timer((SYNC_TIMER, group.group_id))
        self.table.move(group, GroupPhase.STABLE, "assigned")
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.sync is not None:
                self.answer_sync(group, member)

    def answer_sync(self, group: Group, member: Member) -> None:
        """Send the response to SyncGroup.

        Args:
            group: the group.
            member: the member with a waiting SyncGroup.
        """
        assert member.sync is not None
        waiting, member.sync = member.sync, None
        self.heard(group, member.member_id)
        response = kafka.SyncGroupResponse(
            correlation_id=waiting.correlation_id,
            error=NO_ERROR,
            assignment=member.assignment,
            coordinator_epoch=self.table.epoch_of(group),
        )
        self.table.broker_context.reply(waiting.source, response, waiting.correlation_id)

    def refuse_sync(self, waiting: Waiting, error: ErrorCode) -> None:
        """Answer a SyncGroup with an error.

        Args:
            waiting: the request.
            error: the error.
        """
        response = kafka.SyncGroupResponse(correlation_id=waiting.correlation_id, error=error)
        self.table.broker_context.reply(waiting.source, response, waiting.correlation_id)

    def refuse_join(self, waiting: Waiting, error: ErrorCode, member_id: str = "") -> None:
        """Answer a JoinGroup with an error.

        Args:
            waiting: the request.
            error: the error.
            member_id: the member id in the response.
        """
        response = kafka.JoinGroupResponse(
            correlation_id=waiting.correlation_id, error=error, member_id=member_id
        )
        self.table.broker_context.reply(waiting.source, response, waiting.correlation_id)

    def _void_assignment(self, group: Group, error: ErrorCode) -> None:
        self.table.broker_context.cancel_timer((SYNC_TIMER, group.group_id))
        for member in group.members.values():
            member.assignment = b""
            if member.sync is not None:
                waiting, member.sync = member.sync, None
                self.refuse_sync(waiting, error)

    def on_sync_timer(self, group_id: str) -> None:
        """The assignment did not come in time: members that have not asked for it are removed."""
        group = self.table.groups.get(group_id)
        if group is None or group.phase is not GroupPhase.COMPLETING:
            return
        for member in list(group.members.values()):
            if member.sync is None:
                self.table.broker_context.cancel_timer(self.session_timer(group, member.member_id))
                group.remove(member)
        self.prepare(group, "the assignment did not come")

    def _answer_waiting(self, member: Member, error: ErrorCode) -> None:
        if member.join is not None:
            waiting, member.join = member.join, None
            self.refuse_join(waiting, error, member.member_id)
        if member.sync is not None:
            waiting, member.sync = member.sync, None
            self.refuse_sync(waiting, error)

    # ---- loading and unloading

    def loaded(self, group: Group) -> None:
        """A group was loaded from the log: the sessions of its members start now."""
        for member_id in group.members:
            self.heard(group, member_id)

    def unloaded(self, group: Group) -> None:
        """This broker no longer coordinates the group: waiting members must ask another broker."""
        broker_context = self.table.broker_context
        for member in group.members.values():
            self._answer_waiting(member, ErrorCode.NOT_COORDINATOR)
            broker_context.cancel_timer(self.session_timer(group, member.member_id))
        for member_id in group.pending:
            broker_context.cancel_timer(self.session_timer(group, member_id))
        broker_context.cancel_timer((JOIN_TIMER, group.group_id))
        broker_context.cancel_timer((SYNC_TIMER, group.group_id))
