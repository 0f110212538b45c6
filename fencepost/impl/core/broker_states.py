"""The states of a broker from start to end, with the table of legal transitions (C9). An illegal transition
is refused, recorded and counted.

Owns the table and the only function that changes the state. Must not know why a broker changes state. A
process that dies makes no transition: the next one starts from NotRunning.
"""

from enum import StrEnum

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.traces.events import Name


class BrokerState(StrEnum):
    """Kafka's names."""

    NOT_RUNNING = "NotRunning"
    STARTING = "Starting"
    RECOVERING = "RecoveringFromUncleanShutdown"
    RUNNING = "RunningAsBroker"
    RUNNING_AS_CONTROLLER = "RunningAsController"
    PENDING_CONTROLLED_SHUTDOWN = "PendingControlledShutdown"
    SHUTTING_DOWN = "BrokerShuttingDown"


_B = BrokerState

BROKER_TRANSITIONS: dict[BrokerState, frozenset[BrokerState]] = {
    _B.NOT_RUNNING: frozenset({_B.STARTING}),
    _B.STARTING: frozenset({_B.RECOVERING, _B.RUNNING, _B.PENDING_CONTROLLED_SHUTDOWN, _B.NOT_RUNNING}),
    _B.RECOVERING: frozenset({_B.RUNNING, _B.PENDING_CONTROLLED_SHUTDOWN, _B.NOT_RUNNING}),
    _B.RUNNING: frozenset({_B.RUNNING_AS_CONTROLLER, _B.PENDING_CONTROLLED_SHUTDOWN, _B.NOT_RUNNING}),
    _B.RUNNING_AS_CONTROLLER: frozenset({_B.RUNNING, _B.PENDING_CONTROLLED_SHUTDOWN, _B.NOT_RUNNING}),
    _B.PENDING_CONTROLLED_SHUTDOWN: frozenset({_B.SHUTTING_DOWN, _B.NOT_RUNNING}),
    _B.SHUTTING_DOWN: frozenset({_B.NOT_RUNNING}),
}
"""NotRunning can follow every state: a log directory may fail at any time, and then the broker halts."""
UP = frozenset({_B.RUNNING, _B.RUNNING_AS_CONTROLLER})


def state_of(broker_context: BrokerContext) -> BrokerState:
    """The current state of the broker."""
    return BrokerState(broker_context.broker_state)


def enter(broker_context: BrokerContext, state: BrokerState) -> bool:
    """Change the state. An illegal transition is refused, recorded and counted.

    Args:
        broker_context: the broker.
        state: the new state.

    Returns:
        whether the state changed.
    """
    current = state_of(broker_context)
    if state not in BROKER_TRANSITIONS[current]:
        broker_context.refused_states += 1
        broker_context.record(Name.MARK, cause="illegal_transition_refused", detail=f"{current} -> {state}")
        return False
    broker_context.broker_state = state
    broker_context.record(Name.BROKER_STATE, cause=state)
    return True


def registered(broker_context: BrokerContext) -> None:
    """The broker is registered. It becomes Running, unless it already was, or is about to stop."""
    if state_of(broker_context) in (BrokerState.STARTING, BrokerState.RECOVERING):
        enter(broker_context, BrokerState.RUNNING)


def controls(broker_context: BrokerContext, *, active: bool) -> None:
    """The broker was elected controller (`active`), or resigned. A broker that is about to stop keeps its
    state.

    Args:
        broker_context: the broker.
        active: whether it is the controller now.
    """
    before, after = BrokerState.RUNNING, BrokerState.RUNNING_AS_CONTROLLER
    if not active:
        before, after = after, before
    if state_of(broker_context) is before:
        enter(broker_context, after)
