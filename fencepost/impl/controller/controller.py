"""The life of a controller: one event queue, one procedure at a time, until it resigns (C1, C5, C6).

Owns the queue and the two transitions (elected, resigned). Must not know how a procedure works. If another
controller was elected, the first fenced write of a procedure stops it; timing does not matter. After this
controller has resigned, its procedures do not continue at all.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

from attrs import define, field

from fencepost.impl.controller import listeners, reassignment, topic_deletion, zookeeper_loading
from fencepost.impl.controller.channels import TIMER as CONTROL_TIMER
from fencepost.impl.controller.controlled_shutdown import controlled_shutdown, refusal
from fencepost.impl.controller.elector import ControllerElector
from fencepost.impl.controller.failover import fail_over
from fencepost.impl.controller.preferred_election import preferred_election_requested
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.writer import ControllerMovedError
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.broker_states import controls
from fencepost.impl.core.procedures import Procedure, Procedures, ZooKeeperSteps
from fencepost.impl.messages.broker_api import (
    ControlledShutdownRequest,
    ControlResponse,
    StopReplicaRequest,
    TopicPartition,
)
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import WatchEvent
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode

BALANCE_TIMER = ("leader_balance",)

Event = Callable[[], ZooKeeperSteps]


@define
class Controller:
    """The controller of one broker, active or not."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Runs sequences of ZooKeeper requests.
    procedures: Procedures
    # Runs for controller.
    elector: ControllerElector
    # The state that the procedures share.
    state: ControllerState
    # Events that wait.
    queue: deque[Event] = field(factory=deque)
    # Whether a procedure is running.
    running: bool = False
    # Partitions with a fired watch, for an event that is already queued.
    changed_states: dict[TopicPartition, None] = field(factory=dict)
    # Topics with a fired watch, for an event that is already queued.
    changed_topics: dict[str, None] = field(factory=dict)
    # A procedure that starts at the end of the step, after the first request of the running one.
    beside: ZooKeeperSteps | None = None

    # ---- events

    def on_session(self) -> None:
        """A new session; the broker is registered and runs for controller."""
        self.queue.append(self._reelect)

    def on_session_expired(self) -> None:
        """The ephemeral /controller is gone with the session. The running procedure continues until the fence
        stops it; the queue is dropped."""
        self.queue.clear()
        self.changed_states, self.changed_topics = {}, {}
        self.queue.append(self._expire)

    def on_watch(self, watch: WatchEvent) -> None:
        """Queue what the watch asks to look at again."""
        if watch.path in (znodes.CONTROLLER, znodes.CONTROLLER_EPOCH):
            self.queue.append(self._reelect)
        elif watch.path == znodes.BROKER_IDS:
            self.queue.append(lambda: self._if_active(listeners.brokers_changed))
        elif watch.path == znodes.TOPICS:
            self.queue.append(lambda: self._if_active(listeners.topics_changed))
        elif watch.path == znodes.ISR_CHANGES:
            self.queue.append(lambda: self._if_active(listeners.isr_changed))
        elif watch.path == znodes.REASSIGN:
            self.queue.append(lambda: self._if_active(reassignment.reassignments_requested))
        elif watch.path == znodes.DELETE_TOPICS:
            self.queue.append(lambda: self._if_active(topic_deletion.deletions_requested))
        elif watch.path == znodes.PREFERRED_ELECTION:
            self.queue.append(lambda: self._if_active(preferred_election_requested))
        else:
            self._on_topic_watch(watch.path)

    def _on_topic_watch(self, path: str) -> None:
        """Watches that fire while another event is running are handled together."""
        key, topic = znodes.partition_of_state_path(path), znodes.topic_of_topic_path(path)
        if key is not None:
            if not self.changed_states:
                self.queue.append(self._look_at_states)
            self.changed_states[key] = None
        if topic is not None:
            if not self.changed_topics:
                self.queue.append(self._look_at_topics)
            self.changed_topics[topic] = None

    def _look_at_states(self) -> ZooKeeperSteps:
        keys, self.changed_states = list(self.changed_states), {}
        yield from self._if_active(partial(reassignment.states_changed, keys=keys))

    def _look_at_topics(self) -> ZooKeeperSteps:
        topics, self.changed_topics = list(self.changed_topics), {}
        yield from self._if_active(partial(listeners.topics_written, topics=topics))

    def on_unclean_enabled(self, topic: str) -> None:
        """Any replica of the topic may lead from now on: partitions without an ISR member need not wait any
        longer."""
        self.queue.append(lambda: self._if_active(partial(listeners.unclean_enabled, topic=topic)))

    def on_balance_timer(self) -> None:
        """Check the balance of leaders."""
        self.queue.append(lambda: self._if_active(self._balance))

    def on_control_timer(self, broker: int) -> None:
        """A control request was not answered."""
        self.state.channels.on_timer(broker)

    def on_response(self, broker: int, response: ControlResponse) -> None:
        """A broker answered. If it has obeyed a later controller, its response says so, and this one
        resigns."""
        if self.state.active and response.controller_epoch > self.state.context.epoch:
            self._resign(f"broker {broker} has obeyed controller epoch {response.controller_epoch}")
            self.queue.append(self._reelect)
        answered = self.state.channels.on_response(broker, response)
        if isinstance(answered, StopReplicaRequest) and response.error is ErrorCode.NONE:
            stopped = partial(
                listeners.replicas_stopped, broker=broker, request=answered, results=response.partition_errors
            )
            self.queue.append(lambda: self._if_active(stopped))

    def on_controlled_shutdown(self, source: int, request: ControlledShutdownRequest) -> None:
        """A broker wants to stop.

        Args:
            source: the broker.
            request: its request.
        """
        self.queue.append(lambda: self._shut_down(source, request))

    def ask(
        self, procedure: Callable[[ControllerState], ZooKeeperSteps], refused: Callable[[], None]
    ) -> None:
        """Queue a request to the controller. refused: called instead if this broker is not the controller, or
        resigns before the end."""
        if not self.state.active:
            refused()
            return
        self.queue.append(lambda: self._answer(procedure, refused))

    def _answer(
        self, procedure: Callable[[ControllerState], ZooKeeperSteps], refused: Callable[[], None]
    ) -> ZooKeeperSteps:
        if not self.state.active:
            refused()
            return
        try:
            yield from procedure(self.state)
        except (ControllerMovedError, GeneratorExit):
            refused()
            raise

    # ---- the queue

    def pump(self) -> None:
        """Start the next event if none is running. Called at the end of every step."""
        while self.queue and not self.running:
            self.running = True
            self.procedures.start(self._run(self.queue.popleft()))
        if self.beside is not None:
            beside, self.beside = self.beside, None
            self.procedures.start(beside)

    def _run(self, event: Event) -> Procedure:
        try:
            yield from self._in_this_reign(event())
        except ControllerMovedError as moved:
            self._resign(str(moved))
            self.queue.append(self._reelect)
        self.running = False

    def _in_this_reign(self, steps: ZooKeeperSteps) -> ZooKeeperSteps:
        """Continue the steps, unless the controller resigned while they waited for a reply: their knowledge
        is from a reign that is over (KAFKA-4447)."""
        reply = None
        while True:
            try:
                asked = steps.send(reply)
            except StopIteration:
                return
            reign = self.state.context
            reply = yield asked
            if self.state.context is not reign:
                steps.close()
                return

    def _if_active(self, procedure: Callable[[ControllerState], ZooKeeperSteps]) -> ZooKeeperSteps:
        if self.state.active:
            yield from procedure(self.state)

    def _shut_down(self, source: int, request: ControlledShutdownRequest) -> ZooKeeperSteps:
        if self.state.active:
            response = yield from controlled_shutdown(self.state, request)
        else:
            response = refusal(request, ErrorCode.STALE_CONTROLLER_EPOCH)
        self.broker_context.send_periodic(source, response)

    def _balance(self, state: ControllerState) -> ZooKeeperSteps:
        """Balance leaders, and repeat an interval after the end, so that at most one run waits however long
        ZooKeeper is unavailable."""
        yield from listeners.balance_leaders(state)
        self.broker_context.set_timer(BALANCE_TIMER, self.broker_context.options.leader_imbalance_interval_ms)

    # ---- the two transitions

    def _reelect(self) -> ZooKeeperSteps:
        won = yield from self.elector.run()
        context = self.state.context
        if self.state.active and (won is None or won[0] != context.epoch):
            self._resign("/controller names another session")
        if won is None or self.state.active:
            return
        self.state.active = True
        self.state.context.epoch, self.state.context.epoch_version = won
        self.broker_context.record(Name.CONTROLLER_ELECTED, controller_epoch=won[0])
        controls(self.broker_context, active=True)
        if self.broker_context.options.leader_imbalance_check_ms:
            self.broker_context.set_timer(
                BALANCE_TIMER, self.broker_context.options.leader_imbalance_check_ms
            )
        self.beside = zookeeper_loading.read_admin(self.state)
        yield from fail_over(self.state)

    def _expire(self) -> ZooKeeperSteps:
        if self.state.active:
            self._resign("session expired")
        yield from ()

    def _resign(self, why: str) -> None:
        if self.state.active:
            self.broker_context.record(
                Name.CONTROLLER_RESIGNED, controller_epoch=self.state.context.epoch, cause=why
            )
            controls(self.broker_context, active=False)
        self.broker_context.cancel_timer(BALANCE_TIMER)
        self.state.reset()


__all__ = ["BALANCE_TIMER", "CONTROL_TIMER", "Controller"]
