"""Virtual time and the queue of events.

Owns the clock of the world and the order of its events. Must not know the events' effects.

Events of the same instant run in the order in which they were scheduled. Time is an integer number of
nanoseconds and never goes back.

An event's handle is its time and its number in one integer, so handles compare in the order of events. The
heap holds only handles; the callables are stored separately. Final.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from fencepost.traces.errors import FencepostError

MAXIMUM_EVENTS = 20_000_000
"""The most events of one run. Reason: about a hundred times what a long run of a large cluster needs; more
events mean an endless exchange of messages."""

_NUMBER_BITS = 40
"""The lower bits of a handle, for the event's number: far more events than a run may have."""
NO_BOUND = (1 << _NUMBER_BITS) - 1
"""Bound for a world that follows the wall clock until its user ends it: handles can number this many events,
100,000 a second for 127 days."""

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


class RunawayError(FencepostError, RuntimeError):
    """A run had more events than its bound."""


class Scheduler:
    """now: virtual nanoseconds since the world began. events: how many have run."""

    __slots__ = ("_calls", "_heap", "_limit", "_number", "_stopping", "events", "now")

    def __init__(self, maximum_events: int = MAXIMUM_EVENTS) -> None:
        self.now = 0
        self.events = 0
        self._limit = maximum_events
        self._heap: list[int] = []
        self._calls: dict[int, tuple[Callable[..., object], tuple[Any, ...]]] = {}
        self._number = 0
        self._stopping = False

    def at(self, time: int, function: Callable[..., object], *args: Any) -> int:
        """Call `function(*args)` at this time (or now, if it has passed). Returns a handle for `cancel`."""
        self._number = number = self._number + 1
        handle = (time if time > self.now else self.now) << _NUMBER_BITS | number
        self._calls[handle] = (function, args)
        heappush(self._heap, handle)
        return handle

    def after(self, delay: int, function: Callable[..., object], *args: Any) -> int:
        """Call `function(*args)` after `delay` nanoseconds. Returns a handle for `cancel`."""
        return self.at(self.now + delay, function, *args)

    def cancel(self, handle: int) -> None:
        """Cancel an event that has not run yet. It must not have run."""
        del self._calls[handle]

    def stop(self) -> None:
        """Make the current `run_until` return after the event that is running."""
        self._stopping = True

    def next_time(self) -> int | None:
        """The time of the next event; None if there is none."""
        heap = self._heap
        while heap and heap[0] not in self._calls:
            heappop(heap)
        return heap[0] >> _NUMBER_BITS if heap else None

    def run_until(self, time: int) -> None:
        """Run all events up to and including this time; `now` is then this time (or that of the event that
        called `stop`)."""
        heap, calls = self._heap, self._calls
        end = (time + 1) << _NUMBER_BITS
        self._stopping = False
        while heap and heap[0] < end:
            handle = heappop(heap)
            call = calls.pop(handle, None)
            if call is None:
                continue  # cancelled
            self.now = handle >> _NUMBER_BITS
            self.events += 1
            if self.events > self._limit:
                raise self._runaway(call[0])
            call[0](*call[1])
            if self._stopping:
                return
        self.now = max(self.now, time)

    def _runaway(self, function: Callable[..., object]) -> RunawayError:
        return RunawayError(
            expected=f"at most {self._limit} events in one run",
            seen=f"one more at virtual time {self.now} ns, in {getattr(function, '__qualname__', function)}",
            where="the simulated world's scheduler",
            hint="something answers itself without end; shorten the run to find it",
        )
