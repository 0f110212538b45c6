"""Faults of a host's time: its processor and its clocks.

Owns these rows of the table in table.py. Must not know what a process does with its time. A clock is wrong
for everything on its host: records' and commits' timestamps, retention, how far followers lag, and, if it
drifts, timers and the pings of the ZooKeeper session.
"""

from fencepost.run.faults.kind import FaultKind
from fencepost.traces.plan import Fault


def jump_ms(fault: Fault) -> int:
    """How far the clock is set, back if negative."""
    return -fault.parameter if fault.parameter % 2 else fault.parameter


TIME_FAULTS: dict[str, FaultKind] = {
    "slow_host": FaultKind(
        says="the host has little processor time: each message and timer takes its process longer, and the "
        "others wait; restarts change nothing",
        begin=lambda hit: hit.world.slow_down(hit.node, hit.parameter),
        end=lambda hit: hit.world.slow_down(hit.node, 0),
        single=True,
        needs_up=False,
        parameter=(200, 60_000),
        parameter_says="microseconds more for each",
    ),
    "clock_jump": FaultKind(
        says="the host's time of day is set wrong, and right again at the end; timers that are set and the "
        "ZooKeeper session do not notice",
        begin=lambda hit: hit.world.jump_clock(hit.node, jump_ms(hit.fault)),
        end=lambda hit: hit.world.jump_clock(hit.node, -jump_ms(hit.fault)),
        needs_up=False,
        parameter=(1, 20_000),
        parameter_says="milliseconds, forward if even, back if odd",
    ),
    "clock_drift": FaultKind(
        says="the host's clocks run at another speed: its timers, timestamps and ZooKeeper pings do; what "
        "was gained or lost stays at the end",
        begin=lambda hit: hit.world.run_clock(hit.node, hit.parameter),
        end=lambda hit: hit.world.run_clock(hit.node),
        single=True,
        needs_up=False,
        parameter=(150_000, 3_000_000),
        parameter_says="nanoseconds of the clock in a millisecond",
    ),
}
