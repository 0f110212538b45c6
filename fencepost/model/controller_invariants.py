"""What must hold in the controller model, named as in the bug zoo.

Owns: CTRL-FENCE, EPOCH-MONO, ISR-IN-AR, ISR-NONEMPTY, ASSIGN and COMMIT-SAFE, on states of the model and on its steps; and the `sometimes`, what a useful
exploration reaches. Must not know the actions' bodies.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations

from fencepost.model.controller_state import (
    NONE,
    Admin,
    Control,
    Host,
    Led,
    Membership,
    Partition,
    Replica,
    State,
)
from fencepost.model.explore.system import Action, Part

NAMES = ("CTRL-FENCE", "EPOCH-MONO", "ISR-IN-AR", "ISR-NONEMPTY", "ASSIGN", "COMMIT-SAFE")
"""Which name a violation, in this order."""


def hold_apart(one: Control, other: Control) -> bool:
    """CTRL-FENCE of a state: no two brokers hold one controller epoch."""
    return one.epoch == NONE or one.epoch != other.epoch


def led_once(led: Led) -> bool:
    """EPOCH-MONO of a state: one process ever leads in a leader epoch."""
    return len({epoch for epoch, _, _ in led}) == len(led)


def leader_in_sync(partition: Partition, admin: Admin) -> bool:
    """ISR-IN-AR: the leader is in the ISR, or nobody leads; the ISR is part of the assignment."""
    leads = partition.leader == NONE or bool(partition.isr >> partition.leader & 1)
    return leads and not partition.isr & ~admin.assignment


def assigned_as_asked(admin: Admin) -> bool:
    """ASSIGN: with no reassignment pending, the assignment is what the last completed one asked for."""
    return bool(admin.target) or admin.assignment == admin.completed


def in_sync_has_log(number: int, replica: Replica, partition: Partition) -> bool:
    """COMMIT-SAFE: no member of the ISR has deleted its log."""
    return replica.stored or not partition.isr >> number & 1


def isr_not_empty(partition: Partition) -> bool:
    """ISR-NONEMPTY: somebody is known to hold everything."""
    return partition.isr != 0


def fences_controllers(before: State, action: Action, after: State) -> bool:
    """CTRL-FENCE of a step: an election is written by the controller in office, and no running broker obeys a lower controller epoch after a higher one."""
    elected = after.partition.leader_epoch != before.partition.leader_epoch
    if elected and after.partition.controller_epoch != before.membership.epoch:
        return False
    return action[0] == "crash" or all(
        one.obeyed <= other.obeyed for one, other in zip(before.replicas, after.replicas, strict=True)
    )


def epochs_grow(before: State, action: Action, after: State) -> bool:
    """EPOCH-MONO of a step: leader epochs never go back, neither in ZooKeeper nor at a running broker."""
    if after.partition.leader_epoch < before.partition.leader_epoch:
        return False
    return action[0] == "crash" or all(
        one.leader_epoch <= other.leader_epoch
        for one, other in zip(before.replicas, after.replicas, strict=True)
    )


OF_STEPS: Mapping[str, Callable[[State, Action, State], bool]] = {
    "CTRL-FENCE": fences_controllers,
    "EPOCH-MONO": epochs_grow,
}


def parts(brokers: int) -> Mapping[str, tuple[Part, ...]]:
    """The invariants of states. Slots as in controller.py."""
    zookeeper, led, admin = 3 * brokers + 1, 3 * brokers + 3, 3 * brokers + 5
    return {
        "CTRL-FENCE": tuple(
            Part((brokers + one, brokers + other), hold_apart)
            for one, other in combinations(range(brokers), 2)
        ),
        "EPOCH-MONO": (Part((led,), led_once),),
        "ISR-IN-AR": (Part((zookeeper, admin), leader_in_sync),),
        "ISR-NONEMPTY": (Part((zookeeper,), isr_not_empty),),
        "ASSIGN": (Part((admin,), assigned_as_asked),),
        "COMMIT-SAFE": tuple(
            Part((2 * brokers + number, zookeeper), partial(in_sync_has_log, number))
            for number in range(brokers)
        ),
    }


def _in_office_without_session(number: int, host: Host, control: Control, membership: Membership) -> bool:
    return control.epoch != NONE and membership.registrations[number] != host.incarnation


def _both_in_office(one: Control, other: Control) -> bool:
    return one.epoch != NONE and other.epoch != NONE


def _lead_both(one_number: int, other_number: int, one: Replica, other: Replica) -> bool:
    return one.leader == one_number and other.leader == other_number


def _nobody_leads(partition: Partition) -> bool:
    return partition.leader == NONE


def goals(brokers: int) -> Mapping[str, tuple[Part, ...]]:
    """What a useful exploration reaches."""
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
