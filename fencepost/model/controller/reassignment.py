"""Reassignment, step by step: one part of the controller model's actions.

Owns the order (docs/spec/cluster.md C12). Each step has its own write or batch, so a failover may happen at
any of them. Must not know other elections, or how brokers handle the requests.

    1. ask          an admin names the target in /admin/reassign_partitions
    2. grow         the assignment becomes old and target replicas together; or refuse, if one of the target
                    is dead
    3. raise_epoch  the leader epoch grows, so that leader and new replicas get the assignment
    4. (the leader expands the ISR, see_state)
    5. move         the whole target is in sync: a leader within it, the ISR without the old replicas, in one
                    write. Also if the state is already so: only the new leader epoch guarantees that the
                    leader got the target alone, and does not add an old replica again
    6. stop_old     the old replicas get StopReplica with deletion. As in Kafka, no answer is waited for
    7. retire       the assignment becomes the target
    8. remove_entry
"""

from fencepost.model.controller.controller_state import (
    NONE,
    Admin,
    Constants,
    Control,
    Membership,
    Partition,
    Sent,
    members,
)
from fencepost.model.controller.work import (
    addressees,
    has_to_write,
    may_write,
    put_state,
    stopped,
    under_way,
    with_message,
)
from fencepost.model.explore.transition_system import Action, EnabledActions


def ask(constants: Constants, admin: Admin) -> EnabledActions:
    """Step 1: any other set of equally many brokers, while no reassignment or deletion is pending.

    Args:
        constants: the bounds.
        admin: the requests of admins.

    Returns:
        the enabled actions.
    """
    if admin.target or admin.deleting or admin.asked >= constants.reassignments:
        return
    for target in range(1, 1 << constants.brokers):
        if target.bit_count() == admin.assignment.bit_count() and target != admin.assignment:
            yield ("ask", target), (admin._replace(target=target, asked=admin.asked + 1),)


def see_target(constants: Constants, number: int, control: Control, admin: Admin) -> EnabledActions:
    """The watch on /admin/reassign_partitions fires; work in progress is already known."""
    context = control.context
    if context and not context.target and admin.target:
        yield ("see_target", number), (control._replace(context=context._replace(target=admin.target)),)


def assign(
    constants: Constants, number: int, control: Control, membership: Membership, admin: Admin
) -> EnabledActions:
    """Steps 2, 7 and 8: fenced writes of the assignment and of the entry.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        membership: ZooKeeper's membership.
        admin: the requests of admins.

    Returns:
        the enabled actions.
    """
    context = control.context
    if not context or not context.target or not may_write(constants, control, membership):
        return
    target = context.target
    if target & ~context.assignment:
        alive = all(context.live[broker] != NONE for broker in members(target, constants.brokers))
        if alive:
            grown = context.assignment | target
            known = context._replace(assignment=grown)
            yield ("grow", number), (control._replace(context=known), admin._replace(assignment=grown))
        else:
            entry = 0 if admin.target == target else admin.target
            known = context._replace(target=0, step=0)
            yield ("refuse", number), (control._replace(context=known), admin._replace(target=entry))
    elif context.assignment == target:
        known = context._replace(target=0, step=0)
        completed = admin.target or admin.completed
        after = admin._replace(target=0, completed=completed)
        yield ("remove_entry", number), (control._replace(context=known), after)
    elif context.step == 3:
        known = context._replace(assignment=target)
        yield ("retire", number), (control._replace(context=known), admin._replace(assignment=target))


def replace(
    constants: Constants,
    number: int,
    control: Control,
    membership: Membership,
    zookeeper: Partition,
    sent: Sent,
) -> EnabledActions:
    """Steps 3, 5 and 6: the partition's state, and the requests to brokers. Elections that are due come
    first.

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
    if not context or not under_way(context) or has_to_write(constants, context):
        return
    target, partition = context.target, context.partition
    if partition.leader == NONE:
        return
    if context.step == 2:
        old = addressees(context, context.assignment & ~target)
        batches = stopped(control, partition.leader_epoch, old, sent)
        yield ("stop_old", number), (control._replace(context=context._replace(step=3)), zookeeper, batches)
        return
    choices: list[tuple[Action, int, int]] = []
    in_sync = not target & ~partition.isr
    if context.step == 0 and not in_sync:
        choices = [(("raise_epoch", number), partition.leader, partition.isr)]
    elif context.step < 2 and in_sync:
        stays = target >> partition.leader & 1
        leaders = [partition.leader] if stays else members(target, constants.brokers)
        choices = [(("move", number, leader), leader, target) for leader in leaders]
    for action, leader, isr in choices:
        after = put_state(constants, control, membership, zookeeper, leader, isr)
        if after is not None:
            known = control._replace(context=context._replace(partition=after, step=2 if in_sync else 1))
            yield action, (known, after, with_message(constants, known, sent))
