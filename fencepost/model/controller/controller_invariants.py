"""The invariants of the controller model, named as in the bug zoo.

Owns CTRL-FENCE, EPOCH-MONO, ISR-IN-AR, ISR-NONEMPTY, ASSIGN, COMMIT-SAFE, DEL-COMPLETE, STOP-SAFE and
INCARNATION, on states and on steps; what must stay possible (LIVE, DEL-COMPLETE); and the `sometimes` goals
that a useful exploration reaches. Must not know the bodies of actions.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations

from fencepost.model.controller.controller_state import (
    NO_PARTITION,
    NONE,
    Admin,
    Constants,
    Control,
    ControllerState,
    Host,
    Led,
    Membership,
    Partition,
    Replica,
    Stopping,
)
from fencepost.model.controller.deletion import is_stuck
from fencepost.model.explore.transition_system import Action, Eventually, Part

NAMES = (
    "CTRL-FENCE",
    "EPOCH-MONO",
    "ISR-IN-AR",
    "ISR-NONEMPTY",
    "ASSIGN",
    "COMMIT-SAFE",
    "DEL-COMPLETE",
    "STOP-SAFE",
    "INCARNATION",
)
"""If several invariants are violated, the first one names the violation."""


def hold_apart(one: Control, other: Control) -> bool:
    """CTRL-FENCE of a state: no two brokers have one controller epoch."""
    return one.epoch == NONE or one.epoch != other.epoch


def led_once(led: Led) -> bool:
    """EPOCH-MONO of a state: at most one process ever leads in a leader epoch."""
    return len({epoch for epoch, _, _ in led}) == len(led)


def leader_in_sync(partition: Partition, admin: Admin) -> bool:
    """ISR-IN-AR: the leader, if any, is in the ISR; the ISR is part of the assignment.

    Args:
        partition: ZooKeeper's state of the partition.
        admin: the assignment.

    Returns:
        whether it holds.
    """
    leads = partition.leader == NONE or bool(partition.isr >> partition.leader & 1)
    return leads and not partition.isr & ~admin.assignment


def assigned_as_asked(admin: Admin) -> bool:
    """ASSIGN: without a pending reassignment, the assignment is the target of the last completed one."""
    return bool(admin.target) or admin.assignment == admin.completed


def in_sync_has_log(number: int, replica: Replica, partition: Partition, admin: Admin) -> bool:
    """COMMIT-SAFE of a state: no member of the ISR has deleted its log, unless the topic is being deleted.

    Args:
        number: the broker.
        replica: its replica.
        partition: ZooKeeper's state of the partition.
        admin: the requests of admins.

    Returns:
        whether it holds.
    """
    return replica.stored or admin.deleting or not partition.isr >> number & 1


def isr_not_empty(partition: Partition) -> bool:
    """ISR-NONEMPTY: at least one replica is known to have everything."""
    return partition.isr != 0 or partition == NO_PARTITION


def gone_without_trace(replica: Replica, admin: Admin) -> bool:
    """DEL-COMPLETE: when the topic's node is removed, no broker has a log of it, or gets one again.

    Args:
        replica: a broker's replica.
        admin: the assignment.

    Returns:
        whether it holds.
    """
    return bool(admin.assignment) or not replica.stored


def stays_out(number: int, control: Control, membership: Membership, partition: Partition) -> bool:
    """STOP-SAFE: a broker that the current controller removed from the ISR because it is stopping does not
    rejoin before it has come back.

    Args:
        number: the controller's broker.
        control: the controller.
        membership: ZooKeeper's membership.
        partition: ZooKeeper's state of the partition.

    Returns:
        whether it holds.
    """
    context = control.context
    if not context or membership.controller != number or membership.epoch != control.epoch:
        return True
    same = sum(
        1 << broker
        for broker, incarnation in enumerate(context.leaving)
        if incarnation == membership.registrations[broker]
    )
    return not context.out & same & partition.isr


def stops_by_itself(control: Control, stopping: Stopping) -> bool:
    """INCARNATION: a controller treats a broker as stopping only if it has asked in this incarnation.
    Otherwise the broker would never lead or be in sync again."""
    context = control.context
    return not context or all(
        incarnation == NONE or (broker, incarnation) in stopping
        for broker, incarnation in enumerate(context.leaving)
    )


ENDS = ("crash", "stop")
"""The actions that end a process: its state ends with it."""


def _elects(before: ControllerState, after: ControllerState) -> bool:
    return after.partition.leader_epoch != before.partition.leader_epoch and after.partition != NO_PARTITION


def fences_controllers(before: ControllerState, action: Action, after: ControllerState) -> bool:
    """CTRL-FENCE of a step: only the current controller writes an election, and no running broker obeys a
    lower controller epoch after a higher one."""
    elected = _elects(before, after)
    if elected and after.partition.controller_epoch != before.membership.epoch:
        return False
    return action[0] in ENDS or all(
        one.obeyed <= other.obeyed for one, other in zip(before.replicas, after.replicas, strict=True)
    )


def epochs_grow(before: ControllerState, action: Action, after: ControllerState) -> bool:
    """EPOCH-MONO of a step: leader epochs never decrease, neither in ZooKeeper nor at a running broker.

    Args:
        before: the state before.
        action: the action.
        after: the state after.

    Returns:
        whether it holds.
    """
    if _elects(before, after) and after.partition.leader_epoch < before.partition.leader_epoch:
        return False
    return action[0] in ENDS or all(
        one.leader_epoch <= other.leader_epoch
        for one, other in zip(before.replicas, after.replicas, strict=True)
    )


def elects_in_sync(before: ControllerState, action: Action, after: ControllerState) -> bool:
    """COMMIT-SAFE of a step: an elected leader was in sync.

    Args:
        before: the state before.
        action: the action.
        after: the state after.

    Returns:
        whether it holds.
    """
    leader = after.partition.leader
    return not _elects(before, after) or leader == NONE or bool(before.partition.isr >> leader & 1)


OF_STEPS: Mapping[str, Callable[[ControllerState, Action, ControllerState], bool]] = {
    "CTRL-FENCE": fences_controllers,
    "EPOCH-MONO": epochs_grow,
    "COMMIT-SAFE": elects_in_sync,
}


def parts(constants: Constants) -> Mapping[str, tuple[Part, ...]]:
    """The invariants of states. Slots as in controller_system.py. Features that are off need no check."""
    count = constants.brokers
    membership, zookeeper, led, admin, stopping = (3 * count + at for at in (0, 1, 3, 5, 6))
    numbers = range(count)
    deletion = [Part((2 * count + n, admin), gone_without_trace) for n in numbers]
    deletion += [Part((count + n, membership, admin), partial(_goes_on, constants, n)) for n in numbers]
    stops = [Part((count + n, membership, zookeeper), partial(stays_out, n)) for n in numbers]
    return {
        "CTRL-FENCE": tuple(
            Part((count + one, count + other), hold_apart) for one, other in combinations(numbers, 2)
        ),
        "EPOCH-MONO": (Part((led,), led_once),),
        "ISR-IN-AR": (Part((zookeeper, admin), leader_in_sync),),
        "ISR-NONEMPTY": (Part((zookeeper,), isr_not_empty),),
        "ASSIGN": (Part((admin,), assigned_as_asked),),
        "COMMIT-SAFE": tuple(
            Part((2 * count + number, zookeeper, admin), partial(in_sync_has_log, number))
            for number in numbers
        ),
        "DEL-COMPLETE": tuple(deletion) if constants.deletions else (),
        "STOP-SAFE": tuple(stops) if constants.shutdowns else (),
        "INCARNATION": tuple(Part((count + number, stopping), stops_by_itself) for number in numbers)
        if constants.shutdowns
        else (),
    }


def _goes_on(
    constants: Constants, number: int, control: Control, membership: Membership, admin: Admin
) -> bool:
    """DEL-COMPLETE: a controller in office that is up to date has a step to take, or waits for a broker."""
    return not is_stuck(constants, number, control, membership, admin)


FAULTS = frozenset(
    {
        "expire",
        "crash",
        "elect_unheard",
        "shrink_isr_unheard",
        "lose_request",
        "ask",
        "ask_deletion",
        "ask_shutdown",
    }
)
"""Actions that bring something new; the other actions happen in any cluster without faults or requests."""


def _not_wanted(admin: Admin) -> bool:
    return not admin.deleting


def _waits_for_expiry(number: int, host: Host, membership: Membership) -> bool:
    return not host.running and membership.registrations[number] != NONE


def _out_of_epochs(epochs: int, membership: Membership) -> bool:
    return membership.controller == NONE and membership.epoch == epochs


def _controls(number: int, control: Control, membership: Membership) -> bool:
    return membership.controller == number and control.epoch == membership.epoch


def somebody_controls(constants: Constants) -> Eventually:
    """LIVE: some controller is in office and knows it. Exceptions: a session that must expire first, and the
    bound on controller epochs."""
    count = constants.brokers
    membership = 3 * count
    return Eventually(
        (
            *(Part((count + n, membership), partial(_controls, n)) for n in range(count)),
            Part((membership,), partial(_out_of_epochs, constants.epochs)),
            *(Part((n, membership), partial(_waits_for_expiry, n)) for n in range(count)),
        ),
        FAULTS,
    )


def _can_write(number: int, host: Host, replica: Replica, partition: Partition) -> bool:
    return host.running and replica.leader == number and replica.version == partition.version


def _no_leader_to_write(writes: int, partition: Partition) -> bool:
    return partition.leader == NONE or partition.version >= writes


def _leads_no_more(number: int, host: Host, partition: Partition) -> bool:
    return partition.leader == number and not host.running


def leader_writes(constants: Constants) -> Eventually:
    """LIVE of the ISR: the leader knows the version for its next write. Exceptions: there is no leader, its
    process has ended, or the bounds."""
    count = constants.brokers
    zookeeper = 3 * count + 1
    return Eventually(
        (
            Part((zookeeper,), partial(_no_leader_to_write, constants.writes)),
            Part((3 * count,), partial(_out_of_epochs, constants.epochs)),
            *(Part((n, 2 * count + n, zookeeper), partial(_can_write, n)) for n in range(count)),
            *(Part((n, zookeeper), partial(_leads_no_more, n)) for n in range(count)),
        ),
        FAULTS,
    )


def deletion_ends(constants: Constants) -> Eventually:
    """DEL-COMPLETE of runs. Exceptions: a session that must expire first, and the bound on controller
    epochs."""
    count = constants.brokers
    membership, admin = 3 * count, 3 * count + 5
    return Eventually(
        (
            Part((admin,), _not_wanted),
            Part((membership,), partial(_out_of_epochs, constants.epochs)),
            *(Part((n, membership), partial(_waits_for_expiry, n)) for n in range(count)),
        ),
        FAULTS,
    )


def _in_office_without_session(number: int, host: Host, control: Control, membership: Membership) -> bool:
    return control.epoch != NONE and membership.registrations[number] != host.incarnation


def _both_in_office(one: Control, other: Control) -> bool:
    return one.epoch != NONE and other.epoch != NONE


def _lead_both(one_number: int, other_number: int, one: Replica, other: Replica) -> bool:
    return one.leader == one_number and other.leader == other_number


def _nobody_leads(partition: Partition) -> bool:
    return partition.leader == NONE


def goals(constants: Constants) -> Mapping[str, tuple[Part, ...]]:
    """The goals that a useful exploration reaches."""
    brokers = constants.brokers
    membership, zookeeper = 3 * brokers, 3 * brokers + 1
    pairs = tuple(combinations(range(brokers), 2))
    return {
        "a zombie controls": tuple(
            Part((n, brokers + n, membership), partial(_in_office_without_session, n)) for n in range(brokers)
        ),
        "two controllers at once": tuple(
            Part((brokers + one, brokers + other), _both_in_office) for one, other in pairs
        ),
        "two replicas lead at once": tuple(
            Part((2 * brokers + one, 2 * brokers + other), partial(_lead_both, one, other))
            for one, other in pairs
        ),
        "nobody leads": (Part((zookeeper,), _nobody_leads),),
    }
