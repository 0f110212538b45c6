"""One group at its coordinator: members, generation, assignment, offsets.

Owns the state and its simple rules: which member leads, which protocol is chosen, which members have joined.
Must not know responses, timers or logs.
"""

from collections import Counter

from attrs import define, field, frozen

from fencepost.impl.coordinator.group_records import GroupValue, MemberValue, OffsetValue
from fencepost.impl.coordinator.group_states import GROUP_TRANSITIONS, GroupPhase
from fencepost.impl.messages.consumer_protocol import PROTOCOL_TYPE, decode_subscription
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

Protocols = tuple[tuple[str, bytes], ...]


def member_id_of(name: str, *, node: int, broker_epoch: int, number: int) -> str:
    """A new member id: the name of the instance or client, and a unique suffix."""
    return f"{name}-{node}-{broker_epoch}-{number}"


def name_in(member_id: str) -> str:
    """The instance or client in a member id."""
    return member_id.rsplit("-", 3)[0]


@frozen
class Waiting:
    """A request without a response yet."""

    source: int
    correlation_id: int


@define
class Member:
    """A member of a group."""

    # The member id.
    member_id: str
    # group.instance.id of a static member; None for a dynamic one.
    group_instance_id: str | None
    # The client id.
    client_id: str
    # How long a rebalance waits for the member.
    rebalance_timeout_ms: int
    # session.timeout.ms.
    session_timeout_ms: int
    # Name and subscription of each protocol, in the member's order of preference.
    protocols: Protocols
    # The assignment; b"" before the first.
    assignment: bytes = b""
    # The host that it joined from; "" if it is not known.
    client_host: str = ""
    # Its waiting JoinGroup; None if there is none.
    join: Waiting | None = None
    # Its waiting SyncGroup; None if there is none.
    sync: Waiting | None = None

    def subscription(self, protocol: str) -> bytes:
        """Its subscription under this protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")


@frozen
class StoredOffset:
    """A committed offset and its offset in the log. Of two commits the later one in the log wins."""

    value: OffsetValue
    stands_at: int


@define
class Group:
    """One consumer group."""

    # The group.
    group_id: str
    # The number of its offsets partition.
    number: int
    # The state.
    phase: GroupPhase = GroupPhase.EMPTY
    # The generation; it increases while the group exists.
    generation: int = 0
    # "consumer" for consumers; "" before the first member.
    protocol_type: str = ""
    # The chosen protocol; None if there is none.
    protocol: str | None = None
    # The member id of the leader; None if there is none.
    leader: str | None = None
    # The members by id, in the order of joining.
    members: dict[str, Member] = field(factory=dict)
    # The member id of each group.instance.id.
    static: dict[str, str] = field(factory=dict)
    # Member ids that were assigned and have not joined yet (KIP-394).
    pending: dict[str, None] = field(factory=dict)
    # The committed offsets.
    offsets: dict[TopicPartition, StoredOffset] = field(factory=dict)
    # How many commits of each partition are being written; those without any are not there.
    storing: Counter[TopicPartition] = field(factory=Counter)
    # Offsets with a tombstone that is being written.
    expiring: dict[TopicPartition, None] = field(factory=dict)
    # The offsets of transactions without a marker so far, by producer id.
    open: dict[int, dict[TopicPartition, StoredOffset]] = field(factory=dict)
    delaying: bool = False
    # Whether a member came during this wait.
    newcomer: bool = False
    # The longest further time of this wait.
    remaining_ms: int = 0
    # When it entered its state, in host time.
    since_ms: int = 0

    def move_to(self, phase: GroupPhase, now_ms: int) -> None:
        """Enter another state.

        Args:
            phase: the new state.
            now_ms: host time in milliseconds.
        """
        assert phase in GROUP_TRANSITIONS[self.phase], f"{self.group_id}: from {self.phase} to {phase}"
        self.phase, self.since_ms = phase, now_ms

    def is_unstable(self, key: TopicPartition) -> bool:
        """Whether a transaction that has not ended commits an offset of this partition."""
        return any(key in offsets for offsets in self.open.values())

    def drop_offset(self, key: TopicPartition, before: int) -> None:
        """Drop the offset of a partition, also those of open transactions.

        Args:
            key: the partition.
            before: where its tombstone is in the log. What is after it stays.
        """
        for offsets in (self.offsets, *self.open.values()):
            if key in offsets and offsets[key].stands_at < before:
                del offsets[key]

    # ---- members

    def add(self, member: Member) -> None:
        """Add a member; the first one leads."""
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static[member.group_instance_id] = member.member_id
        self.leader = self.leader or member.member_id

    def remove(self, member: Member) -> None:
        """Remove a member; if it led, the next in the order of joining leads."""
        self.members.pop(member.member_id, None)
        instance = member.group_instance_id
        if instance is not None and self.static.get(instance) == member.member_id:
            del self.static[instance]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member has returned with another id; it keeps its place."""
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
        """Check the identity in a request.

        Args:
            member_id: the member id in the request.
            instance: the group.instance.id in the request; None if there is none.

        Returns:
            the error; NONE if it is a member.
        """
        if instance is not None:
            known = self.static.get(instance)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return NO_ERROR if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def all_have_joined(self) -> bool:
        """Whether no member has to join any more."""
        return not self.pending and all(member.join is not None for member in self.members.values())

    def elect_joined_leader(self) -> bool:
        """Choose a leader of the next generation that has joined. Returns whether there is one."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.join is None:
            self.leader = next(
                (m.member_id for m in self.members.values() if m.join is not None), self.leader
            )
        leader = self.members.get(self.leader or "")
        return leader is not None and leader.join is not None

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # ---- protocols

    def accepts(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a client with these protocols can join: all members support one of them."""
        if not protocols or not protocol_type:
            return False
        if self.phase is GroupPhase.EMPTY or not self.members:
            return True
        return protocol_type == self.protocol_type and any(name in self.candidates() for name, _ in protocols)

    def candidates(self) -> frozenset[str]:
        """The protocols that all members support."""
        known = [frozenset(name for name, _ in member.protocols) for member in self.members.values()]
        return frozenset.intersection(*known) if known else frozenset()

    def choose_protocol(self) -> str:
        """Each member votes for its first protocol that all members support. The one with most votes wins;
        between equals the leader's order decides."""
        candidates = self.candidates()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if name in candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def subscriptions(self) -> Protocols:
        """(member id, subscription) of all members, for the leader."""
        return tuple(
            (member.member_id, member.subscription(self.protocol or "")) for member in self.members.values()
        )

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that the members consume; None if they are not known."""
        if self.protocol_type != PROTOCOL_TYPE or self.protocol is None:
            return None
        decoded = [decode_subscription(data) for _, data in self.subscriptions()]
        if any(subscription is None for subscription in decoded):
            return None
        return frozenset(topic for one in decoded if one is not None for topic in one.topics)

    # ---- as a record

    def as_value(self, assignments: dict[str, bytes]) -> GroupValue:
        """The generation with an assignment, as a record."""
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
    """A group from its record; state that was only in memory is lost.

    Args:
        group_id: the group.
        number: the number of its offsets partition.
        value: the record.

    Returns:
        the group.
    """
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
