"""Controlled shutdown, step by step: one part of the controller model's actions.

Owns the requests, which of them are accepted, and when a broker stops (docs/spec/cluster.md C11). Must not
know how a controller elects: work.py has the rule that a stopping broker may neither lead nor be in sync.

    1. ask_shutdown   a broker sends ControlledShutdown with its broker epoch; the request may be late,
                      repeated or lost
    2. begin_shutdown the controller notes that this incarnation is stopping
    3. (elect_leader, shrink_dead: leadership moves within the ISR, or the broker leaves it; then
                      LeaderAndIsr, with the stopping brokers)
    4. stop           nothing remains to be moved: the broker gets the answer and stops; its session ends with
                      it. The answer is negative while the broker leads as the only member of the ISR
"""

from fencepost.model.controller.controller_state import (
    NONE,
    Constants,
    Context,
    Control,
    Host,
    Membership,
    Replica,
    Sent,
    Stopping,
)
from fencepost.model.controller.sessions import DOWN, RESIGNED, UNTOLD
from fencepost.model.controller.work import has_to_write, with_message
from fencepost.model.explore.transition_system import EnabledActions


def ask(constants: Constants, number: int, host: Host, stopping: Stopping) -> EnabledActions:
    """Step 1.

    Args:
        constants: the bounds.
        number: the broker.
        host: its process.
        stopping: all requests to stop so far.

    Returns:
        the enabled actions.
    """
    request = (number, host.incarnation)
    if host.running and request not in stopping and len(stopping) < constants.shutdowns:
        yield ("ask_shutdown", number), (tuple(sorted((*stopping, request))),)


def begin(
    constants: Constants, number: int, control: Control, stopping: Stopping, sent: Sent
) -> EnabledActions:
    """Step 2. shutdown_fencing (KAFKA-7235): the request is of the current incarnation. Without the
    protection, an old request takes the leaders from a broker that stays.

    Args:
        constants: the bounds.
        number: the controller's broker.
        control: the controller.
        stopping: all requests to stop so far.
        sent: all requests that were ever sent.

    Returns:
        the enabled actions.
    """
    context = control.context
    if not context:
        return
    for broker, incarnation in stopping:
        live = context.live[broker]
        if live == NONE or context.leaving[broker] == live:
            continue
        if constants.keeps("shutdown_fencing") and incarnation != live:
            continue
        known = control._replace(context=_with_leaving(context, broker))
        yield ("begin_shutdown", number, broker, incarnation), (known, with_message(constants, known, sent))


def _with_leaving(context: Context, broker: int) -> Context:
    leaving = (*context.leaving[:broker], context.live[broker], *context.leaving[broker + 1 :])
    return context._replace(leaving=leaving)


def stop(
    constants: Constants,
    number: int,
    by: int,
    host: Host,
    control: Control,
    replica: Replica,
    membership: Membership,
    controller: Control,
) -> EnabledActions:
    """Step 4: the controller, broker `by`, lets another broker stop. Its log stays."""
    context = controller.context
    gone = sum(registration == NONE for registration in membership.registrations)
    if (
        context
        and host.running
        and membership.registrations[number] == host.incarnation == context.leaving[number]
        and membership.registered + gone < constants.sessions
        and context.partition.leader != number
        and not has_to_write(constants, context)
    ):
        registrations = membership.registrations
        after = membership._replace(
            controller=NONE if membership.controller == number else membership.controller,
            registrations=(*registrations[:number], NONE, *registrations[number + 1 :]),
        )
        yield (("stop", number, by), (DOWN, RESIGNED, UNTOLD._replace(stored=replica.stored), after))


def stop_oneself(
    constants: Constants, number: int, host: Host, control: Control, replica: Replica, membership: Membership
) -> EnabledActions:
    """As `stop`, for the controller's own broker.

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
    yield from stop(constants, number, number, host, control, replica, membership, control)
