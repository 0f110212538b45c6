"""Sessions, processes, and the controller's office: one part of the controller model's actions.

Owns expiry, registration, crash, restart; the election of a controller and its end. Must not know the work of
a controller in office.
"""

from fencepost.model.controller.controller_state import NONE, Constants, Control, Host, Membership, Replica
from fencepost.model.explore.transition_system import EnabledActions

RESIGNED = Control(NONE, (), 0)
UNTOLD = Replica(NONE, NONE, NONE, NONE, 0, False)
DOWN = Host(False, NONE, NONE)


def resigned(constants: Constants, control: Control) -> Control:
    """The controller after its resignation. reset_on_resign (KAFKA-5310): it forgets all its state; without
    the protection, its reassignment survives.

    Args:
        constants: the bounds.
        control: the controller.

    Returns:
        the new state.
    """
    if constants.keeps("reset_on_resign"):
        return RESIGNED
    return Control(NONE, (), control.context.target if control.context else control.kept)


def expire(constants: Constants, number: int, membership: Membership) -> EnabledActions:
    """ZooKeeper ends a session: its ephemeral nodes are removed. The broker does not know yet.

    Args:
        constants: the bounds.
        number: the broker.
        membership: ZooKeeper's membership.

    Returns:
        the enabled actions.
    """
    gone = sum(registration == NONE for registration in membership.registrations)
    if membership.registrations[number] == NONE or membership.registered + gone >= constants.sessions:
        return
    held = membership.controller == number
    yield (
        ("expire", number),
        (
            membership._replace(
                controller=NONE if held else membership.controller,
                registrations=_put(membership.registrations, number, NONE),
            ),
        ),
    )


def register(
    constants: Constants, number: int, host: Host, control: Control, replica: Replica, membership: Membership
) -> EnabledActions:
    """A new session and a new registration. A process that continues keeps its state; as a controller it
    resigns.

    Args:
        constants: the bounds.
        number: the broker.
        host: its process.
        control: its controller.
        replica: its replica.
        membership: ZooKeeper's membership.

    Returns:
        the enabled actions.
    """
    if membership.registrations[number] != NONE:
        return
    incarnation = membership.registered + 1
    after = membership._replace(
        registrations=_put(membership.registrations, number, incarnation), registered=incarnation
    )
    if host.running:
        yield (
            ("notice", number),
            (host._replace(incarnation=incarnation), resigned(constants, control), replica, after),
        )
    else:
        yield ("restart", number), (Host(True, incarnation, incarnation), control, replica, after)


def crash(
    constants: Constants, number: int, host: Host, control: Control, replica: Replica, crashes: int
) -> EnabledActions:
    """The process dies; ZooKeeper notices when the session expires.

    Args:
        constants: the bounds.
        number: the broker.
        host: its process.
        control: its controller.
        replica: its replica.
        crashes: crashes so far.

    Returns:
        the enabled actions.
    """
    if host.running and crashes < constants.crashes:
        yield ("crash", number), (DOWN, RESIGNED, UNTOLD._replace(stored=replica.stored), crashes + 1)


def elect(
    constants: Constants, number: int, host: Host, control: Control, membership: Membership
) -> EnabledActions:
    """C1: multi[create /controller, set /controller_epoch to e + 1 at its version]. It has a session; the
    epoch is read only here.

    Args:
        constants: the bounds.
        number: the broker.
        host: its process.
        control: its controller.
        membership: ZooKeeper's membership.

    Returns:
        the enabled actions.
    """
    if (
        host.running
        and control.epoch == NONE
        and membership.registrations[number] == host.incarnation
        and membership.controller == NONE
        and membership.epoch < constants.epochs
    ):
        epoch = membership.epoch + 1
        after = membership._replace(controller=number, epoch=epoch)
        yield ("elect", number), (control._replace(epoch=epoch), after)
        if membership.unheard < constants.unheard:
            yield ("elect_unheard", number), (control, after._replace(unheard=membership.unheard + 1))


def names_me(
    constants: Constants, number: int, host: Host, control: Control, membership: Membership
) -> EnabledActions:
    """names_me (KAFKA-13407): a broker finds itself in /controller, by its own multi with a lost reply, so it
    is the controller.

    Args:
        constants: the bounds.
        number: the broker.
        host: its process.
        control: its controller.
        membership: ZooKeeper's membership.

    Returns:
        the enabled actions.
    """
    if (
        host.running
        and control.epoch == NONE
        and membership.registrations[number] == host.incarnation
        and membership.controller == number
    ):
        yield ("names_me", number), (control._replace(epoch=membership.epoch),)


def moved(constants: Constants, number: int, control: Control, membership: Membership) -> EnabledActions:
    """C3: the check of /controller_epoch in a multi fails, or a broker answers with a higher epoch: the
    controller resigns.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        membership: ZooKeeper's membership.

    Returns:
        the enabled actions.
    """
    if control.epoch != membership.epoch:
        yield ("moved", number), (resigned(constants, control),)


def adopt(constants: Constants, number: int, control: Control, membership: Membership) -> EnabledActions:
    """Without epoch_read_in_election_only (KAFKA-1096): a watch on /controller_epoch fires, and a deposed
    controller adopts the new epoch as its own.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        membership: ZooKeeper's membership.

    Returns:
        the enabled actions.
    """
    if control.epoch != membership.epoch:
        yield ("adopt_epoch", number), (control._replace(epoch=membership.epoch),)


def _put(values: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])
