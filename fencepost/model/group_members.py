"""What members do in the group model, and what their coordinator answers, on the values of the slots that they read.

Owns: joining, syncing, heartbeats, leaving, and offset commits. Must not know which slots there are, nor brokers' own steps.
"""

from itertools import product

from fencepost.model import group_coordinator as coordinator
from fencepost.model.group_brokers import acknowledged, appended, writes
from fencepost.model.group_state import (
    COMMIT,
    COMPLETING,
    IN_FLIGHT,
    METADATA,
    NONE,
    OWNING,
    STABLE,
    SYNCING,
    Acked,
    Broker,
    Constants,
    Group,
    Leaders,
    Log,
    Member,
    Steps,
    Used,
    of,
)


def membership(
    constants: Constants, number: int, broker_number: int, member: Member, broker: Broker
) -> Steps:
    group = broker.group
    assert isinstance(group, Group), broker
    pair = number, broker_number
    if coordinator.may_join(*pair, member, group):
        waiting, after = coordinator.join(*pair, member, group)
        yield ("join", *pair), (waiting, broker._replace(group=after))
    if coordinator.is_answered(*pair, member, group):
        told = Member(SYNCING, group.generation, 0, NONE, member.sent)
        yield ("joined", *pair), (told, broker)
    if coordinator.may_sync(number, member, group, STABLE):
        yield ("sync", *pair), (coordinator.synced(number, member, group), broker)
    if coordinator.is_fenced(number, member, group):
        yield ("heartbeat", *pair), (coordinator.left(member), broker)
    if member.state == OWNING and group.members >> number & 1:
        gone = broker._replace(group=coordinator.without(number, group))
        yield ("leave", *pair), (coordinator.left(member), gone)


def assign(
    constants: Constants,
    number: int,
    broker_number: int,
    member: Member,
    broker: Broker,
    leaders: Leaders,
    log: Log,
) -> Steps:
    """SyncGroup of the generation's leader: any assignment to its members, handed out once it is durable."""
    group = broker.group
    if not isinstance(group, Group) or not coordinator.may_sync(number, member, group, COMPLETING):
        return
    if group.assignment[0] != NONE or not writes(broker, leaders):
        return
    for assignment in product(of(group.members), repeat=constants.partitions):
        record = (METADATA, group.generation, group.members, assignment)
        after = broker._replace(group=group._replace(assignment=assignment))
        yield ("assign", number, broker_number, *assignment), (after, appended(log, record))


def commit(constants: Constants, number: int, member: Member, used: Used) -> Steps:
    """commitAsync of a partition that the member owns."""
    commits, expiries = used
    if member.state != OWNING or len(member.sent) >= IN_FLIGHT or commits >= constants.commits:
        return
    for partition in of(member.assigned):
        sent = (*member.sent, (member.generation, partition, commits))
        yield ("commit", number, partition), (member._replace(sent=sent), (commits + 1, expiries))


def lose(constants: Constants, number: int, member: Member) -> Steps:
    """The oldest commit is lost, or refused. commit_async_not_retried (P5): sent again it would overtake a later one."""
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
    log: Log,
) -> Steps:
    """The coordinator accepts the member's oldest commit and writes it."""
    if _accepts(constants, number, member, broker) and writes(broker, leaders):
        after = member._replace(sent=member.sent[1:])
        yield ("handle_commit", number, broker_number), (after, appended(log, (COMMIT, *member.sent[0])))


def acknowledge_unwritten(
    constants: Constants, number: int, broker_number: int, member: Member, broker: Broker, acked: Acked
) -> Steps:
    """A broker that no longer leads goes on as if it did: the commit is in its memory only."""
    if not _accepts(constants, number, member, broker) or broker.leads:
        return
    group, (generation, partition, commit) = broker.group, member.sent[0]
    assert isinstance(group, Group), broker
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
    return isinstance(broker.group, Group) and coordinator.may_commit(
        number, member.sent[0][0], broker.group, fenced=fenced
    )
