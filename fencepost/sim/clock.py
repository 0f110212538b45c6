"""A host's clock: the world's time plus an offset.

Owns the difference between a host's time and the world's. Must not know what the host does with its time.

It never goes back unless asked to. Drift is one more term in `now` and `to_global` and comes with the fault that needs it. Final but for that.
"""

from fencepost.sim.scheduler import Scheduler


class Clock:
    """offset: host time minus world time, nanoseconds."""

    __slots__ = ("_scheduler", "offset")

    def __init__(self, scheduler: Scheduler, offset: int = 0) -> None:
        self._scheduler = scheduler
        self.offset = offset

    def now(self) -> int:
        """The host's time."""
        return self._scheduler.now + self.offset

    def to_global(self, host_time: int) -> int:
        """The world's time at which this clock shows `host_time`."""
        return host_time - self.offset

    def jump(self, delta: int, *, backwards: bool = False) -> None:
        """Set the clock forward; back only if `backwards` says so. Timers that are already set keep their instant, as monotonic timers do."""
        assert delta >= 0 or backwards, f"a jump of {delta} ns goes back without being asked to"
        self.offset += delta
