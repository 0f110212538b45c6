"""The one fault under which a mistake shows, aimed by hand.

Owns when it strikes and what happens then. Must not know the services.
"""

import signal
from collections.abc import Callable
from subprocess import Popen
from typing import Any

from attrs import frozen

STOPS_S = 30.0
"""How long a process may take to stop that was asked to."""
HANDED_OUT = 2
"""Fetches after a record was written until it was handed out: one may have been on its way before."""
ALONE_MS, DEAD_MS = 300, 1_500
"""Of a leader: time for some results; then above the session after which another one leads."""
Act = Callable[[Any, "Popen[bytes]"], bool]
"""Of a run (running.py) and its process; answers whether the service is to be started again."""


def nothing(run: Any, process: "Popen[bytes]") -> bool:
    """The fault of requests alone."""
    return False


def kill(run: Any, process: "Popen[bytes]") -> bool:
    """kill -9."""
    process.kill()
    return True


def stop(run: Any, process: "Popen[bytes]") -> bool:
    """SIGTERM; the service takes the time that it needs."""
    process.terminate()
    process.wait(STOPS_S)
    return True


def rebalance(run: Any, process: "Popen[bytes]") -> bool:
    """Its group joins again after each of the later orders, as soon as the service has got it: it is in the
    service's buffer then."""
    for _ in run.later_one_by_one():
        run.kafka.wait_for_request("Fetch", HANDED_OUT, run.source)
        run.kafka.rebalance(run.group)
    return False


def pause(run: Any, process: "Popen[bytes]") -> bool:
    """The process stops for as long as another one takes to do all the work, and then goes on."""
    process.send_signal(signal.SIGSTOP)
    try:
        run.by_another_process()
    finally:
        process.send_signal(signal.SIGCONT)
    run.kafka.until(lambda: process.poll() is not None or run.broken())
    return True


def lose_leader(run: Any, process: "Popen[bytes]") -> bool:
    """The broker that takes the results is cut off from the others, answers some of them, and dies."""
    leader = run.kafka.leader(run.sink)
    run.kafka.cut_off(leader, side="brokers", for_ms=ALONE_MS)
    end = run.kafka.status()["time_ms"] + ALONE_MS
    run.kafka.until(lambda: run.kafka.status()["time_ms"] > end)
    run.kafka.crash(leader, for_ms=DEAD_MS)
    return False


@frozen(kw_only=True)
class Strike:
    """When all that it names has come, it acts."""

    # A fault of requests (docs/reference/request-faults.md) that has hit; empty: none.
    fault: str = ""
    # Another one, armed with it.
    then: str = ""
    # Whether the group has committed every order.
    committed: bool = False
    # So many results are there.
    results: int = 0
    # The group is stable with so many members; 0: that does not matter.
    members: int = 0
    act: Act = nothing

    @property
    def faults(self) -> tuple[str, ...]:
        """Those of requests."""
        return tuple(filter(None, (self.fault, self.then)))
