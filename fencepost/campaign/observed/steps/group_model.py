"""One consumer group as a small state machine: what each request, time-out and finished append makes of it
(KIP-62, KIP-211, KIP-345, KIP-394).

Owns the model. It shares no code with the coordinator's own, and knows neither logs nor timers: what is to be
written, and which timers are set, it hands over. Must not know the broker.

    Empty, Stable --a member comes or goes--> PreparingRebalance
    PreparingRebalance --all have joined, or the time is over--> CompletingRebalance, or Empty without members
    CompletingRebalance --the leader's assignment is in the log--> Stable
"""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field, frozen

from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.consumer_protocol import PROTOCOL_TYPE, decode_subscription
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode

EMPTY, PREPARING, COMPLETING = "Empty", "PreparingRebalance", "CompletingRebalance"
STABLE, DEAD = "Stable", "Dead"
JOIN, SYNC, SESSION = "group_join", "group_sync", "group_session"
"""First words of the timers."""
NO_MEMBER = ""
Asker = tuple[int, int]
"""Who waits for an answer: the client, and the correlation id of its request."""
_E = ErrorCode


@frozen
class Kept:
    """A committed offset, and where it is in the log."""

    value: tuple[int, int, str, int, int]
    at: int


@define
class MemberModel:
    """A member."""

    member_id: str
    instance: str | None
    client_id: str
    host: str
    rebalance_ms: int
    session_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    joins: Asker | None = None
    syncs: Asker | None = None

    def says(self, protocol: str | None) -> bytes:
        """Its subscription under a protocol; empty if it has none."""
        return dict(reversed(self.protocols)).get(protocol or "", b"")


@define
class Effects:
    """What a step does in addition to changing groups."""

    # By asker: the answer.
    answers: dict[Asker, Any] = field(factory=dict)
    # By timer: milliseconds from now on; None: it is cancelled.
    timers: dict[tuple[Any, ...], int | None] = field(factory=dict)


@define
class GroupModel:
    """A group. The fields are those of the coordinator's, and mean the same."""

    group_id: str
    phase: str = EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, MemberModel] = field(factory=dict)
    # Ids that were given out and have not joined.
    pending: set[str] = field(factory=set)
    offsets: dict[TopicPartition, Kept] = field(factory=dict)
    expiring: set[TopicPartition] = field(factory=set)
    open: dict[int, dict[TopicPartition, Kept]] = field(factory=dict)
    delaying: bool = False
    newcomer: bool = False
    remaining_ms: int = 0
    since_ms: int = 0


@define(kw_only=True)
class GroupStep:
    """One step of the coordinator of a group."""

    group: GroupModel
    # Host time in milliseconds.
    now_ms: int
    # Of group.initial.rebalance.delay.ms and offsets.retention.ms.
    delay_ms: int
    retention_ms: int
    coordinator_epoch: int
    # Writes the group with these assignments; once it is durable, or is not, it goes on in the step of then.
    store: "Callable[[GroupModel, Mapping[str, bytes], Then], None]"
    effects: Effects = field(factory=Effects)

    # ---- requests

    def join(self, asker: Asker, request: kafka.JoinGroupRequest, new_id: str) -> None:
        """A JoinGroup that may be admitted.

        Args:
            asker: who waits for the answer.
            request: as it arrived.
            new_id: the id that the coordinator gave to whoever has none.
        """
        group, instance, given = self.group, request.group_instance_id, request.member_id
        holder = next((m for m in group.members.values() if instance and m.instance == instance), None)
        if not self._agrees(request):
            self._refuse_join(asker, _E.INCONSISTENT_GROUP_PROTOCOL, given)
        elif not given and instance is None:  # KIP-394
            group.pending.add(new_id)
            self._session(new_id, request.session_timeout_ms)
            self._refuse_join(asker, _E.MEMBER_ID_REQUIRED, new_id)
        elif not given and holder is not None:  # KIP-345: a static member is back
            self._replace(holder, asker, request, new_id)
        elif not given or given in group.pending:
            group.pending.discard(given)
            self._admit(asker, request, given or new_id)
        else:
            error = self.identity(given, instance)
            if error is not _E.NONE:
                self._refuse_join(asker, error, given)
            else:
                self._again(group.members[given], asker, request)

    def _agrees(self, request: kafka.JoinGroupRequest) -> bool:
        """Whether a protocol of the newcomer is one of every member."""
        members = self.group.members.values()
        if not request.protocols or not request.protocol_type:
            return False
        if self.group.phase == EMPTY or not members:
            return True
        common = set.intersection(*({name for name, _ in one.protocols} for one in members))
        same = self.group.protocol_type == request.protocol_type
        return same and bool(common & {name for name, _ in request.protocols})

    def _admit(self, asker: Asker, request: kafka.JoinGroupRequest, member_id: str) -> None:
        group = self.group
        self.effects.timers[SESSION, group.group_id, member_id] = None
        if not group.members:
            group.protocol_type = request.protocol_type
        group.members[member_id] = MemberModel(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
            joins=asker,
        )
        if group.leader is None:
            group.leader = member_id
        self._rebalance()

    def _again(self, member: MemberModel, asker: Asker, request: kafka.JoinGroupRequest) -> None:
        """A member joins again. A leader does so to have everything assigned anew; a follower with the same
        subscription has lost its answer."""
        group = self.group
        same = member.protocols == request.protocols
        member.joins, member.protocols = asker, request.protocols
        member.rebalance_ms, member.session_ms = request.rebalance_timeout_ms, request.session_timeout_ms
        lost = group.phase == COMPLETING or (group.phase == STABLE and group.leader != member.member_id)
        if same and lost:
            self._joined(member)
        else:
            self._rebalance(comes=False)

    def _replace(
        self, member: MemberModel, asker: Asker, request: kafka.JoinGroupRequest, new_id: str
    ) -> None:
        """The new process of a static member takes its place; the one before is fenced."""
        group, before = self.group, member.member_id
        self._dismiss(member, _E.FENCED_INSTANCE_ID)
        self.effects.timers[SESSION, group.group_id, before] = None
        leader = group.leader
        group.members = {new_id if one == before else one: known for one, known in group.members.items()}
        if leader == before:
            group.leader = new_id
        same = member.says(group.protocol) == dict(request.protocols).get(group.protocol or "")
        member.member_id, member.joins, member.protocols = new_id, asker, request.protocols
        member.rebalance_ms, member.session_ms = request.rebalance_timeout_ms, request.session_timeout_ms
        self._session(new_id, member.session_ms)
        if group.phase != STABLE or not same:
            self._rebalance(comes=False)
            return
        self.store(
            group,
            {one.member_id: one.assignment for one in group.members.values()},
            lambda later, error: later.returned(new_id, error, leader or ""),
        )

    def returned(self, member_id: str, error: ErrorCode, leader: str) -> None:
        """The new id of a static member is in the log, or not (KAFKA-10284).

        Args:
            member_id: of the member that waits for the answer.
            error: of the append, in the group's words.
            leader: whom the answer names: it becomes a follower, even if it led.
        """
        member = self.group.members.get(member_id)
        if member is None or member.joins is None:
            return
        if error is not _E.NONE:
            asker, member.joins = member.joins, None
            self._refuse_join(asker, error, member.member_id)
        elif self.group.phase == STABLE:
            self._joined(member, leader)
        else:
            self._complete_if_all_joined()

    def sync(self, asker: Asker, request: kafka.SyncGroupRequest) -> None:
        """A SyncGroup.

        Args:
            asker: who waits for the answer.
            request: as it arrived.
        """
        group = self.group
        error = self.identity(request.member_id, request.group_instance_id)
        if error is _E.NONE and request.generation_id != group.generation:
            error = _E.ILLEGAL_GENERATION
        if error is _E.NONE and group.phase not in (STABLE, COMPLETING):
            error = _E.REBALANCE_IN_PROGRESS
        if error is not _E.NONE:
            self._answer_sync(asker, error)
            return
        member = group.members[request.member_id]
        self._session(member.member_id, member.session_ms)
        if group.phase == STABLE:
            self._answer_sync(asker, _E.NONE, member.assignment)
            return
        member.syncs = asker
        if group.leader == member.member_id:
            given = dict(request.assignments)
            shares = {one: given.get(one, b"") for one in group.members}
            generation = group.generation
            self.store(group, shares, lambda later, error: later.assigned(generation, shares, error))

    def assigned(self, generation: int, shares: Mapping[str, bytes], error: ErrorCode) -> None:
        """The assignment of a generation is in the log, or not.

        Args:
            generation: that it is for.
            shares: by member.
            error: of the append, in the group's words.
        """
        group = self.group
        if group.generation != generation or group.phase != COMPLETING:
            return
        if error is not _E.NONE:
            self._void(error)
            self._rebalance(void=False)
            return
        self.effects.timers[SYNC, group.group_id] = None
        self._move(STABLE)
        for member in group.members.values():
            member.assignment = shares.get(member.member_id, b"")
            if member.syncs is not None:
                asker, member.syncs = member.syncs, None
                self._session(member.member_id, member.session_ms)
                self._answer_sync(asker, _E.NONE, member.assignment)

    def heartbeat(self, asker: Asker, request: kafka.HeartbeatRequest) -> None:
        """A Heartbeat.

        Args:
            asker: who waits for the answer.
            request: as it arrived.
        """
        error = self.identity(request.member_id, request.group_instance_id)
        if error is _E.NONE and request.generation_id != self.group.generation:
            error = _E.ILLEGAL_GENERATION
        elif error is _E.NONE:
            self._session(request.member_id, self.group.members[request.member_id].session_ms)
            if self.group.phase == PREPARING:
                error = _E.REBALANCE_IN_PROGRESS
        self.effects.answers[asker] = kafka.HeartbeatResponse(correlation_id=asker[1], error=error)

    def leave(self, asker: Asker, request: kafka.LeaveGroupRequest) -> None:
        """A LeaveGroup.

        Args:
            asker: who waits for the answer.
            request: as it arrived.
        """
        member_id, instance, error = request.member_id, request.group_instance_id, _E.NONE
        if instance is not None and not member_id:
            member_id = next((m.member_id for m in self.group.members.values() if m.instance == instance), "")
        if member_id in self.group.pending:
            self.group.pending.discard(member_id)
            self._complete_if_all_joined()
        else:
            error = self.identity(member_id, instance)
            if error is _E.NONE:
                self._remove(self.group.members[member_id])
        self.effects.answers[asker] = kafka.LeaveGroupResponse(correlation_id=asker[1], error=error)

    def identity(self, member_id: str, instance: str | None) -> ErrorCode:
        """Whether a request comes from a member.

        Args:
            member_id: that it names.
            instance: that it names.

        Returns:
            the error, NONE if it does.
        """
        holders = [one.member_id for one in self.group.members.values() if one.instance == instance]
        if instance is not None and holders and holders != [member_id]:
            return _E.FENCED_INSTANCE_ID
        unknown = member_id not in self.group.members or (instance is not None and not holders)
        return _E.UNKNOWN_MEMBER_ID if unknown else _E.NONE

    def may_commit(self, request: kafka.OffsetCommitRequest) -> ErrorCode:
        """Whether offsets may be committed.

        Args:
            request: the commit.

        Returns:
            the error, NONE if it may be written.
        """
        group = self.group
        if group.phase == DEAD:
            return _E.COORDINATOR_NOT_AVAILABLE
        if request.generation_id < 0 and group.phase == EMPTY:
            return _E.NONE
        error = self.identity(request.member_id, request.group_instance_id)
        if error is _E.NONE and request.generation_id != group.generation:
            error = _E.ILLEGAL_GENERATION
        elif error is _E.NONE and group.phase == COMPLETING:
            error = _E.REBALANCE_IN_PROGRESS
        return error

    def heard(self, member_id: str) -> None:
        """A member sent something that keeps its session.

        Args:
            member_id: of the member, or of nobody.
        """
        member = self.group.members.get(member_id)
        if member is not None:
            self._session(member_id, member.session_ms)

    # ---- time-outs

    def session_ends(self, member_id: str) -> None:
        """Nothing was heard of a member, or of an id that was given out.

        Args:
            member_id: the id.
        """
        group = self.group
        member = group.members.get(member_id)
        if member_id in group.pending:
            group.pending.discard(member_id)
            self._complete_if_all_joined()
        elif member is not None and (member.joins or member.syncs):  # it waits, and cannot say anything
            self._session(member_id, member.session_ms)
        elif member is not None:
            self._remove(member)

    def join_time_over(self) -> None:
        """The time to join is over, or the wait of an empty group for more members."""
        group = self.group
        if group.phase != PREPARING:
            return
        if group.delaying and group.newcomer and group.remaining_ms > 0:
            wait_ms = min(self.delay_ms, group.remaining_ms)
            group.newcomer, group.remaining_ms = False, group.remaining_ms - wait_ms
            self.effects.timers[JOIN, group.group_id] = wait_ms
        else:
            self._next_generation()

    def sync_time_over(self) -> None:
        """The assignment did not come: who has not asked for it goes (KAFKA-12890)."""
        group = self.group
        if group.phase != COMPLETING:
            return
        for member in [one for one in group.members.values() if one.syncs is None]:
            self.effects.timers[SESSION, group.group_id, member.member_id] = None
            self._take_out(member)
        self._rebalance()

    def expired(self) -> list[TopicPartition]:
        """The offsets that go now (KIP-211): of a group that is empty for the retention, all; of a stable
        one those of topics that nobody in it consumes, the retention after their commit. None of a
        transaction that is open, nor of a group between two generations."""
        group = self.group
        if group.phase not in (EMPTY, STABLE):
            return []
        topics: set[str] = set()
        if group.phase == STABLE:
            if group.protocol_type != PROTOCOL_TYPE:
                return []
            for member in group.members.values():
                subscription = decode_subscription(member.says(group.protocol))
                if subscription is None:
                    return []
                topics |= set(subscription.topics)
        by_group = group.phase == EMPTY and group.protocol_type
        unstable = {key for offsets in group.open.values() for key in offsets}
        found = []
        for key, kept in group.offsets.items():
            _, _, _, committed_ms, expires_ms = kept.value
            since_ms = group.since_ms if by_group else committed_ms
            due_ms = expires_ms if expires_ms >= 0 else since_ms + self.retention_ms
            if key.topic not in topics and key not in unstable and self.now_ms >= due_ms:
                found.append(key)
        return sorted(found)

    # ---- rebalances

    def _rebalance(self, *, comes: bool = True, void: bool = True) -> None:
        """Everybody has to join. comes: a wait that is under way waits longer; void: the assignment that is
        awaited will not count."""
        group = self.group
        if group.phase == PREPARING:
            group.newcomer = group.newcomer or comes
            self._complete_if_all_joined()
            return
        if group.phase == COMPLETING and void:
            self._void(_E.REBALANCE_IN_PROGRESS)
        longest_ms = max((one.rebalance_ms for one in group.members.values()), default=0)
        group.delaying = group.phase == EMPTY and self.delay_ms > 0
        wait_ms = longest_ms
        if group.delaying:
            group.newcomer, group.remaining_ms = False, max(0, longest_ms - self.delay_ms)
            wait_ms = min(self.delay_ms, longest_ms)
        self._move(PREPARING)
        self.effects.timers[JOIN, group.group_id] = wait_ms
        self._complete_if_all_joined()

    def _complete_if_all_joined(self) -> None:
        group = self.group
        joined = not group.pending and all(one.joins for one in group.members.values())
        if group.phase == PREPARING and joined and not group.delaying:
            self._next_generation()

    def _next_generation(self) -> None:
        """Who has not joined goes, but for static members; who has gets the new generation."""
        group = self.group
        group.delaying = False
        for member in [one for one in group.members.values() if not (one.joins or one.instance)]:
            self.effects.timers[SESSION, group.group_id, member.member_id] = None
            self._take_out(member)
        joined = [one.member_id for one in group.members.values() if one.joins]
        if group.members and not joined:
            longest_ms = max(one.rebalance_ms for one in group.members.values())
            self.effects.timers[JOIN, group.group_id] = longest_ms
            return
        if joined and group.leader not in joined:
            group.leader = joined[0]
        self.effects.timers[JOIN, group.group_id] = None
        group.generation += 1
        if not group.members:
            group.protocol = None
            self._move(EMPTY)
            self.store(group, {}, lambda later, error: None)
            return
        group.protocol = self._chosen()
        self._move(COMPLETING)
        for member in group.members.values():
            if member.joins:
                self._joined(member)
            self._session(member.member_id, member.session_ms)
        self.effects.timers[SYNC, group.group_id] = max(one.rebalance_ms for one in group.members.values())

    def _chosen(self) -> str:
        """Each member votes for its first protocol that all have."""
        lists = [[name for name, _ in one.protocols] for one in self.group.members.values()]
        votes = [next(name for name in names if all(name in other for other in lists)) for names in lists]
        return max(votes, key=votes.count)

    def _remove(self, member: MemberModel) -> None:
        group = self.group
        self._dismiss(member, _E.UNKNOWN_MEMBER_ID)
        self.effects.timers[SESSION, group.group_id, member.member_id] = None
        self._take_out(member)
        if group.phase in (STABLE, COMPLETING):
            self._rebalance()
        else:
            self._complete_if_all_joined()

    def _take_out(self, member: MemberModel) -> None:
        """The next one in the order of joining leads."""
        group = self.group
        del group.members[member.member_id]
        if group.leader == member.member_id:
            group.leader = next(iter(group.members), None)

    def _dismiss(self, member: MemberModel, error: ErrorCode) -> None:
        if member.joins is not None:
            asker, member.joins = member.joins, None
            self._refuse_join(asker, error, member.member_id)
        if member.syncs is not None:
            asker, member.syncs = member.syncs, None
            self._answer_sync(asker, error)

    def _void(self, error: ErrorCode) -> None:
        self.effects.timers[SYNC, self.group.group_id] = None
        for member in self.group.members.values():
            member.assignment = b""
            if member.syncs is not None:
                asker, member.syncs = member.syncs, None
                self._answer_sync(asker, error)

    # ---- answers and timers

    def _joined(self, member: MemberModel, leader: str | None = None) -> None:
        group, asker = self.group, member.joins
        assert asker is not None
        member.joins = None
        leads = leader is None and member.member_id == group.leader
        named = [(one.member_id, one.instance) for one in group.members.values() if one.instance is not None]
        self.effects.answers[asker] = kafka.JoinGroupResponse(
            correlation_id=asker[1],
            error=_E.NONE,
            generation_id=group.generation,
            protocol_name=group.protocol or "",
            leader=leader or group.leader or "",
            member_id=member.member_id,
            members=tuple((one.member_id, one.says(group.protocol)) for one in group.members.values())
            if leads
            else (),
            instances=tuple((one, str(instance)) for one, instance in named) if leads else (),
        )

    def _refuse_join(self, asker: Asker, error: ErrorCode, member_id: str) -> None:
        self.effects.answers[asker] = kafka.JoinGroupResponse(
            correlation_id=asker[1], error=error, member_id=member_id
        )

    def _answer_sync(self, asker: Asker, error: ErrorCode, assignment: bytes = b"") -> None:
        epoch = self.coordinator_epoch if error is _E.NONE else -1
        self.effects.answers[asker] = kafka.SyncGroupResponse(
            correlation_id=asker[1], error=error, assignment=assignment, coordinator_epoch=epoch
        )

    def _session(self, member_id: str, session_ms: int) -> None:
        self.effects.timers[SESSION, self.group.group_id, member_id] = session_ms

    def _move(self, phase: str) -> None:
        self.group.phase, self.group.since_ms = phase, self.now_ms


Then = Callable[[GroupStep, ErrorCode], None]
"""What is done once an append is durable, or is not: in the step in which that is known."""
