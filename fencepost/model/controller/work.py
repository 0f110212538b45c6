"""The work of a controller in office: one part of the controller model's actions.

Owns its reads, decisions, writes and requests. Must not know how it came into office, or how brokers handle
its requests.
"""

from collections.abc import Iterator

from fencepost.model.controller.controller_state import (
    INELIGIBLE,
    NO_PARTITION,
    NONE,
    OFFLINE,
    OVERLOOKED,
    STARTED,
    UNDER_WAY,
    Admin,
    Constants,
    Context,
    Control,
    Membership,
    Partition,
    RequestBatch,
    Sent,
    members,
)
from fencepost.model.explore.transition_system import Action, EnabledActions


def read(
    constants: Constants,
    number: int,
    control: Control,
    membership: Membership,
    zookeeper: Partition,
    admin: Admin,
    sent: Sent,
) -> EnabledActions:
    """C6, C9: the controller reads the state, or the registrations again. If nothing has to be written, it
    sends requests to the brokers.

    resume_deletions (KAFKA-1681): it continues a deletion of its predecessor. Brokers that come and leave are
    another event, which waits until a reassignment has raised the leader epoch.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        membership: ZooKeeper's membership.
        zookeeper: ZooKeeper's state of the partition.
        admin: the requests of admins.
        sent: all requests that were ever sent.

    Returns:
        the enabled actions.
    """
    context = control.context
    if not context:
        nothing = constants.brokers * (NONE,)
        taken_up = UNDER_WAY if constants.keeps("resume_deletions") else OVERLOOKED
        after = Context(
            partition=zookeeper,
            live=membership.registrations,
            assignment=admin.assignment,
            target=control.kept or admin.target,
            step=0,
            deletion=taken_up if admin.deleting else 0,
            phases=constants.brokers * (OFFLINE,),
            leaving=nothing,
            out=0,
        )
        known = Control(control.epoch, after, 0)
        yield ("load", number), (known, with_message(constants, known, sent))
    elif context.live != membership.registrations and not within_event(constants, context):
        known = control._replace(context=_with_brokers(context, membership.registrations))
        yield ("see_brokers", number), (known, with_message(constants, known, sent))


def under_way(context: Context) -> bool:
    """Whether the assignment has old and new replicas of a reassignment."""
    target, assignment = context.target, context.assignment
    return bool(target) and target != assignment and not target & ~assignment


def within_event(constants: Constants, context: Context) -> bool:
    """Whether the controller is between the larger assignment and its leader epoch, which is one event in
    Kafka: no batch of the old epoch has the new replicas.

    Args:
        constants: the bounds.
        context: what the controller knows.

    Returns:
        whether it is.
    """
    idle = context.partition.leader == NONE or has_to_write(constants, context)
    return context.step == 0 and under_way(context) and not idle


def _with_brokers(context: Context, live: tuple[int, ...]) -> Context:
    """A replica must get its StopReplica again if its broker left or bounced meanwhile. A shutdown ends with
    its incarnation."""
    changed = [one != other for one, other in zip(context.live, live, strict=True)]
    return context._replace(
        live=live,
        phases=tuple(
            INELIGIBLE if bounced and phase == STARTED else phase
            for bounced, phase in zip(changed, context.phases, strict=True)
        ),
        leaving=tuple(
            NONE if bounced else leaving for bounced, leaving in zip(changed, context.leaving, strict=True)
        ),
        out=context.out & ~sum(1 << broker for broker, bounced in enumerate(changed) if bounced),
    )


def see_state(constants: Constants, number: int, control: Control, zookeeper: Partition) -> EnabledActions:
    """After an ISR notification or a version conflict the controller reads the state again.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        zookeeper: ZooKeeper's state of the partition.

    Returns:
        the enabled actions.
    """
    context = control.context
    if context and context.partition != zookeeper:
        yield ("see_state", number), (control._replace(context=context._replace(partition=zookeeper)),)


# ---- writes


def may_write(constants: Constants, control: Control, membership: Membership) -> bool:
    """C3: multi[check /controller_epoch, ...]. fenced_zookeeper_write (KAFKA-6082) is the check.

    Args:
        constants: the bounds.
        control: the controller.
        membership: ZooKeeper's membership.

    Returns:
        whether its write succeeds.
    """
    return control.epoch == membership.epoch or not constants.keeps("fenced_zookeeper_write")


def put_state(
    constants: Constants,
    control: Control,
    membership: Membership,
    zookeeper: Partition,
    leader: int,
    isr: int,
) -> Partition | None:
    """The state in the next leader epoch, if a write at the version that the controller knows succeeds."""
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
) -> EnabledActions:
    """C3, C8: a clean election or a smaller ISR, then LeaderAndIsr to live replicas.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        membership: ZooKeeper's membership.
        zookeeper: ZooKeeper's state of the partition.
        sent: all requests that were ever sent.

    Returns:
        the enabled actions.
    """
    context = control.context
    if not context or not has_to_write(constants, context):
        return
    for action, leader, isr in _decisions(constants, number, context):
        after = put_state(constants, control, membership, zookeeper, leader, isr)
        if after is not None:
            out = context.out | leaving(context) & context.partition.isr & ~after.isr
            known = control._replace(context=context._replace(partition=after, out=out))
            yield action, (known, after, with_message(constants, known, sent))


def _decisions(constants: Constants, number: int, context: Context) -> Iterator[tuple[Action, int, int]]:
    """The writes that are due by the controller's knowledge: each action with the leader and the ISR.

    keep_last_isr_member (KAFKA-708): if no ISR member is alive, the last one stays in the ISR.
    last_in_sync_stays (KAFKA-340): a stopping leader hands over to another member of the ISR, or stays.
    """
    partition, count = context.partition, constants.brokers
    able = electable(partition.isr, context)
    if _leader_stays(constants, context) and able:
        yield ("shrink_dead", number), partition.leader, able
    elif _leader_stays(constants, context):
        for leader in members(electable(context.assignment, context), count):
            yield ("elect_leader", number, leader), leader, 1 << leader
    elif able:
        for leader in members(able, count):
            yield ("elect_leader", number, leader), leader, able
    elif constants.keeps("keep_last_isr_member"):
        for last in members(partition.isr, count):
            yield ("no_leader", number, last), NONE, 1 << last
    else:
        yield ("no_leader", number, NONE), NONE, 0


def has_to_write(constants: Constants, context: Context) -> bool:
    """Whether a write is due: the leader is gone, stopping, or came back as another process; or a member of
    the ISR is; or there is no leader and a replica can lead. Never during a deletion.

    Args:
        constants: the bounds.
        context: what the controller knows.

    Returns:
        whether it is.
    """
    partition = context.partition
    if context.deletion == UNDER_WAY:
        return False
    able = electable(partition.isr, context)
    if partition.leader == NONE:
        return able != 0
    if able or not _leader_stays(constants, context):
        return able != partition.isr or _restarted(constants, context)
    return not constants.keeps("last_in_sync_stays") and electable(context.assignment, context) != 0


def _leader_stays(constants: Constants, context: Context) -> bool:
    """Whether the leader is alive, and does not stop while another member of the ISR stays."""
    leader, isr = context.partition.leader, context.partition.isr
    if leader == NONE or context.live[leader] == NONE or _restarted(constants, context):
        return False
    return bool(isr >> leader & 1) and (not _is_leaving(leader, context) or not electable(isr, context))


def _is_leaving(broker: int, context: Context) -> bool:
    return context.leaving[broker] != NONE


def leaving(context: Context) -> int:
    """The brokers that asked to stop."""
    return sum(1 << broker for broker in range(len(context.live)) if _is_leaving(broker, context))


def _restarted(constants: Constants, context: Context) -> bool:
    """re_elect (decision 0001): a leader that registered after the state was written may be another process
    than the elected one."""
    partition = context.partition
    return (
        constants.keeps("re_elect")
        and partition.leader != NONE
        and context.live[partition.leader] > partition.stamp
    )


def electable(brokers: int, context: Context) -> int:
    """Those of these brokers that may lead or be in sync: alive, and not stopping."""
    return sum(
        1 << broker
        for broker in members(brokers, len(context.live))
        if context.live[broker] != NONE and not _is_leaving(broker, context)
    )


# ---- requests


def with_message(constants: Constants, control: Control, sent: Sent) -> Sent:
    """C10: one LeaderAndIsr batch at the end of an event, unless a write comes first. It has only the target
    once the ISR is within it (KAFKA-1097). A topic under deletion has none.

    Args:
        constants: the bounds.
        control: the controller.
        sent: all requests that were ever sent.

    Returns:
        the requests with the new one.
    """
    context = control.context
    assert context
    if has_to_write(constants, context) or context.deletion == UNDER_WAY or context.partition == NO_PARTITION:
        return sent
    partition, replicas = context.partition, context.assignment
    if context.target and not context.target & ~replicas and not partition.isr & ~context.target:
        replicas = context.target
    what = (partition.leader_epoch, partition.leader, partition.version, replicas)
    return _batch(control, what, addressees(context, context.assignment), leaving(context), sent)


def stopped(control: Control, leader_epoch: int, live: tuple[int, ...], sent: Sent) -> Sent:
    """A StopReplica that deletes.

    Args:
        control: the controller.
        leader_epoch: the leader epoch in it.
        live: for each broker the incarnation that it is for, or NONE.
        sent: all requests that were ever sent.

    Returns:
        the requests with the new one.
    """
    return _batch(control, (leader_epoch, NONE, NONE, 0), live, 0, sent)


def addressees(context: Context, replicas: int) -> tuple[int, ...]:
    """For each broker its incarnation, if it is live and among `replicas`; otherwise NONE.

    Args:
        context: what the controller knows.
        replicas: brokers as a bit set.

    Returns:
        one entry per broker.
    """
    return tuple(
        incarnation if replicas >> broker & 1 else NONE for broker, incarnation in enumerate(context.live)
    )


def _batch(
    control: Control, what: tuple[int, int, int, int], live: tuple[int, ...], going: int, sent: Sent
) -> Sent:
    if all(incarnation == NONE for incarnation in live):
        return sent
    leader_epoch, leader, version, replicas = what
    batch = RequestBatch(control.epoch, leader_epoch, leader, version, replicas, live, going)
    return tuple(sorted({*sent, batch}))
