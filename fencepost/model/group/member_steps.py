"""The steps of members in the group model, and their coordinator's responses, on the values of the slots that
they read.

Owns joining, syncing, heartbeats, leaving, and offset commits. Must not know which slots exist, or brokers'
own steps.
"""

from itertools import product

from fencepost.model.explore.transition_system import EnabledActions
from fencepost.model.group import coordinator_steps as coordinator
from fencepost.model.group.brokers import acknowledged, appended, writes
from fencepost.model.group.group_state import (
    COMMIT,
    COMPLETING,
    EARLIER,
    IN_FLIGHT,
    JOINING,
    LATER,
    NONE,
    OWNING,
    STABLE,
    SYNCING,
    Acked,
    Broker,
    Constants,
    Leaders,
    Member,
    ModelGroup,
    OffsetsLog,
    Used,
    of,
)


def membership(
    constants: Constants, number: int, broker_number: int, member: Member, broker: Broker
) -> EnabledActions:
    """The membership steps of a member with one broker: join, sync, heartbeat, leave.

    Args:
        constants: the bounds.
        number: the member's number.
        broker_number: the broker's number.
        member: the member.
        broker: the broker.

    Returns:
        the enabled actions.
    """
    group = broker.group
    assert isinstance(group, ModelGroup), broker
    pair = number, broker_number
    if coordinator.may_join(*pair, member, group) and not _is_static_case(number, group):
        waiting, after = _joined(constants, number, broker_number, member, group)
        yield ("join", *pair), (waiting, broker._replace(group=after))
    if coordinator.is_answered(*pair, member, group):
        member_state = Member(SYNCING, group.generation, 0, NONE, member.sent)
        yield ("joined", *pair), (member_state, broker)
    if coordinator.may_sync(number, member, group, STABLE):
        yield ("sync", *pair), (coordinator.synced(number, member, group), broker)
    if coordinator.is_fenced(number, member, group):
        yield ("heartbeat", *pair), (coordinator.left(member), broker)
    if member.state == OWNING and group.members >> number & 1 and not _is_static(constants, number):
        gone = broker._replace(group=coordinator.without(number, group))
        yield ("leave", *pair), (coordinator.left(member), gone)


def _is_static(constants: Constants, number: int) -> bool:
    return constants.statics > 0 and number in (EARLIER, LATER)


def _is_static_case(number: int, group: ModelGroup) -> bool:
    """A case that `join` does not handle. The earlier process is refused; the later one takes its place in a
    stable group without a rebalance."""
    return coordinator.is_replaced(number, group) or (
        coordinator.comes_back(number, group) and group.state == STABLE
    )


def _joined(
    constants: Constants, number: int, broker_number: int, member: Member, group: ModelGroup
) -> tuple[Member, ModelGroup]:
    """replace_static_member (KAFKA-8500): a static member replaces its former self in any state; it is not
    added as a second member."""
    if coordinator.comes_back(number, group) and constants.keeps("replace_static_member"):
        group = coordinator.replaced(group)
    waiting, after = coordinator.join(broker_number, member, group, 1 << number)
    return waiting, after._replace(static=number) if _is_static(constants, number) else after


def replace_static(
    constants: Constants,
    number: int,
    broker_number: int,
    member: Member,
    broker: Broker,
    leaders: Leaders,
    log: OffsetsLog,
) -> EnabledActions:
    """KIP-345: the later process of a static member gets the assignment of the earlier one.
    persist_static_member (KAFKA-10284): it gets it once that is durable, so that the next coordinator knows
    it, too."""
    group = broker.group
    if (
        not isinstance(group, ModelGroup)
        or not coordinator.comes_back(number, group)
        or group.state != STABLE
    ):
        return
    if not coordinator.may_join(number, broker_number, member, group):
        return
    after, waiting = coordinator.replaced(group), Member(JOINING, NONE, 0, broker_number, member.sent)
    if constants.keeps("persist_static_member"):
        if not writes(broker, leaders):
            return
        log, after = appended(log, coordinator.metadata(after)), after._replace(state=COMPLETING)
    yield ("replace_static", number, broker_number), (waiting, broker._replace(group=after), log)


def assign(
    constants: Constants,
    number: int,
    broker_number: int,
    member: Member,
    broker: Broker,
    leaders: Leaders,
    log: OffsetsLog,
) -> EnabledActions:
    """SyncGroup of the generation's leader: any assignment to its members, sent to them once it is durable.

    Args:
        constants: the bounds.
        number: the member's number.
        broker_number: the broker's number.
        member: the member.
        broker: the broker.
        leaders: the leaders by epoch.
        log: the log of the offsets partition.

    Returns:
        the enabled actions.
    """
    group = broker.group
    if not isinstance(group, ModelGroup) or not coordinator.may_sync(number, member, group, COMPLETING):
        return
    if group.assignment[0] != NONE or not writes(broker, leaders):
        return
    for assignment in product(of(group.members), repeat=constants.partitions):
        after = group._replace(assignment=assignment)
        written = broker._replace(group=after), appended(log, coordinator.metadata(after))
        yield ("assign", number, broker_number, *assignment), written


def commit(constants: Constants, number: int, member: Member, used: Used) -> EnabledActions:
    """commitAsync of a partition that the member owns."""
    commits, expiries = used
    if member.state != OWNING or len(member.sent) >= IN_FLIGHT or commits >= constants.commits:
        return
    for partition in of(member.assigned):
        sent = (*member.sent, (member.generation, partition, commits))
        yield ("commit", number, partition), (member._replace(sent=sent), (commits + 1, expiries))


def lose(constants: Constants, number: int, member: Member) -> EnabledActions:
    """The oldest commit is lost, or refused. commit_async_not_retried (P5): a retry would overtake a later
    commit.

    Args:
        constants: the bounds.
        number: the member's number.
        member: the member.

    Returns:
        the enabled actions.
    """
    yield ("lose_commit", number), (member._replace(sent=member.sent[1:]),)
    if len(member.sent) > 1 and not constants.keeps("commit_async_not_retried"):
        yield ("retry_commit", number), (member._replace(sent=(*member.sent[1:], member.sent[0])),)


def handle_commit(
    constants: Constants,
    number: int,
    broker_number: int,
    member: Member,
    broker: Broker,
    leaders: Leaders,
    log: OffsetsLog,
) -> EnabledActions:
    """The coordinator accepts the member's oldest commit and writes it."""
    if _accepts(constants, number, member, broker) and writes(broker, leaders):
        after = member._replace(sent=member.sent[1:])
        yield ("handle_commit", number, broker_number), (after, appended(log, (COMMIT, *member.sent[0])))


def acknowledge_unwritten(
    constants: Constants, number: int, broker_number: int, member: Member, broker: Broker, acked: Acked
) -> EnabledActions:
    """A broker that no longer leads continues as if it did: the commit is only in its memory."""
    if not _accepts(constants, number, member, broker) or broker.leads:
        return
    group, (generation, partition, commit) = broker.group, member.sent[0]
    assert isinstance(group, ModelGroup), broker
    after = coordinator.with_offset(group, (COMMIT, generation, partition, commit))
    yield (
        ("acknowledge_unwritten", number, broker_number),
        (
            member._replace(sent=member.sent[1:]),
            broker._replace(group=after),
            acknowledged(acked, partition, commit, broker.loaded),
        ),
    )


def _accepts(constants: Constants, number: int, member: Member, broker: Broker) -> bool:
    fenced = constants.keeps("generation_fencing")
    return isinstance(broker.group, ModelGroup) and coordinator.may_commit(
        number, member.sent[0][0], broker.group, fenced=fenced
    )
