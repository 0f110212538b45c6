"""Topic deletion, step by step: one part of the controller model's actions.

Owns the order (docs/spec/cluster.md C14). Each step has its own write or batch, so a failover may happen at
any of them. Must not know how a controller elects, or how brokers handle its requests.

    1. ask_deletion     an admin writes /admin/delete_topics/T
    2. see_deletion     the watch fires; no partition of the topic is elected any more, no LeaderAndIsr sent
    3. delete_replicas  each live replica's broker gets a StopReplica that deletes; the replica is
                        DeletionStarted, a dead one DeletionIneligible. Again for brokers that return, because
                        a replica is DeletionIneligible, too, if its broker left or bounced meanwhile
    4. deleted          a broker answers: the replica is DeletionSuccessful
    5. remove_state, remove_topic, remove_deletion: all are deleted; the nodes are removed, the one of step 1
                        last
"""

from fencepost.model.controller.controller_state import (
    INELIGIBLE,
    NO_PARTITION,
    NONE,
    OFFLINE,
    STARTED,
    SUCCESSFUL,
    UNDER_WAY,
    Admin,
    Constants,
    Context,
    Control,
    Host,
    Membership,
    Partition,
    Replica,
    Sent,
    members,
)
from fencepost.model.controller.work import addressees, may_write, stopped
from fencepost.model.explore.transition_system import EnabledActions


def ask(constants: Constants, admin: Admin) -> EnabledActions:
    """Step 1. The topic exists, and no reassignment is pending.

    Args:
        constants: the bounds.
        admin: the requests of admins.

    Returns:
        the enabled actions.
    """
    if constants.deletions and admin.assignment and not admin.target and not admin.deleting:
        yield ("ask_deletion",), (admin._replace(deleting=True),)


def see(constants: Constants, number: int, control: Control, admin: Admin) -> EnabledActions:
    """Step 2. A request from before the reign fires no watch.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        admin: the requests of admins.

    Returns:
        the enabled actions.
    """
    context = control.context
    if context and not context.deletion and admin.deleting:
        yield ("see_deletion", number), (control._replace(context=context._replace(deletion=UNDER_WAY)),)


def may_begin(constants: Constants, context: Context) -> int:
    """The replicas for which step 3 has work. offline_without_state (KAFKA-6650): also if the partition's
    state is already removed.

    Args:
        constants: the bounds.
        context: what the controller knows.

    Returns:
        the brokers as a bit set.
    """
    if context.partition == NO_PARTITION and not constants.keeps("offline_without_state"):
        return 0
    return sum(
        1 << broker
        for broker in members(context.assignment, constants.brokers)
        if context.phases[broker] == OFFLINE
        or (context.phases[broker] == INELIGIBLE and context.live[broker] != NONE)
    )


def delete_replicas(constants: Constants, number: int, control: Control, sent: Sent) -> EnabledActions:
    """Step 3.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        sent: all requests that were ever sent.

    Returns:
        the enabled actions.
    """
    context = control.context
    if not context or context.deletion != UNDER_WAY:
        return
    begun = may_begin(constants, context)
    if begun:
        alive = addressees(context, begun)
        phases = tuple(
            (STARTED if alive[broker] != NONE else INELIGIBLE) if begun >> broker & 1 else phase
            for broker, phase in enumerate(context.phases)
        )
        known = control._replace(context=context._replace(phases=phases))
        yield ("delete_replicas", number), (known, stopped(control, constants.for_good, alive, sent))


def answer(
    constants: Constants, number: int, other: int, control: Control, its: Host, replica: Replica
) -> EnabledActions:
    """Step 4. The broker has obeyed this controller and has no log. It is alive, otherwise its answer would
    be older than its death."""
    context = control.context
    if (
        context
        and context.phases[other] == STARTED
        and its.running
        and replica.obeyed == control.epoch
        and replica.leader_epoch == constants.for_good
        and not replica.stored
    ):
        phases = (*context.phases[:other], SUCCESSFUL, *context.phases[other + 1 :])
        yield ("deleted", number, other), (control._replace(context=context._replace(phases=phases)),)


def all_deleted(context: Context) -> bool:
    """Whether every replica was deleted."""
    return all(
        context.phases[broker] == SUCCESSFUL for broker in members(context.assignment, len(context.phases))
    )


def complete(
    constants: Constants,
    number: int,
    control: Control,
    membership: Membership,
    zookeeper: Partition,
    admin: Admin,
) -> EnabledActions:
    """Step 5: fenced writes.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        membership: ZooKeeper's membership.
        zookeeper: ZooKeeper's state of the partition.
        admin: the requests of admins.

    Returns:
        the enabled actions.
    """
    context = control.context
    if not context or context.deletion != UNDER_WAY or not all_deleted(context):
        return
    if not may_write(constants, control, membership):
        return
    if context.partition != NO_PARTITION:
        known = context._replace(partition=NO_PARTITION)
        yield ("remove_state", number), (control._replace(context=known), NO_PARTITION, admin)
    elif context.assignment:
        known = context._replace(assignment=0)
        after = admin._replace(assignment=0, completed=0)
        yield ("remove_topic", number), (control._replace(context=known), zookeeper, after)
    else:
        known = context._replace(deletion=0)
        after = admin._replace(deleting=False)
        yield ("remove_deletion", number), (control._replace(context=known), zookeeper, after)


# ---- whether it can end


def is_stuck(
    constants: Constants, number: int, control: Control, membership: Membership, admin: Admin
) -> bool:
    """Whether a deletion is pending, this controller is in office and up to date, and it neither has a step
    to take nor waits for a broker.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        membership: ZooKeeper's membership.
        admin: the requests of admins.

    Returns:
        whether the deletion is stuck.
    """
    context = control.context
    if not admin.deleting or not context or context.live != membership.registrations:
        return False
    if membership.controller != number or membership.epoch != control.epoch:
        return False
    waits = any(
        context.phases[broker] == STARTED
        or (context.phases[broker] == INELIGIBLE and context.live[broker] == NONE)
        for broker in members(context.assignment, constants.brokers)
    )
    goes_on = context.deletion == UNDER_WAY and (
        waits or all_deleted(context) or may_begin(constants, context) != 0
    )
    return context.deletion != 0 and not goes_on
