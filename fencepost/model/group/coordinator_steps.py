"""The handling of a group by its coordinator, and of responses by a member: pure functions on one group, one
broker, one member.

Owns the states of a group (docs/spec/cluster.md P3) and of a consumer, the fencing of commits, and loading
from the log (P4). Must not know which broker leads the offsets partition, or bounds.
"""

from collections.abc import Iterable

from fencepost.model.group.group_state import (
    COMMIT,
    COMPLETING,
    DEAD,
    EARLIER,
    EMPTY,
    JOINING,
    LATER,
    METADATA,
    NONE,
    OUT,
    OWNING,
    PREPARING,
    REMOVED,
    STABLE,
    SYNCING,
    Broker,
    Member,
    ModelGroup,
    OffsetsRecord,
)


def new_group(partitions: int) -> ModelGroup:
    """A group without members."""
    nobody = (NONE,) * partitions
    return ModelGroup(EMPTY, 0, 0, 0, nobody, nobody)


def loaded(partitions: int, records: Iterable[OffsetsRecord]) -> ModelGroup:
    """The group from its records. State that was only in memory is lost: joined members, the forming
    generation, unwritten commits."""
    group = new_group(partitions)
    for record in records:
        if record[0] == METADATA:
            _, generation, members, assignment, static = record
            state = STABLE if members else EMPTY
            group = ModelGroup(state, generation, members, 0, assignment, group.offsets, static)
        elif record[0] == REMOVED:
            group = group._replace(state=DEAD)
        else:
            group = with_offset(group, record)
    return group


def with_offset(group: ModelGroup, record: OffsetsRecord) -> ModelGroup:
    """Apply a commit or an expiry.

    Args:
        group: the group.
        record: the record.

    Returns:
        the new group.
    """
    partition, number = (record[2], record[3]) if record[0] == COMMIT else (record[1], NONE)
    return group._replace(offsets=(*group.offsets[:partition], number, *group.offsets[partition + 1 :]))


def written(group: ModelGroup, record: OffsetsRecord) -> ModelGroup:
    """The group after the record is durable. A commit is visible to fetches; an assignment makes its
    generation stable."""
    if record[0] == COMMIT:
        return with_offset(group, record)
    waits = record[0] == METADATA and group.state == COMPLETING and group.generation == record[1]
    return group._replace(state=STABLE) if waits else group


def metadata(group: ModelGroup) -> OffsetsRecord:
    """The metadata record of a group."""
    return METADATA, group.generation, group.members, group.assignment, group.static


# ---- membership


def rebalanced(group: ModelGroup, members: int, joined: int) -> ModelGroup:
    """The group prepares a rebalance among these members; the assignment is void."""
    return group._replace(
        state=PREPARING, members=members, joined=joined, assignment=(NONE,) * len(group.assignment)
    )


def may_join(number: int, broker: int, member: Member, group: ModelGroup) -> bool:
    """A member joins when it is not a member, when it waits at another broker or in vain, and during a
    rebalance (the heartbeat reports it)."""
    if group.state == DEAD:
        return False
    known, waits = group.members >> number & 1, group.joined >> number & 1
    if group.state == PREPARING:
        return not (waits and member.state == JOINING and member.coordinator == broker) and (
            member.state in (OUT, JOINING) or bool(known)
        )
    return member.state in (OUT, JOINING)


def join(broker: int, member: Member, group: ModelGroup, mine: int) -> tuple[Member, ModelGroup]:
    """JoinGroup: the member (a bit) gives up its partitions and waits; all other members will have to join
    again."""
    joined = (group.joined if group.state == PREPARING else 0) | mine
    return Member(JOINING, NONE, 0, broker, member.sent), rebalanced(group, group.members | mine, joined)


def without(number: int, group: ModelGroup) -> ModelGroup:
    """A member leaves or its session times out: the others rebalance.

    Args:
        number: the member.
        group: the group.

    Returns:
        the new group.
    """
    others = ~(1 << number)
    joined = group.joined & others if group.state == PREPARING else 0
    after = rebalanced(group, group.members & others, joined)
    return after._replace(static=NONE) if group.static == number else after


def left(member: Member) -> Member:
    """The member is out of the group; its commits stay in flight."""
    return Member(OUT, NONE, 0, NONE, member.sent)


def completed(group: ModelGroup) -> ModelGroup:
    """The rebalance ends: members that have not joined are removed, and the generation increases."""
    return group._replace(
        state=COMPLETING if group.joined else EMPTY,
        generation=group.generation + 1,
        members=group.joined,
        joined=0,
        static=group.static if group.static != NONE and group.joined >> group.static & 1 else NONE,
    )


def is_answered(number: int, broker: int, member: Member, group: ModelGroup) -> bool:
    """Whether JoinGroup has its response.

    Args:
        number: the member's number.
        broker: the coordinator's number.
        member: the member.
        group: the group.

    Returns:
        whether it has.
    """
    return (
        member.state == JOINING
        and member.coordinator == broker
        and group.state in (COMPLETING, STABLE)
        and bool(group.members >> number & 1)
    )


def may_sync(number: int, member: Member, group: ModelGroup, state: int) -> bool:
    """SyncGroup is for members of the current generation.

    Args:
        number: the member's number.
        member: the member.
        group: the group.
        state: the group state that is required.

    Returns:
        whether it is allowed.
    """
    return (
        group.state == state
        and member.state == SYNCING
        and member.generation == group.generation
        and bool(group.members >> number & 1)
    )


def synced(number: int, member: Member, group: ModelGroup) -> Member:
    """The member gets its assignment."""
    mine = sum(1 << at for at, owner in enumerate(group.assignment) if owner == number)
    return member._replace(state=OWNING, assigned=mine)


def is_fenced(number: int, member: Member, group: ModelGroup) -> bool:
    """Whether a heartbeat is answered with UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION.

    Args:
        number: the member's number.
        member: the member.
        group: the group.

    Returns:
        whether it is.
    """
    return member.state in (SYNCING, OWNING) and (
        not group.members >> number & 1 or member.generation != group.generation
    )


# ---- static members (KIP-345)


def comes_back(number: int, group: ModelGroup) -> bool:
    """The later process of a static member joins, while the group knows the earlier one."""
    return number == LATER and group.static == EARLIER


def is_replaced(number: int, group: ModelGroup) -> bool:
    """Whether this is the earlier process of the static member, which is always refused: FENCED_INSTANCE_ID.

    Args:
        number: the member's number.
        group: the group.

    Returns:
        whether it is.
    """
    return number == EARLIER and group.static == LATER


def replaced(group: ModelGroup) -> ModelGroup:
    """The later process takes the place of the earlier one, in all state."""

    def swapped(members: int) -> int:
        return members & ~(1 << EARLIER) | 1 << LATER if members >> EARLIER & 1 else members

    assignment = tuple(LATER if member == EARLIER else member for member in group.assignment)
    return group._replace(
        members=swapped(group.members), joined=swapped(group.joined), assignment=assignment, static=LATER
    )


# ---- offsets


def may_commit(number: int, generation: int, group: ModelGroup, *, fenced: bool) -> bool:
    """generation_fencing: only a member of the current generation commits, and not while the next one is
    forming (REBALANCE_IN_PROGRESS)."""
    known = bool(group.members >> number & 1) and group.state in (PREPARING, STABLE)
    return known and (generation == group.generation or not fenced)


def may_expire(group: ModelGroup, *, guarded: bool) -> bool:
    """no_expiry_while_rebalancing (KAFKA-13636): offsets of topics that members consume expire only if there
    are no members.

    Args:
        group: the group.
        guarded: whether the protection exists.

    Returns:
        whether offsets may expire.
    """
    return group.state == EMPTY or (not guarded and group.state in (PREPARING, COMPLETING))


def serves(broker: Broker, *, guarded: bool) -> bool:
    """not_coordinator (KAFKA-4362): a broker answers for the group if it has loaded it in the epoch in which
    it leads the offsets partition, by its own knowledge. Otherwise NOT_COORDINATOR or
    COORDINATOR_LOAD_IN_PROGRESS."""
    return broker.group != () and (not guarded or (broker.leads and broker.loaded == broker.epoch))
