"""Pacing: the world's virtual time follows the wall clock.

Owns how far virtual time may advance in each turn, and when the next turn is. Must not know what the world's
events do.

A turn happens when an event is due, or when an input is put into the world (`wake`). Two rules:

- Stalls do not count. Virtual time advances by at most MOST_A_TURN, however long ago the last turn was. A
  breakpoint, a machine that sleeps or one that is busy stops the cluster's time for all nodes alike, and no
  session or request times out because of it. The lost time is never caught up: virtual time does
  not run faster than the wall clock later, and stays behind it.
- Events that are nearly due happen now. Events up to LEAD ahead of the wall clock run at once, so a chain of
  messages a microsecond apart is one turn. The operating system's timers are no finer.
"""

import asyncio
from collections.abc import Callable

from attrs import define, field

from fencepost.sim.scheduler import MILLISECOND, SECOND, Scheduler

MOST_A_TURN = 50 * MILLISECOND
"""Most virtual time in one turn: far above a turn's own work, far below the shortest session time-out that
makes sense (Kafka's brokers refuse one of less than 6 s, ZooKeeper's tick is 2 s)."""
LEAD = MILLISECOND
"""How far virtual time may be ahead of the wall clock: epoll's resolution."""
MOST_WORK = 5 * MILLISECOND
"""Of wall time in one turn, after which sockets get their chance: a tenth of MOST_A_TURN, so that a saturated
cluster still answers connections."""
LONGEST_SLEEP = 20 * MILLISECOND
"""Between two turns of an idle world. It is well below MOST_A_TURN, so that a planned sleep is not a stall
even if the system wakes up late."""


@define(eq=False)
class Pace:
    """Drives a scheduler from an event loop. Everything here runs in the loop's thread."""

    scheduler: Scheduler
    loop: asyncio.AbstractEventLoop
    # A monotonic clock, nanoseconds.
    wall: Callable[[], int]
    # Called at the end of every turn.
    after_turn: Callable[[], None]
    # Called once with an exception that an event raised; the pace has stopped then.
    on_error: Callable[[Exception], None]
    # Nanoseconds of wall time that did not count so far.
    stalled: int = 0
    # So far.
    turns: int = 0
    # Where virtual time should be. Invariant: after a turn it is at most LEAD below the scheduler's time.
    _due: int = field(init=False)
    # The wall clock at the last turn.
    _last: int = field(init=False)
    _handle: asyncio.Handle | None = None
    _in_turn: bool = False
    # Whether virtual time passes.
    running: bool = False

    def __attrs_post_init__(self) -> None:
        self._due, self._last = self.scheduler.now, self.wall()

    def start(self) -> None:
        """Let virtual time pass from now on."""
        self._due, self._last = self.scheduler.now, self.wall()
        self.running = True
        self.wake()

    def stop(self) -> None:
        """Stop virtual time."""
        self.running = False
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def wake(self) -> None:
        """Take a turn soon: there is an input."""
        if not self.running or (
            self._handle is not None and not isinstance(self._handle, asyncio.TimerHandle)
        ):
            return
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self.loop.call_soon(self._turn)

    def catch_up(self) -> None:
        """Bring virtual time to the present before an input is put in. Nothing happens inside a turn, or if
        there was one just now."""
        if self.running and not self._in_turn and self.wall() - self._last > LEAD:
            if self._handle is not None:
                self._handle.cancel()
            self._turn()

    def _turn(self) -> None:
        self._handle = None
        self.turns += 1
        self._in_turn = True
        now = self.wall()
        passed, self._last = now - self._last, now
        wanted = self._due + passed
        self._due = min(wanted, self.scheduler.now + MOST_A_TURN)
        self.stalled += wanted - self._due
        try:
            more = self._run(now + MOST_WORK)
            self.after_turn()
        except Exception as error:
            self.running = False
            self.on_error(error)
            return
        finally:
            self._in_turn = False
        if self.running and self._handle is None:
            self._plan(more)

    def _run(self, until: int) -> bool:
        """Let happen what is due, or nearly; whether some of it waits for the next turn."""
        scheduler, wall, limit = self.scheduler, self.wall, self._due + LEAD
        step = 0
        while (upcoming := scheduler.next_time()) is not None and upcoming <= limit:
            scheduler.run_until(upcoming)
            step += 1
            if step % 16 == 0 and wall() >= until:
                return True
        if scheduler.now < self._due:
            scheduler.run_until(self._due)
        return False

    def _plan(self, more: bool) -> None:
        """The next turn: when the next event is due."""
        upcoming = self.scheduler.next_time()
        delay = LONGEST_SLEEP if upcoming is None else min(upcoming - self._due - LEAD, LONGEST_SLEEP)
        if more or delay <= 0:
            self._handle = self.loop.call_soon(self._turn)
        else:
            self._handle = self.loop.call_later(delay / SECOND, self._turn)
