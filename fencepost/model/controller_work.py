"""What a controller does in office: one part of the controller model's actions.

Owns: what it reads, decides, writes and sends. Must not know how it came into office, nor what brokers make of its requests.
"""

from collections.abc import Iterator

from fencepost.model.controller_state import (
    NONE,
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
    sent: Sent,
) -> Steps:
    """C6, C9: it reads the state and the registrations, or the registrations again. If nothing has to be written, it tells the brokers."""
    context = control.context
    if not context:
        after = Context(zookeeper, membership.registrations)
        yield ("load", number), _told(constants, control._replace(context=after), sent)
    elif context.live != membership.registrations:
        after = context._replace(live=membership.registrations)
        yield ("see_brokers", number), _told(constants, control._replace(context=after), sent)


def see_state(constants: Constants, number: int, control: Control, zookeeper: Partition) -> Steps:
    """After an ISR notification or a bad version it reads the state again."""
    context = control.context
    if context and context.partition != zookeeper:
        yield ("see_state", number), (control._replace(context=context._replace(partition=zookeeper)),)


def write(
    constants: Constants,
    number: int,
    control: Control,
    membership: Membership,
    zookeeper: Partition,
    sent: Sent,
) -> Steps:
    """C3, C8: multi[check /controller_epoch, set the state at its version], then LeaderAndIsr to whoever lives.

    fenced_zookeeper_write (KAFKA-6082): the check of the epoch.
    """
    context = control.context
    if not context or context.partition.version != zookeeper.version:
        return
    if constants.keeps("fenced_zookeeper_write") and control.epoch != membership.epoch:
        return
    if zookeeper.version >= constants.writes:
        return
    for action, leader, isr in _decisions(constants, number, context):
        after = Partition(
            leader=leader,
            leader_epoch=zookeeper.leader_epoch + 1,
            isr=isr,
            controller_epoch=control.epoch,
            version=zookeeper.version + 1,
            stamp=membership.registered,
        )
        known, batches = _told(constants, control._replace(context=context._replace(partition=after)), sent)
        yield action, (known, after, batches)


def _decisions(constants: Constants, number: int, context: Context) -> Iterator[tuple[Action, int, int]]:
    """What has to be written, by what the controller knows: each action with the leader and the ISR.

    keep_last_isr_member (KAFKA-708): when nobody of the ISR lives, the last member stays in it.
    """
    partition, count = context.partition, constants.brokers
    alive = partition.isr & sum(1 << broker for broker in range(count) if context.live[broker] != NONE)
    if not _has_to_write(constants, context):
        return
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


def _has_to_write(constants: Constants, context: Context) -> bool:
    """The leader is gone, or came back as another process; or a member of the ISR is gone; or nobody leads and somebody can."""
    partition, live = context.partition, context.live
    isr = members(partition.isr, constants.brokers)
    if partition.leader == NONE:
        return any(live[member] != NONE for member in isr)
    return _restarted(constants, context) or any(live[member] == NONE for member in isr)


def _restarted(constants: Constants, context: Context) -> bool:
    """re_elect (decision 0001): a leader that registered after the state was written may be another process than the one that was elected."""
    partition = context.partition
    return (
        constants.keeps("re_elect")
        and partition.leader != NONE
        and context.live[partition.leader] > partition.stamp
    )


def _told(constants: Constants, control: Control, sent: Sent) -> tuple[Control, Sent]:
    """One batch at the end of an event (C10), unless a write comes first."""
    context = control.context
    assert context
    if _has_to_write(constants, context):
        return control, sent
    partition = context.partition
    batch = Batch(control.epoch, partition.leader_epoch, partition.leader, partition.version, context.live)
    return control, tuple(sorted({*sent, batch}))
