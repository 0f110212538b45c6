"""Faults of a host's time: its processor and its clocks.

Owns these rows of the table in table.py. Must not know what a process does with its time. A clock is wrong
for everything on its host: records' and commits' timestamps, retention, how far followers lag, and, if it
drifts, timers and the pings of the ZooKeeper session.
"""

from fencepost.run.faults.kind import Breakable, FaultKind
from fencepost.traces.plan import Fault


def _slow(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.slow_down(node, fault.parameter)


def _quick_again(cluster: Breakable, fault: Fault, node: int) -> None:
    cluster.world.slow_down(node, 0)


def jump_ms(fault: Fault) -> int:
    """How far the clock is set, back if negative."""
    return -fault.parameter if fault.parameter % 2 else fault.parameter


def _jump(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.jump_clock(node, jump_ms(fault))


def _jump_back(cluster: Breakable, fault: Fault, node: int) -> None:
    cluster.world.jump_clock(node, -jump_ms(fault))


def _drift(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.run_clock(node, fault.parameter)


def _keep_time(cluster: Breakable, fault: Fault, node: int) -> None:
    cluster.world.run_clock(node)


TIME_FAULTS: dict[str, FaultKind] = {
    "slow_host": FaultKind(
        says="the host has little processor time: each message and timer takes its process longer, and the "
        "others wait; restarts change nothing",
        begin=_slow,
        end=_quick_again,
        single=True,
        needs_up=False,
        parameter=(200, 60_000),
        parameter_says="microseconds more for each",
    ),
    "clock_jump": FaultKind(
        says="the host's time of day is set wrong, and right again at the end; timers that are set and the "
        "ZooKeeper session do not notice",
        begin=_jump,
        end=_jump_back,
        needs_up=False,
        parameter=(1, 20_000),
        parameter_says="milliseconds, forward if even, back if odd",
    ),
    "clock_drift": FaultKind(
        says="the host's clocks run at another speed: its timers, timestamps and ZooKeeper pings do; what "
        "was gained or lost stays at the end",
        begin=_drift,
        end=_keep_time,
        single=True,
        needs_up=False,
        parameter=(150_000, 3_000_000),
        parameter_says="nanoseconds of the clock in a millisecond",
    ),
}
