"""What a broker is about, from its start to its end, as a table (C9): which state may follow which. An illegal transition is refused, recorded and counted.

Owns the table and the one way to move. Must not know why a broker moves. A process that dies makes no transition: the next one starts from NotRunning.
"""

from enum import StrEnum

from fencepost.impl.shell import Shell
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


def state_of(shell: Shell) -> BrokerState:
    """What the broker is about now."""
    return BrokerState(shell.broker_state)


def enter(shell: Shell, state: BrokerState) -> bool:
    """Move; an illegal transition is refused, recorded and counted. Returns whether it moved."""
    current = state_of(shell)
    if state not in BROKER_TRANSITIONS[current]:
        shell.refused_states += 1
        shell.record(Name.MARK, cause="illegal_transition_refused", detail=f"{current} -> {state}")
        return False
    shell.broker_state = state
    shell.record(Name.BROKER_STATE, cause=state)
    return True


def registered(shell: Shell) -> None:
    """The broker is registered: it serves, unless it did before, or is about to stop."""
    if state_of(shell) in (BrokerState.STARTING, BrokerState.RECOVERING):
        enter(shell, BrokerState.RUNNING)


def controls(shell: Shell, *, active: bool) -> None:
    """It was elected controller, or resigned; one that is about to stop stays so."""
    before, after = BrokerState.RUNNING, BrokerState.RUNNING_AS_CONTROLLER
    if not active:
        before, after = after, before
    if state_of(shell) is before:
        enter(shell, after)
