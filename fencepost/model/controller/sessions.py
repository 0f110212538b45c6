"""Sessions, processes, and who is in office: one part of the controller model's actions.

Owns: expiry, registration, crash, restart; the election of a controller and its end. Must not know what a
controller does in office.
"""

from fencepost.model.controller.state import NONE, Constants, Control, Host, Membership, Replica
from fencepost.model.explore.system import EnabledActions

RESIGNED = Control(NONE, (), 0)
UNTOLD = Replica(NONE, NONE, NONE, NONE, 0, False)
DOWN = Host(False, NONE, NONE)


def resigned(constants: Constants, control: Control) -> Control:
    """Out of office. reset_on_resign (KAFKA-5310): it forgets all that it knew; without, what it was
    reassigning survives."""
    if constants.keeps("reset_on_resign"):
        return RESIGNED
    return Control(NONE, (), control.context.target if control.context else control.kept)


def expire(constants: Constants, number: int, membership: Membership) -> EnabledActions:
    """ZooKeeper ends a session: its ephemeral nodes go. The broker does not know yet."""
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
    """A new session, a new registration. A process that went on keeps what it was told; as a controller it
    resigns."""
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
    """The process dies; ZooKeeper will know when the session expires."""
    if host.running and crashes < constants.crashes:
        yield ("crash", number), (DOWN, RESIGNED, UNTOLD._replace(stored=replica.stored), crashes + 1)


def elect(
    constants: Constants, number: int, host: Host, control: Control, membership: Membership
) -> EnabledActions:
    """C1: multi[create /controller, set /controller_epoch to e + 1 at its version]. It took a session; the
    epoch is read here and nowhere else."""
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
    """names_me (KAFKA-13407): it finds itself in /controller, by a multi whose reply was lost, so it is the
    controller."""
    if (
        host.running
        and control.epoch == NONE
        and membership.registrations[number] == host.incarnation
        and membership.controller == number
    ):
        yield ("names_me", number), (control._replace(epoch=membership.epoch),)


def moved(constants: Constants, number: int, control: Control, membership: Membership) -> EnabledActions:
    """C3: the check of /controller_epoch in a multi fails, or a broker answers with a higher epoch: it
    resigns."""
    if control.epoch != membership.epoch:
        yield ("moved", number), (resigned(constants, control),)


def adopt(constants: Constants, number: int, control: Control, membership: Membership) -> EnabledActions:
    """Without epoch_read_in_election_only (KAFKA-1096): a watch on /controller_epoch fires, a deposed
    controller takes the new epoch for its own."""
    if control.epoch != membership.epoch:
        yield ("adopt_epoch", number), (control._replace(epoch=membership.epoch),)


def _put(values: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])
