"""The driver of a core in the real world: what sim/host.py is for a simulated core.

Owns the order of a core's inputs, the release of its effects, and its timers. Must not know the core.

One thread steps the core: asyncio's. A step makes its file calls and returns; its effects are released only
afterwards, so data is persistent before a message is sent. The host's clock starts at the wall clock and is
monotonic from there on. So time never goes back, and two incarnations never share a time.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from attrs import define, field

from fencepost.impl.core.core_interface import (
    AskZooKeeper,
    Begin,
    CancelTimer,
    Complete,
    Core,
    Effect,
    Halt,
    Input,
    MessageArrived,
    RecordEvent,
    Send,
    SetTimer,
    Started,
    TimerFired,
    TimerKey,
)
from fencepost.impl.core.failures import events_of_failure
from fencepost.impl.messages.broker_api import Message
from fencepost.impl.runtime.compiled_code import load_when_due
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation

if TYPE_CHECKING:  # a client talks to no ZooKeeper: it runs without the extra zookeeper
    from fencepost.impl.runtime.zookeeper.session import ZooKeeperSession

LOG = logging.getLogger("fencepost.driver")
NANOSECONDS = 1_000_000_000


Invocation = Callable[[int], list[Effect]]
"""call(now) returns effects: a request to the core by its runner, in addition to the inputs of the
interface."""


class Messenger(Protocol):
    """Sends a core's messages: impl/runtime's network, or another."""

    def send(self, target: int, message: Message) -> None:
        """Send a message, or lose it."""
        ...


class HostClock:
    """Integer nanoseconds that never decrease."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        """Host time."""
        return self._offset + time.monotonic_ns()


def _nobody_asked(operation: Operation) -> None:
    raise AssertionError(f"a core that was asked for nothing completes {operation}")


@define(eq=False)
class Driver:
    """Drives one core."""

    # The node id of the host.
    node: int
    # The core.
    core: Core
    # The host's clock.
    clock: HostClock
    # The event loop; only its thread steps the core.
    loop: asyncio.AbstractEventLoop
    # Called with trace events.
    on_event: Callable[[Event], None]
    # Called once, with the reason, when the core or its disk gives up.
    on_halt: Callable[[str], None]
    # Called with a client's finished operations.
    on_complete: Callable[[Operation], None] = _nobody_asked
    # Called with operations that a core begins by itself.
    on_begin: Callable[[Operation], None] = _nobody_asked
    # Sends messages; None before it is set.
    network: Messenger | None = None
    # The ZooKeeper session; None for a core without one.
    zookeeper: "ZooKeeperSession | None" = None
    # Whether the core gave up or was stopped.
    halted: bool = False
    # Inputs that arrived during a step.
    _queue: deque[Input | Invocation] = field(factory=deque)
    # Whether a step is running.
    _engaged: bool = False
    # Whether the process is paused.
    _held: bool = False
    # The timers that are set.
    _timers: dict[TimerKey, asyncio.TimerHandle] = field(factory=dict)

    def start(self) -> None:
        """The process has started."""
        self.accept(Started())

    def stop(self) -> None:
        """Step no more inputs and fire no more timers."""
        self.halted = True
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        self._queue.clear()

    def hold(self) -> None:
        """The process is paused: inputs wait, and nothing is sent."""
        self._held = True

    def go_on(self) -> None:
        """It is not paused any more; what has arrived meanwhile, and timers that were due, come at once."""
        self._held = False
        self._work()

    def receive(self, source: int, message: Message) -> None:
        """A message from the network."""
        self.accept(MessageArrived(source, message))

    def accept_from_any_thread(self, input: Input) -> None:
        """An input from another thread. Inputs of one thread keep their order."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.accept, input)

    def accept(self, input: Input | Invocation) -> None:
        """Step an input, or queue it during a step. An invocation is called in order with the inputs."""
        self._queue.append(input)
        self._work()

    def _work(self) -> None:
        if self._engaged or self._held:
            return
        self._engaged = True
        try:
            while self._queue and not self.halted:
                self._step(self._queue.popleft())
        finally:
            self._engaged = False
        load_when_due()

    def _step(self, input: Input | Invocation) -> None:
        now = self.clock.now()
        try:
            effects = input(now) if callable(input) else self.core.step(input, now)
        except (
            OSError
        ) as error:  # a file call failed: memory is ahead of the disk, so no effect may be released
            self._halt(f"its files failed: {error}")
            return
        except Exception as error:
            self._fail(error, "a call" if callable(input) else type(input).__name__)
            return
        for effect in effects:
            if self.halted:
                return
            self._release(effect)

    def _fail(self, error: Exception, during: str) -> None:
        """The core made a mistake: the process ends with it, as a simulated one does."""
        LOG.error("a mistake in fencepost itself, at %s", during, exc_info=error)
        for effect in events_of_failure(error, during)[1]:
            self._record(effect)
        self._halt("a mistake in fencepost itself")

    # ---- effects

    def _record(self, effect: RecordEvent) -> None:
        self.on_event(effect.at(self.clock.now(), self.node))

    def _release(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            assert self.network is not None, "this core has no network"
            self.network.send(effect.target, effect.message)
        elif isinstance(effect, SetTimer):
            self._set_timer(effect)
        elif isinstance(effect, CancelTimer):
            self._cancel_timer(effect.key)
        elif isinstance(effect, AskZooKeeper):
            assert self.zookeeper is not None, "this core has no ZooKeeper"
            self.zookeeper.ask(effect.request_id, effect.request)
        elif isinstance(effect, RecordEvent):
            self._record(effect)
        elif isinstance(effect, Begin):
            self.on_begin(effect.operation)
        elif isinstance(effect, Halt):
            self._halt(effect.reason)
        else:
            assert isinstance(effect, Complete)
            self.on_complete(effect.operation)

    def _set_timer(self, effect: SetTimer) -> None:
        self._cancel_timer(effect.key)
        delay = max(0, effect.at - self.clock.now()) / NANOSECONDS
        self._timers[effect.key] = self.loop.call_later(delay, self._timer_due, effect.key)

    def _cancel_timer(self, key: TimerKey) -> None:
        handle = self._timers.pop(key, None)
        if handle is not None:
            handle.cancel()

    def _timer_due(self, key: TimerKey) -> None:
        del self._timers[key]
        self.accept(TimerFired(key))

    def _halt(self, reason: str) -> None:
        self.stop()
        self.on_halt(reason)
