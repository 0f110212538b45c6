"""Controlled shutdown at the stopping broker (C11, steps 1 and 5): ask the controller, ask again, then stop.

Owns the broker's state from the request to stop until the process ends. Must not know how leaders are moved.
A controller that cannot be found or does not answer delays the broker for a bounded time only. After the last
attempt the broker stops anyway, and its partitions fail over.
"""

from attrs import define

from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.broker_states import UP, BrokerState, enter, state_of
from fencepost.impl.core.core_interface import Halt
from fencepost.impl.core.procedures import Procedure, Procedures
from fencepost.impl.messages.broker_api import ControlledShutdownRequest, ControlledShutdownResponse
from fencepost.impl.replication.manager import ReplicaManager
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Check, Data, Delete, GetData, Multi
from fencepost.traces.kafka_names.outcomes import ErrorCode

TIMER = ("controlled_shutdown",)
MOST_ATTEMPTS = 3
"""controlled.shutdown.max.retries"""
CONTROLLED_SHUTDOWN = "controlled shutdown"
"""The reason of Halt if a broker was asked to stop."""
LAST_PATIENCE_MS = 1_000
"""How long the last requests to ZooKeeper may take."""
_SHUTTING_DOWN: str = BrokerState.SHUTTING_DOWN.value


@define
class ControlledShutdown:
    """The state of a controlled shutdown."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Runs sequences of ZooKeeper requests.
    procedures: Procedures
    # The partitions with a replica here.
    replicas: ReplicaManager
    # The state of this broker's controller.
    controller: ControllerState
    # Requests to a controller so far; at most MOST_ATTEMPTS.
    attempts: int = 0
    # Correlation id of the unanswered request; 0 for none.
    asked: int = 0

    def on_stop_requested(self) -> None:
        """SIGTERM; a second one has no effect."""
        if self.state in (*UP, BrokerState.STARTING, BrokerState.RECOVERING):
            enter(self.broker_context, BrokerState.PENDING_CONTROLLED_SHUTDOWN)
            self._try()

    @property
    def state(self) -> BrokerState:
        """The state of the broker."""
        return state_of(self.broker_context)

    @property
    def shutting_down(self) -> bool:
        """Whether the logs are closed: nothing is served any more, and only the last requests to ZooKeeper
        are pending. It is called for every message, so it compares the name directly."""
        return self.broker_context.broker_state == _SHUTTING_DOWN

    def on_timer(self) -> None:
        """No answer in time, or partitions remained; or ZooKeeper did not answer the last requests."""
        if self.state is BrokerState.SHUTTING_DOWN:
            self._halt()
        elif self.attempts < MOST_ATTEMPTS:
            self._try()
        else:
            self._stop()

    def on_response(self, _: int, response: ControlledShutdownResponse) -> None:
        """Stop if nothing remains. Otherwise ask again later, because an ISR may grow meanwhile."""
        if response.correlation_id != self.asked or self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return
        self.asked = 0
        if response.error is ErrorCode.NONE and not response.remaining:
            self._stop()

    def _try(self) -> None:
        self.attempts += 1
        self.asked = self.broker_context.next_correlation_id()
        self.broker_context.set_timer(TIMER, self.broker_context.options.controlled_shutdown_retry_backoff_ms)
        self.procedures.start(self._ask(self.asked))

    def _ask(self, correlation_id: int) -> Procedure:
        reply = yield GetData(znodes.CONTROLLER)
        if isinstance(reply, Data) and correlation_id == self.asked:
            request = ControlledShutdownRequest(
                correlation_id=correlation_id,
                broker_id=self.broker_context.node,
                broker_epoch=self.broker_context.broker_epoch,
            )
            try:
                self.broker_context.send_periodic(znodes.decode_controller(reply.data), request)
            except znodes.BadZnodeError as error:
                self.broker_context.refuse_znode(error)  # it stops after the last attempt all the same

    # ---- step 5

    def _stop(self) -> None:
        enter(self.broker_context, BrokerState.SHUTTING_DOWN)
        self.replicas.close()
        self.broker_context.set_timer(TIMER, LAST_PATIENCE_MS)
        self.procedures.start(self._leave())

    def _leave(self) -> Procedure:
        """Do what closing the session does: remove /controller and the registration now, not after the
        session timeout."""
        context = self.controller.context
        if self.controller.active:
            yield Multi((Check(znodes.CONTROLLER_EPOCH, context.epoch_version), Delete(znodes.CONTROLLER)))
        path = znodes.broker_path(self.broker_context.node)
        current = yield GetData(path)
        if isinstance(current, Data) and current.stat.ephemeral_owner == self.broker_context.session_id:
            yield Delete(path, current.stat.version)
        self._halt()

    def _halt(self) -> None:
        enter(self.broker_context, BrokerState.NOT_RUNNING)
        self.broker_context.outbox.append(Halt(CONTROLLED_SHUTDOWN))
