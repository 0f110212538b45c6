"""A host's clock: the time that its processes read.

Owns the difference between a host's time and the world's. Must not know how the host uses its time.

There are two readings, as on a real host. `elapsed` (CLOCK_MONOTONIC) only grows, at the clock's own speed.
`now` (CLOCK_REALTIME) is `elapsed` plus an offset that can be set. A drifting clock is wrong in both; a jump
changes only `now`. Timers that are already set keep their instant in the world's time. Final.
"""

from fencepost.sim.scheduler import Scheduler

TRUE_SPEED = 1_000_000
"""Parts per million of the world's time."""


class Clock:
    """offset: `now` minus `elapsed`, nanoseconds. speed_ppm: the clock's speed. _drift: `elapsed` minus the
    world's time, constant while the clock runs as fast as the world; every step of every process reads it."""

    __slots__ = ("_drift", "_elapsed", "_scheduler", "_since", "offset", "speed_ppm")

    def __init__(self, scheduler: Scheduler, offset: int = 0) -> None:
        self._scheduler = scheduler
        self.offset = offset
        self.speed_ppm = TRUE_SPEED
        self._since = self._elapsed = 0  # the world's time and this clock's at the last change of speed
        self._drift = 0

    def elapsed(self) -> int:
        """Monotonic time."""
        if self.speed_ppm == TRUE_SPEED:
            return self._scheduler.now + self._drift
        return self._elapsed + (self._scheduler.now - self._since) * self.speed_ppm // TRUE_SPEED

    def now(self) -> int:
        """The host's time of day."""
        if self.speed_ppm == TRUE_SPEED:
            return self._scheduler.now + self._drift + self.offset
        return self.elapsed() + self.offset

    def when_elapsed(self, elapsed: int) -> int:
        """The first instant of the world's time at which `elapsed` has this value, if the speed does not
        change."""
        if self.speed_ppm == TRUE_SPEED:
            return elapsed - self._drift
        return self._since - (self._elapsed - elapsed) * TRUE_SPEED // self.speed_ppm

    def to_global(self, host_time: int) -> int:
        """The first instant of the world's time at which this clock shows `host_time`."""
        if self.speed_ppm == TRUE_SPEED:
            return host_time - self.offset - self._drift
        return self.when_elapsed(host_time - self.offset)

    def jump(self, delta: int, *, backwards: bool = False) -> None:
        """Set the clock forward by `delta` nanoseconds; back only with `backwards`."""
        assert delta >= 0 or backwards, f"a jump of {delta} ns goes back without being asked to"
        self.offset += delta

    def run_at(self, speed_ppm: int) -> None:
        """From now on this many nanoseconds of this clock pass in a millisecond of the world's time."""
        assert speed_ppm > 0, f"a clock cannot run at {speed_ppm} ppm"
        self._elapsed, self._since = self.elapsed(), self._scheduler.now
        self.speed_ppm, self._drift = speed_ppm, self._elapsed - self._since
