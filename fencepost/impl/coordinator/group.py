"""One group at its coordinator: members, generation, assignment, offsets.

Owns the state and its small rules: who leads, which protocol is chosen, who has joined. Must not know
requests' answers, timers or logs.
"""

from attrs import define, field, frozen

from fencepost.impl.coordinator.records import GroupValue, MemberValue, OffsetValue
from fencepost.impl.coordinator.states import GROUP_TRANSITIONS, GroupPhase
from fencepost.impl.messages.consumer_protocol import PROTOCOL_TYPE, decode_subscription
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import NO_ERROR, ErrorCode

Protocols = tuple[tuple[str, bytes], ...]


def member_id_of(name: str, *, node: int, broker_epoch: int, number: int) -> str:
    """The id that a broker gives to a member: its instance's name or its client's, and what makes it
    unique."""
    return f"{name}-{node}-{broker_epoch}-{number}"


def name_in(member_id: str) -> str:
    """The instance or client to which a broker gave this id."""
    return member_id.rsplit("-", 3)[0]


@frozen
class Waiting:
    """A request that has no answer yet."""

    source: int
    correlation_id: int


@define
class Member:
    """join, sync: its JoinGroup or SyncGroup that waits. protocols: name and subscription, in its order of
    preference."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    client_host: str = ""
    join: Waiting | None = None
    sync: Waiting | None = None

    def subscription(self, protocol: str) -> bytes:
        """What it told under this protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")


@frozen
class StoredOffset:
    """A committed offset, and where in the log it stands: of two commits the later one in the log counts."""

    value: OffsetValue
    stands_at: int


@define
class Group:
    """number: of its offsets partition. generation: moves up while the group exists. members: by id, in order
    of joining. static: member id of each group.instance.id. pending: ids that were given out and have not
    joined yet (KIP-394). delaying: an empty group that waits for more members, for at most remaining_ms more;
    newcomer: one came meanwhile. since_ms: when it came into its phase. expiring: offsets whose tombstone is
    on its way."""

    group_id: str
    number: int
    phase: GroupPhase = GroupPhase.EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(factory=dict)
    static: dict[str, str] = field(factory=dict)
    pending: dict[str, None] = field(factory=dict)
    offsets: dict[TopicPartition, StoredOffset] = field(factory=dict)
    expiring: dict[TopicPartition, None] = field(factory=dict)
    open: dict[int, dict[TopicPartition, StoredOffset]] = field(factory=dict)
    delaying: bool = False
    newcomer: bool = False
    remaining_ms: int = 0
    since_ms: int = 0

    def move_to(self, phase: GroupPhase, now_ms: int) -> None:
        """Come into another phase."""
        assert phase in GROUP_TRANSITIONS[self.phase], f"{self.group_id}: from {self.phase} to {phase}"
        self.phase, self.since_ms = phase, now_ms

    def is_unstable(self, key: TopicPartition) -> bool:
        """Whether a transaction that has not ended commits an offset of this partition."""
        return any(key in offsets for offsets in self.open.values())

    # ---- members

    def add(self, member: Member) -> None:
        """A member joins; the first one leads."""
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static[member.group_instance_id] = member.member_id
        self.leader = self.leader or member.member_id

    def remove(self, member: Member) -> None:
        """A member is gone; who joined next leads."""
        self.members.pop(member.member_id, None)
        instance = member.group_instance_id
        if instance is not None and self.static.get(instance) == member.member_id:
            del self.static[instance]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member has come back under another id; it keeps its place."""
        assert member.group_instance_id is not None
        if self.leader == member.member_id:
            self.leader = member_id
        before = member.member_id
        member.member_id = member_id
        self.static[member.group_instance_id] = member_id
        self.members = {
            (member_id if known == before else known): kept for known, kept in self.members.items()
        }

    def identity_error(self, member_id: str, instance: str | None) -> ErrorCode:
        """Whether somebody who names this id is a member."""
        if instance is not None:
            known = self.static.get(instance)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return NO_ERROR if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def all_have_joined(self) -> bool:
        """Nobody is waited for."""
        return not self.pending and all(member.join is not None for member in self.members.values())

    def elect_joined_leader(self) -> bool:
        """The leader of the next generation must have joined; whether there is one."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.join is None:
            self.leader = next(
                (m.member_id for m in self.members.values() if m.join is not None), self.leader
            )
        leader = self.members.get(self.leader or "")
        return leader is not None and leader.join is not None

    def rebalance_timeout_ms(self) -> int:
        """The longest that a member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # ---- protocols

    def accepts(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether somebody with these protocols can join: one of them is known to everybody."""
        if not protocols or not protocol_type:
            return False
        if self.phase is GroupPhase.EMPTY or not self.members:
            return True
        return protocol_type == self.protocol_type and any(name in self.candidates() for name, _ in protocols)

    def candidates(self) -> frozenset[str]:
        """Protocols that every member knows."""
        known = [frozenset(name for name, _ in member.protocols) for member in self.members.values()]
        return frozenset.intersection(*known) if known else frozenset()

    def choose_protocol(self) -> str:
        """Each member votes for the first one that everybody knows; most votes win, and the leader's order
        among equals."""
        candidates = self.candidates()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if name in candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def subscriptions(self) -> Protocols:
        """(member id, subscription) of everybody, for the leader."""
        return tuple(
            (member.member_id, member.subscription(self.protocol or "")) for member in self.members.values()
        )

    def subscribed_topics(self) -> frozenset[str] | None:
        """What the members consume; None if that cannot be told."""
        if self.protocol_type != PROTOCOL_TYPE or self.protocol is None:
            return None
        told = [decode_subscription(data) for _, data in self.subscriptions()]
        if any(subscription is None for subscription in told):
            return None
        return frozenset(topic for one in told if one is not None for topic in one.topics)

    # ---- as a record

    def as_value(self, assignments: dict[str, bytes]) -> GroupValue:
        """The generation with an assignment, to be written."""
        return GroupValue(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            since_ms=self.since_ms,
            members=tuple(
                MemberValue(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.subscription(self.protocol or ""),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ),
        )


def group_of(group_id: str, number: int, value: GroupValue) -> Group:
    """A group as its record tells it: what was only in memory is gone."""
    group = Group(
        group_id,
        number,
        phase=GroupPhase.STABLE if value.members else GroupPhase.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol=value.protocol,
        since_ms=value.since_ms,
    )
    for member in value.members:
        group.add(
            Member(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                ((value.protocol or "", member.subscription),),
                assignment=member.assignment,
                client_host=member.client_host,
            )
        )
    group.leader = value.leader
    return group
