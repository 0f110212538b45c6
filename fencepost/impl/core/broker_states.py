"""What a broker is about, from its start to its end, as a table (C9): which state may follow which. An
illegal transition is refused, recorded and counted.

Owns the table and the one way to move. Must not know why a broker moves. A process that dies makes no
transition: the next one starts from NotRunning.
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
"""NotRunning follows every state: a log directory may fail at any time, and the broker halts."""
UP = frozenset({_B.RUNNING, _B.RUNNING_AS_CONTROLLER})


def state_of(broker_context: BrokerContext) -> BrokerState:
    """What the broker is about now."""
    return BrokerState(broker_context.broker_state)


def enter(broker_context: BrokerContext, state: BrokerState) -> bool:
    """Move; an illegal transition is refused, recorded and counted. Returns whether it moved."""
    current = state_of(broker_context)
    if state not in BROKER_TRANSITIONS[current]:
        broker_context.refused_states += 1
        broker_context.record(Name.MARK, cause="illegal_transition_refused", detail=f"{current} -> {state}")
        return False
    broker_context.broker_state = state
    broker_context.record(Name.BROKER_STATE, cause=state)
    return True


def registered(broker_context: BrokerContext) -> None:
    """The broker is registered: it serves, unless it did before, or is about to stop."""
    if state_of(broker_context) in (BrokerState.STARTING, BrokerState.RECOVERING):
        enter(broker_context, BrokerState.RUNNING)


def controls(broker_context: BrokerContext, *, active: bool) -> None:
    """It was elected controller, or resigned; one that is about to stop stays so."""
    before, after = BrokerState.RUNNING, BrokerState.RUNNING_AS_CONTROLLER
    if not active:
        before, after = after, before
    if state_of(broker_context) is before:
        enter(broker_context, after)
