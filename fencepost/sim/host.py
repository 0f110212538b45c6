"""A host: one process that runs one sans-IO core, on a disk, a clock and a network.

Owns the order of a core's inputs, the release of its effects, its timers, and everything that ends, stops or
delays it. Must not know the core.

A host is a single thread. An input is stepped at once, or waits until the step before it is done; file calls
of a step cost virtual time, and the step's effects leave only after that: persist before send. Crash: the
process ends, with its timers, its queue and the effects not yet released; files stay as written; ZooKeeper
finds out by silence. Implementation error: a crash by an assertion or an exception of the core itself. Power
loss: a crash that also loses what the disk had not synced. Pause: inputs wait, timers fire late, the process
does not know. Final.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

from fencepost.impl.core.core_interface import (
    AskZooKeeper,
    Begin,
    CancelTimer,
    Complete,
    Core,
    Effect,
    Halt,
    Invoke,
    MessageArrived,
    RecordEvent,
    Send,
    SetTimer,
    Started,
    TimerFired,
    TimerKey,
    ZooKeeperReplied,
    ZooKeeperWatchFired,
)
from fencepost.impl.core.failures import events_of_failure
from fencepost.impl.core.file_system import FileSystem
from fencepost.sim.clock import Clock
from fencepost.sim.disk import Disk, PowerLoss, PowerLossReport
from fencepost.sim.scheduler import Scheduler
from fencepost.sim.zookeeper_client import ZooKeeperClient
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event

MAXIMUM_WAITING_MESSAGES = 100_000
"""The most inputs that wait for a busy or paused process. Further messages are lost, as with full socket
buffers. (TCP would push back, and the sender's timeout would show it.) Timers and inputs from ZooKeeper are
never lost."""

CoreFactory = Callable[[FileSystem, int], Core]
"""make_core(files, now): a new process on the files that the disk kept; now: the host's clock."""


class Sender(Protocol):
    """Sends a host's messages: the world's network, or a wrapper of it."""

    def send(self, source: int, target: int, message: Any, cause: tuple[int, ...] = ()) -> None:
        """Send one message.

        Args:
            source: the sender's node id.
            target: the receiver's node id.
            message: the message.
            cause: what caused it, as integers.
        """
        ...


NOT_BUSY = -1
BUSY_NS = 100_000_000
"""Steps without a pause between them that take as long as this are told to the observer."""

Invocation = Callable[[Any, int], list[Effect]]
"""call(core, now) returns effects: a request to the core by the harness, in addition to the inputs of the
interface."""


class Observer:
    """Receives a host's events. Every method may be overridden; by default none does anything."""

    def recorded(self, event: Event) -> None:
        """A Record effect, with the world's time and the node."""

    def began(self, node: int, operation: Any) -> None:
        """A Begin effect.

        Args:
            node: the host.
            operation: the operation that begins.
        """

    def completed(self, node: int, operation: Any) -> None:
        """A Complete effect.

        Args:
            node: the host.
            operation: the finished operation.
        """

    def halted(self, node: int, reason: str) -> None:
        """A process ended itself; the host is down now.

        Args:
            node: the host.
            reason: one sentence.
        """

    def busy(self, node: int, since: int) -> None:
        """A process has done nothing but wait for its disk or its processor for BUSY_NS or longer.

        Args:
            node: the host.
            since: when that began, nanoseconds; until now.
        """

    def failed(self, node: int, error: Exception, events: list[Event]) -> None:
        """A process ended by an assertion or an exception of its own; the host is down now. events: what the
        failed step had recorded, and the implementation_error. By default it is raised: only a run that is
        recorded and judged may go on."""
        raise error

    def lost_power(self, node: int, report: PowerLossReport) -> None:
        """A host lost its power, by an armed fault or by `Host.power_loss`; it is down now.

        Args:
            node: the host.
            report: the effect on its files.
        """


class Host:
    """up: whether a process runs. paused: whether it is paused. incarnation: processes that have ended so
    far. steps: inputs stepped so far. step_cost: nanoseconds of processor time of each step, 0 unless the
    host is slow."""

    def __init__(
        self,
        *,
        node: int,
        scheduler: Scheduler,
        network: Sender,
        disk: Disk,
        clock: Clock,
        make_core: CoreFactory,
        observer: Observer,
    ) -> None:
        self.node, self.disk, self.clock = node, disk, clock
        self.zookeeper: ZooKeeperClient | None = None
        self.core: Any = None
        self.up = self.paused = False
        self.incarnation = 0
        self.steps = self.step_cost = 0
        self._scheduler, self._network = scheduler, network
        self._make_core, self._observer = make_core, observer
        self._queue: deque[Any] = deque()
        self._timers: dict[
            TimerKey, int
        ] = {}  # -> the scheduler's handle; negative once it is due and waits in the queue
        self._engaged = False  # a step is running, or its cost has not passed
        self._unreleased: Iterable[Effect] = []
        self._end_of_step: int | None = None  # the event that releases them
        self._step_is_over = False  # that event came during a pause
        self._busy_since = NOT_BUSY
        self._release: dict[
            type, Callable[[Any], None]
        ] = {  # except Send, the most frequent one: _drain does it
            SetTimer: self._set_timer,
            CancelTimer: self._cancel_timer,
            AskZooKeeper: self._ask_zookeeper,
            RecordEvent: self._record,
            Begin: self._begin,
            Complete: self._complete,
            Halt: self._halt,
        }

    @property
    def timers(self) -> Collection[TimerKey]:
        """The timers that are set, or wait in the queue."""
        return self._timers.keys()

    @property
    def rests(self) -> bool:
        """Whether the process runs and has nothing to do."""
        return self.up and not (self._queue or self._engaged or self.paused)

    # ---- the process

    def start(self) -> None:
        """Start a process. Opening its files may cost time, or meet an armed power loss: then the host stays
        down."""
        assert not self.up, f"node {self.node} is already up"
        self.up = True
        try:
            self.core = self._make_core(self.disk, self.clock.now())
        except PowerLoss:
            self.power_loss()
            return
        except Exception as error:
            self._fail(error, "start")
            return
        if self.zookeeper is not None:
            self.zookeeper.start()
        self.accept(Started())

    def crash(self) -> None:
        """The process dies now. No effect if it is down."""
        if not self.up:
            return
        for effect in (
            self._unreleased
        ):  # of a step with file calls that have returned: their effect exists, although no message was sent
            if type(effect) is RecordEvent and effect.on_disk:
                self._record(effect)
        self.disk.crash()
        self._end_process()

    def power_loss(self, on_disk: Iterable[RecordEvent] = ()) -> PowerLossReport:
        """The power fails now: the host is down, and its disk has lost what was not synced. Also for a host
        that is already down. on_disk: what a step that it ended had recorded of the disk, which has happened
        if only the process died."""
        report = self.disk.power_loss()
        if report.died:
            for effect in on_disk:
                self._record(effect)
        if self.up:
            self._end_process()
        self._observer.lost_power(self.node, report)
        return report

    def pause(self) -> None:
        """Pause the process (SIGSTOP, a long garbage collection). No effect if it is down."""
        if self.up and not self.paused:
            self.paused = True
            if self.zookeeper is not None:
                self.zookeeper.pause()

    def resume(self) -> None:
        """Continue the process. No effect if it is not paused."""
        if not self.paused:
            return
        self.paused = False
        if self.zookeeper is not None:
            self.zookeeper.resume()
        if self._step_is_over:
            self._step_is_over = False
            self._finish_step()
        elif not self._engaged:
            self._drain()

    def _fail(self, error: Exception, during: str) -> None:
        """The process made a mistake, and dies of it. What the caller asked for wrongly is the caller's."""
        if isinstance(error, FencepostError):
            raise error
        cause, events = events_of_failure(error, during)
        self.crash()
        happened = [event.at(self._scheduler.now, self.node) for event in events]
        self._observer.failed(self.node, cause, happened)

    def _end_process(self) -> None:
        self.up = self.paused = self._engaged = self._step_is_over = False
        self._busy_since = NOT_BUSY
        self.core = None
        self.incarnation += 1
        self._queue.clear()
        self._unreleased = []
        for handle in self._timers.values():
            if handle > 0:
                self._scheduler.cancel(handle)
        self._timers.clear()
        if self._end_of_step is not None:
            self._scheduler.cancel(self._end_of_step)
            self._end_of_step = None
        if self.zookeeper is not None:
            self.zookeeper.stop()

    # ---- inputs

    def receive(self, source: int, message: Any) -> None:
        """A `message` from the node `source` arrives."""
        if self.up and len(self._queue) < MAXIMUM_WAITING_MESSAGES:
            self._queue.append(MessageArrived(source, message))
            if not (self._engaged or self.paused):
                self._drain()

    def invoke(self, call: Invocation) -> None:
        """Let the harness call the core, in order with the inputs. No effect if the process is down."""
        if self.up:
            self.accept(call)

    def accept(self, input: Any) -> None:
        """Queue an input; it is stepped now if the process is free. No effect if the process is down."""
        if self.core is None:
            return
        self._queue.append(input)
        if not (self._engaged or self.paused):
            self._drain()

    def _drain(self, effects: Iterable[Effect] = ()) -> None:
        """Release the effects of the previous step, then step waiting inputs until a step costs time."""
        core, queue, disk, clock = self.core, self._queue, self.disk, self.clock
        node, send, release = self.node, self._network.send, self._release
        self._engaged = True
        while True:
            for effect in effects:
                if type(effect) is Send:
                    send(node, effect.target, effect.message, effect.cause)
                else:
                    release[type(effect)](effect)
                    if self.core is not core:
                        return
            if not queue or self.paused:
                break
            input = queue.popleft()
            try:
                if type(input) in _USUAL_INPUTS:
                    self.steps += 1
                    effects = core.step(input, clock.now())
                else:
                    effects = self._step(input)
            except PowerLoss as end:
                self.power_loss(end.on_disk)
                return
            except Exception as error:
                self._fail(error, "a call" if callable(input) else type(input).__name__)
                return
            if disk.cost or self.step_cost:
                self._unreleased = effects
                cost = disk.take_cost() + self.step_cost
                if self._busy_since < 0:
                    self._busy_since = self._scheduler.now
                self._end_of_step = self._scheduler.after(cost, self._step_ended)
                return
        self._engaged = False
        self._busy_since = NOT_BUSY

    def _step(self, input: Any) -> list[Effect]:
        """Step an input of the rarer kinds."""
        if type(input) is tuple:  # a timer that came due while the process was not free
            key, handle = input
            if self._timers.get(key) != handle:
                return []
            del self._timers[key]
            input = TimerFired(key)
        elif callable(input):
            self.steps += 1
            effects: list[Effect] = input(self.core, self.clock.now())
            return effects
        self.steps += 1
        stepped: list[Effect] = self.core.step(input, self.clock.now())
        return stepped

    def _step_ended(self) -> None:
        self._end_of_step = None
        if self.paused:
            self._step_is_over = True
        else:
            self._finish_step()

    def _finish_step(self) -> None:
        since, now = self._busy_since, self._scheduler.now
        if since >= 0 and now - since >= BUSY_NS:
            self._observer.busy(self.node, since)
            self._busy_since = now
        effects, self._unreleased = self._unreleased, []
        self._drain(effects)

    # ---- effects

    def _set_timer(self, effect: SetTimer) -> None:
        key, timers, scheduler = effect.key, self._timers, self._scheduler
        handle = timers.get(key, 0)
        if handle > 0:
            scheduler.cancel(handle)
        timers[key] = scheduler.at(self.clock.to_global(effect.at), self._timer_due, key)

    def _cancel_timer(self, effect: CancelTimer) -> None:
        handle = self._timers.pop(effect.key, 0)
        if handle > 0:
            self._scheduler.cancel(handle)

    def _timer_due(self, key: TimerKey) -> None:
        if self._engaged or self.paused:
            self._timers[key] = waiting = -self._timers[key]
            self._queue.append((key, waiting))
        else:
            del self._timers[key]
            self._queue.append(TimerFired(key))
            self._drain()

    def _ask_zookeeper(self, effect: AskZooKeeper) -> None:
        assert self.zookeeper is not None, f"node {self.node} has no ZooKeeper client"
        self.zookeeper.ask(effect.request_id, effect.request)

    def _record(self, effect: RecordEvent) -> None:
        self._observer.recorded(effect.at(self._scheduler.now, self.node))

    def _begin(self, effect: Begin) -> None:
        self._observer.began(self.node, effect.operation)

    def _complete(self, effect: Complete) -> None:
        self._observer.completed(self.node, effect.operation)

    def _halt(self, effect: Halt) -> None:
        self.crash()
        self._observer.halted(self.node, effect.reason)


_USUAL_INPUTS = frozenset((MessageArrived, TimerFired, Invoke, ZooKeeperReplied, ZooKeeperWatchFired))
