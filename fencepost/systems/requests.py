"""Administrative procedures carried out against the simulated ZooKeeper at once, as the admin tools do it
with a session.

Owns the handing over of replies. Must not know what is asked.
"""

from collections.abc import Callable
from typing import Any

from fencepost.impl.core.procedures import Pipelined, ZooKeeperSteps
from fencepost.impl.zookeeper.interface import Reply, ZooKeeperRequest


def carry_out(steps: ZooKeeperSteps, ask: Callable[[ZooKeeperRequest], Reply]) -> Any:
    """Run a procedure (impl/core/procedures.py) to its end. steps: the procedure; ask: sends a request to
    ZooKeeper. Returns and raises what the procedure does."""
    value: Any = None
    while True:
        try:
            asked = steps.send(value)
        except StopIteration as done:
            return done.value
        if isinstance(asked, Pipelined):
            value = [asked.kept(ask(request)) for request in asked.requests]
        elif isinstance(asked, tuple):
            value = [ask(request) for request in asked]
        else:
            value = ask(asked)
