"""What a controller does in office: one part of the controller model's actions.

Owns: what it reads, decides, writes and sends. Must not know how it came into office, nor what brokers make of its requests.
"""

from collections.abc import Iterator

from fencepost.model.controller_state import (
    NONE,
    Admin,
    Batch,
    Constants,
    Context,
    Control,
    Membership,
    Partition,
    Sent,
    members,
)
from fencepost.model.explore.system import Action, Value

Steps = Iterator[tuple[Action, tuple[Value, ...]]]
"""Enabled actions, each with the values that it writes."""


def read(
    constants: Constants,
    number: int,
    control: Control,
    membership: Membership,
    zookeeper: Partition,
    admin: Admin,
    sent: Sent,
) -> Steps:
    """C6, C9: it reads what there is, or the registrations again. If nothing has to be written, it tells the brokers."""
    context = control.context
    if not context:
        target = control.kept or admin.target
        after = Context(zookeeper, membership.registrations, admin.assignment, target, 0)
        known = Control(control.epoch, after, 0)
        yield ("load", number), (known, told(constants, known, sent))
    elif context.live != membership.registrations:
        known = control._replace(context=context._replace(live=membership.registrations))
        yield ("see_brokers", number), (known, told(constants, known, sent))


def see_state(constants: Constants, number: int, control: Control, zookeeper: Partition) -> Steps:
    """After an ISR notification or a bad version it reads the state again."""
    context = control.context
    if context and context.partition != zookeeper:
        yield ("see_state", number), (control._replace(context=context._replace(partition=zookeeper)),)


# ---- writes


def may_write(constants: Constants, control: Control, membership: Membership) -> bool:
    """C3: multi[check /controller_epoch, ...]. fenced_zookeeper_write (KAFKA-6082) is the check."""
    return control.epoch == membership.epoch or not constants.keeps("fenced_zookeeper_write")


def put_state(
    constants: Constants,
    control: Control,
    membership: Membership,
    zookeeper: Partition,
    leader: int,
    isr: int,
) -> Partition | None:
    """The state in the next leader epoch, if its write at the version that the controller knows succeeds."""
    context = control.context
    assert context
    if context.partition.version != zookeeper.version or zookeeper.version >= constants.writes:
        return None
    if not may_write(constants, control, membership):
        return None
    return Partition(
        leader=leader,
        leader_epoch=zookeeper.leader_epoch + 1,
        isr=isr,
        controller_epoch=control.epoch,
        version=zookeeper.version + 1,
        stamp=membership.registered,
    )


def write(
    constants: Constants,
    number: int,
    control: Control,
    membership: Membership,
    zookeeper: Partition,
    sent: Sent,
) -> Steps:
    """C3, C8: a clean election or a smaller ISR, then LeaderAndIsr to whoever lives."""
    context = control.context
    if not context or not has_to_write(constants, context):
        return
    for action, leader, isr in _decisions(constants, number, context):
        after = put_state(constants, control, membership, zookeeper, leader, isr)
        if after is not None:
            known = control._replace(context=context._replace(partition=after))
            yield action, (known, after, told(constants, known, sent))


def _decisions(constants: Constants, number: int, context: Context) -> Iterator[tuple[Action, int, int]]:
    """What has to be written, by what the controller knows: each action with the leader and the ISR.

    keep_last_isr_member (KAFKA-708): when nobody of the ISR lives, the last member stays in it.
    """
    partition, count = context.partition, constants.brokers
    alive = _alive(partition.isr, context)
    if partition.leader != NONE and alive >> partition.leader & 1 and not _restarted(constants, context):
        yield ("shrink_dead", number), partition.leader, alive
    elif alive:
        for leader in members(alive, count):
            yield ("elect_leader", number, leader), leader, alive
    elif constants.keeps("keep_last_isr_member"):
        for last in members(partition.isr, count):
            yield ("no_leader", number, last), NONE, 1 << last
    else:
        yield ("no_leader", number, NONE), NONE, 0


def has_to_write(constants: Constants, context: Context) -> bool:
    """The leader is gone, or came back as another process; or a member of the ISR is gone; or nobody leads and somebody can."""
    alive = _alive(context.partition.isr, context)
    if context.partition.leader == NONE:
        return alive != 0
    return _restarted(constants, context) or alive != context.partition.isr


def _restarted(constants: Constants, context: Context) -> bool:
    """re_elect (decision 0001): a leader that registered after the state was written may be another process than the one that was elected."""
    partition = context.partition
    return (
        constants.keeps("re_elect")
        and partition.leader != NONE
        and context.live[partition.leader] > partition.stamp
    )


def _alive(brokers: int, context: Context) -> int:
    return sum(1 << broker for broker in members(brokers, len(context.live)) if context.live[broker] != NONE)


# ---- requests


def told(constants: Constants, control: Control, sent: Sent) -> Sent:
    """C10: one LeaderAndIsr batch at the end of an event, unless a write comes first. It names the target alone once the ISR is within it (KAFKA-1097)."""
    context = control.context
    assert context
    if has_to_write(constants, context):
        return sent
    partition, replicas = context.partition, context.assignment
    if context.target and not context.target & ~replicas and not partition.isr & ~context.target:
        replicas = context.target
    return _batch(control, context, (partition.leader, partition.version, replicas), context.assignment, sent)


def stopped(control: Control, context: Context, replicas: int, sent: Sent) -> Sent:
    """A StopReplica that deletes."""
    return _batch(control, context, (NONE, NONE, 0), replicas, sent)


def _batch(
    control: Control, context: Context, what: tuple[int, int, int], addressees: int, sent: Sent
) -> Sent:
    live = tuple(
        incarnation if addressees >> broker & 1 else NONE for broker, incarnation in enumerate(context.live)
    )
    if all(incarnation == NONE for incarnation in live):
        return sent
    leader, version, replicas = what
    batch = Batch(control.epoch, context.partition.leader_epoch, leader, version, replicas, live)
    return tuple(sorted({*sent, batch}))
