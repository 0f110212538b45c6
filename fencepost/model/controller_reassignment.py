"""Reassignment, step by step: one part of the controller model's actions.

Owns: the order (SPEC.md C12), each step with a write or a batch of its own, so that a fail-over may come at any of them. Must not know how a controller
elects otherwise, nor what brokers make of its requests.

    1. ask          an admin names the target in /admin/reassign_partitions
    2. grow         the assignment becomes old and target replicas together; or refuse, if one of the target is dead
    3. raise_epoch  the leader epoch grows, so that leader and new replicas learn of the assignment
    4. (the leader expands the ISR, see_state)
    5. move         the whole target is in sync: a leader within it, the ISR without the old replicas, in one write
    6. stop_old     the old replicas are told to stop and delete. As in Kafka nobody waits for their answers
    7. retire       the assignment becomes the target
    8. remove_entry
"""

from collections.abc import Iterator

from fencepost.model.controller_state import (
    NONE,
    Admin,
    Constants,
    Context,
    Control,
    Membership,
    Partition,
    Sent,
    members,
)
from fencepost.model.controller_work import has_to_write, may_write, put_state, stopped, told
from fencepost.model.explore.system import Action, Value

Steps = Iterator[tuple[Action, tuple[Value, ...]]]
"""Enabled actions, each with the values that it writes."""


def ask(constants: Constants, admin: Admin) -> Steps:
    """Step 1: any other set of as many brokers, while no other reassignment is pending."""
    if admin.target or admin.asked >= constants.reassignments:
        return
    for target in range(1, 1 << constants.brokers):
        if target.bit_count() == admin.assignment.bit_count() and target != admin.assignment:
            yield ("ask", target), (admin._replace(target=target, asked=admin.asked + 1),)


def see_target(constants: Constants, number: int, control: Control, admin: Admin) -> Steps:
    """The watch on /admin/reassign_partitions fires; what is under way already is known."""
    context = control.context
    if context and not context.target and admin.target:
        yield ("see_target", number), (control._replace(context=context._replace(target=admin.target)),)


def assign(
    constants: Constants, number: int, control: Control, membership: Membership, admin: Admin
) -> Steps:
    """Steps 2, 7 and 8: fenced writes of the assignment and of the entry."""
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
    elif context.step == 2:
        known = context._replace(assignment=target)
        yield ("retire", number), (control._replace(context=known), admin._replace(assignment=target))


def replace(
    constants: Constants,
    number: int,
    control: Control,
    membership: Membership,
    zookeeper: Partition,
    sent: Sent,
) -> Steps:
    """Steps 3, 5 and 6: the partition's state, and what the brokers are told. Elections that are due come first."""
    context = control.context
    if not context or not _under_way(context) or has_to_write(constants, context):
        return
    target, partition = context.target, context.partition
    if partition.leader == NONE:
        return
    if context.step == 1 and _moved(context):
        batches = stopped(control, context, context.assignment & ~target, sent)
        yield ("stop_old", number), (control._replace(context=context._replace(step=2)), zookeeper, batches)
        return
    choices: list[tuple[Action, int, int]] = []
    if context.step == 0:
        choices = [(("raise_epoch", number), partition.leader, partition.isr)]
    elif context.step == 1 and not target & ~partition.isr:
        stays = target >> partition.leader & 1
        leaders = [partition.leader] if stays else members(target, constants.brokers)
        choices = [(("move", number, leader), leader, target) for leader in leaders]
    for action, leader, isr in choices:
        after = put_state(constants, control, membership, zookeeper, leader, isr)
        if after is not None:
            known = control._replace(context=context._replace(partition=after, step=1))
            yield action, (known, after, told(constants, known, sent))


def _under_way(context: Context) -> bool:
    target, assignment = context.target, context.assignment
    return bool(target) and target != assignment and not target & ~assignment


def _moved(context: Context) -> bool:
    partition = context.partition
    return partition.isr == context.target and bool(context.target >> partition.leader & 1)
