"""The rules of the optional parts of the controller model: reassignment, deletion, shutdown, lost replies.

Owns which slots those steps read and write (as in controller_system.py). Must not know the effect of a step.
"""

from functools import partial

from fencepost.model.controller import brokers as brokers
from fencepost.model.controller import deletion as deletion
from fencepost.model.controller import reassignment as reassignment
from fencepost.model.controller import sessions as sessions
from fencepost.model.controller import shutdown as shutdown
from fencepost.model.controller.controller_state import NONE, UNDER_WAY, Constants, Context, Control
from fencepost.model.explore.transition_system import Part, Rule, rule_of


def in_office(control: Control) -> bool:
    """Whether a broker believes that it is the controller."""
    return control.epoch != NONE


def deletes(control: Control) -> bool:
    """Whether it is working on a deletion."""
    return isinstance(control.context, Context) and control.context.deletion == UNDER_WAY


def of_reassignment(constants: Constants, number: int) -> list[Rule]:
    """The broker's work on a reassignment; the first broker's rules include the admin's.

    Args:
        constants: the bounds.
        number: the broker.

    Returns:
        the rules.
    """
    rule = partial(rule_of, constants)
    count = constants.brokers
    membership, zookeeper, sent, _, _, admin, _ = range(3 * count, 3 * count + 7)
    control = count + number
    office = Part((control,), in_office)
    rules = [
        rule(("see_target",), (control, admin), (control,), reassignment.see_target, number, when=office),
        rule(
            ("grow", "refuse", "retire", "remove_entry"),
            (control, membership, admin),
            (control, admin),
            reassignment.assign,
            number,
            when=office,
        ),
        rule(
            ("raise_epoch", "move", "stop_old"),
            (control, membership, zookeeper, sent),
            (control, zookeeper, sent),
            reassignment.replace,
            number,
            when=office,
        ),
    ]
    if number == 0:
        rules.append(rule(("ask",), (admin,), (admin,), reassignment.ask))
    return rules


def of_lost_replies(constants: Constants, number: int) -> list[Rule]:
    """Lost replies of a leader's write, their handling, and requests that are not sent again.

    Args:
        constants: the bounds.
        number: the broker.

    Returns:
        the rules.
    """
    rule = partial(rule_of, constants)
    count = constants.brokers
    membership, zookeeper, sent = 3 * count, 3 * count + 1, 3 * count + 2
    host, control, replica = number, count + number, 2 * count + number
    reads, shrunk = (host, replica, zookeeper), partial(brokers.shrink_isr_unheard, constants, number)
    claimed = partial(sessions.names_me, constants, number)
    accepted = partial(brokers.accept_own_isr_write, constants, number)
    rules = [
        Rule(("shrink_isr_unheard",), (*reads, membership), (zookeeper, membership), shrunk),
        Rule(("names_me",), (host, control, membership), (control,), claimed),
        Rule(("accept_own_isr_write",), reads, (replica,), accepted),
    ]
    kept = [rule for rule in rules if constants.keeps(rule.names[0])]
    if not constants.keeps("resend_until_answered"):
        way = (sent, membership)
        kept.append(rule(("lose_request",), way, way, brokers.lose_request, number))
    return kept


def of_deletion(constants: Constants, number: int) -> list[Rule]:
    """The broker's work on a deletion; the first broker's rules include the admin's.

    Args:
        constants: the bounds.
        number: the broker.

    Returns:
        the rules.
    """
    rule = partial(rule_of, constants)
    count = constants.brokers
    membership, zookeeper, sent, _, _, admin, _ = range(3 * count, 3 * count + 7)
    control = count + number
    office = Part((control,), in_office)
    at_it = Part((control,), deletes)
    removal = (control, membership, zookeeper, admin)
    names = ("remove_state", "remove_topic", "remove_deletion")
    rules = [
        rule(("see_deletion",), (control, admin), (control,), deletion.see, number, when=office),
        rule(
            ("delete_replicas",),
            (control, sent),
            (control, sent),
            deletion.delete_replicas,
            number,
            when=at_it,
        ),
        rule(names, removal, (control, zookeeper, admin), deletion.complete, number, when=at_it),
    ]
    rules += [
        rule(
            ("deleted",),
            (control, other, 2 * count + other),
            (control,),
            deletion.answer,
            number,
            other,
            when=at_it,
        )
        for other in range(count)
    ]
    if number == 0:
        rules.append(rule(("ask_deletion",), (admin,), (admin,), deletion.ask))
    return rules


def of_shutdown(constants: Constants, number: int) -> list[Rule]:
    """The broker asks to stop, handles such a request, and lets each broker stop.

    Args:
        constants: the bounds.
        number: the broker.

    Returns:
        the rules.
    """
    rule = partial(rule_of, constants)
    count = constants.brokers
    membership, sent, stopping = 3 * count, 3 * count + 2, 3 * count + 6
    host, control, replica = number, count + number, 2 * count + number
    office = Part((control,), in_office)
    own = (host, control, replica, membership)
    ask, begin = partial(shutdown.ask, constants, number), partial(shutdown.begin, constants, number)
    rules = [
        Rule(("ask_shutdown",), (host, stopping), (stopping,), ask),
        Rule(("begin_shutdown",), (control, stopping, sent), (control, sent), begin, office),
        rule(("stop",), own, own, shutdown.stop_oneself, number, when=office),
    ]
    for by in range(count):
        if by != number:
            office = Part((count + by,), in_office)
            step = partial(shutdown.stop, constants, number, by)
            rules.append(Rule(("stop",), (*own, count + by), own, step, office))
    return rules
