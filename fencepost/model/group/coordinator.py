"""What a group coordinator does with its group, and a member with its answers: pure functions on one group,
one broker, one member.

Owns: the states of a group (docs/spec/cluster.md P3) and of a consumer, the fencing of commits, loading from
the log (P4). Must not know who leads the offsets partition, nor bounds.
"""

from collections.abc import Iterable

from fencepost.model.group.state import (
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
    """A group that nobody has joined."""
    nobody = (NONE,) * partitions
    return ModelGroup(EMPTY, 0, 0, 0, nobody, nobody)


def loaded(partitions: int, records: Iterable[OffsetsRecord]) -> ModelGroup:
    """The group as its records tell it. What was only in memory is gone: who has joined, which generation was
    forming, commits not yet written."""
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
    """A commit or an expiry, materialised."""
    partition, number = (record[2], record[3]) if record[0] == COMMIT else (record[1], NONE)
    return group._replace(offsets=(*group.offsets[:partition], number, *group.offsets[partition + 1 :]))


def written(group: ModelGroup, record: OffsetsRecord) -> ModelGroup:
    """After the record is durable: a commit is what fetches read; an assignment makes the generation it
    belongs to stable."""
    if record[0] == COMMIT:
        return with_offset(group, record)
    waits = record[0] == METADATA and group.state == COMPLETING and group.generation == record[1]
    return group._replace(state=STABLE) if waits else group


def metadata(group: ModelGroup) -> OffsetsRecord:
    """Its record."""
    return METADATA, group.generation, group.members, group.assignment, group.static


# ---- membership


def rebalanced(group: ModelGroup, members: int, joined: int) -> ModelGroup:
    """The group prepares a rebalance among these members; the assignment is void."""
    return group._replace(
        state=PREPARING, members=members, joined=joined, assignment=(NONE,) * len(group.assignment)
    )


def may_join(number: int, broker: int, member: Member, group: ModelGroup) -> bool:
    """A member joins when it is none, when it waits elsewhere or in vain, and when a rebalance is on (its
    heartbeat says so)."""
    if group.state == DEAD:
        return False
    known, waits = group.members >> number & 1, group.joined >> number & 1
    if group.state == PREPARING:
        return not (waits and member.state == JOINING and member.coordinator == broker) and (
            member.state in (OUT, JOINING) or bool(known)
        )
    return member.state in (OUT, JOINING)


def join(broker: int, member: Member, group: ModelGroup, mine: int) -> tuple[Member, ModelGroup]:
    """JoinGroup: the member (a bit) gives up what it owns and waits; everybody else will have to join
    again."""
    joined = (group.joined if group.state == PREPARING else 0) | mine
    return Member(JOINING, NONE, 0, broker, member.sent), rebalanced(group, group.members | mine, joined)


def without(number: int, group: ModelGroup) -> ModelGroup:
    """A member leaves or its session times out: the others rebalance."""
    others = ~(1 << number)
    joined = group.joined & others if group.state == PREPARING else 0
    after = rebalanced(group, group.members & others, joined)
    return after._replace(static=NONE) if group.static == number else after


def left(member: Member) -> Member:
    """No member any more; its commits stay on their way."""
    return Member(OUT, NONE, 0, NONE, member.sent)


def completed(group: ModelGroup) -> ModelGroup:
    """The rebalance ends: who has not joined is out, and the generation grows."""
    return group._replace(
        state=COMPLETING if group.joined else EMPTY,
        generation=group.generation + 1,
        members=group.joined,
        joined=0,
        static=group.static if group.static != NONE and group.joined >> group.static & 1 else NONE,
    )


def is_answered(number: int, broker: int, member: Member, group: ModelGroup) -> bool:
    """Whether JoinGroup has its answer."""
    return (
        member.state == JOINING
        and member.coordinator == broker
        and group.state in (COMPLETING, STABLE)
        and bool(group.members >> number & 1)
    )


def may_sync(number: int, member: Member, group: ModelGroup, state: int) -> bool:
    """SyncGroup is for members of the present generation."""
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
    """What a heartbeat tells: UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION."""
    return member.state in (SYNCING, OWNING) and (
        not group.members >> number & 1 or member.generation != group.generation
    )


# ---- static members (KIP-345)


def comes_back(number: int, group: ModelGroup) -> bool:
    """The later process of a static member joins, while the group knows the earlier one."""
    return number == LATER and group.static == EARLIER


def is_replaced(number: int, group: ModelGroup) -> bool:
    """The earlier process, which is refused for good: FENCED_INSTANCE_ID."""
    return number == EARLIER and group.static == LATER


def replaced(group: ModelGroup) -> ModelGroup:
    """The later process has the place of the earlier one, in everything."""

    def swapped(members: int) -> int:
        return members & ~(1 << EARLIER) | 1 << LATER if members >> EARLIER & 1 else members

    assignment = tuple(LATER if member == EARLIER else member for member in group.assignment)
    return group._replace(
        members=swapped(group.members), joined=swapped(group.joined), assignment=assignment, static=LATER
    )


# ---- offsets


def may_commit(number: int, generation: int, group: ModelGroup, *, fenced: bool) -> bool:
    """generation_fencing: only a member of the present generation commits, and not while the next one is
    forming (REBALANCE_IN_PROGRESS)."""
    known = bool(group.members >> number & 1) and group.state in (PREPARING, STABLE)
    return known and (generation == group.generation or not fenced)


def may_expire(group: ModelGroup, *, guarded: bool) -> bool:
    """no_expiry_while_rebalancing (KAFKA-13636): offsets of topics that members consume expire only when
    there are none."""
    return group.state == EMPTY or (not guarded and group.state in (PREPARING, COMPLETING))


def serves(broker: Broker, *, guarded: bool) -> bool:
    """not_coordinator (KAFKA-4362): a broker answers for the group if it has loaded it in the epoch in which
    it leads the offsets partition, as far as it knows; otherwise NOT_COORDINATOR or
    COORDINATOR_LOAD_IN_PROGRESS."""
    return broker.group != () and (not guarded or (broker.leads and broker.loaded == broker.epoch))
