"""The service under test as a process of its own, which a test can kill, and the wait for what it does.

Owns the process, and when a wait is over. Must not know what the service does.
"""

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import define, field

from fencepost.traces.errors import EnvironmentError_

SERVERS = "BOOTSTRAP_SERVERS"
"""The environment variable in which a service finds the cluster."""
LOOK_S = 0.02
"""Between two looks."""
STATE_S = 1.0
"""Between two looks at whether anything was recorded: each asks the cluster, which has other work."""
LONGEST = 10
"""A wait ends after so many times its time-out, even if something is recorded all the time: a service that
rebalances for ever is no progress, and a crowded machine needs less."""
END_S = 10.0
"""How long a process may take to be gone once it is killed."""


@define(eq=False)
class Services:
    """The processes that run in `with` blocks now."""

    running: "list[subprocess.Popen[bytes]]" = field(factory=list)

    @contextmanager
    def service(
        self, command: Sequence[str], servers: str, environment: Mapping[str, str] | None
    ) -> "Iterator[subprocess.Popen[bytes]]":
        """Run a command for the block, and kill it (kill -9) at its end. Raises EnvironmentError_ where it
        cannot start."""
        try:
            process = subprocess.Popen(
                list(command),
                env={**os.environ, **(environment or {}), SERVERS: servers},
                stdin=subprocess.DEVNULL,
            )
        except OSError as error:
            raise EnvironmentError_(
                expected="a command that starts", seen=str(error), where=" ".join(command)
            ) from None
        self.running.append(process)
        try:
            yield process
        finally:
            self.running.remove(process)
            process.kill()
            process.wait(END_S)

    def ended(self) -> str:
        """Which of them has ended with a mistake, in words; "" if none has. One that was killed by the test
        itself, or that ended well, is no mistake."""
        for process in self.running:
            if (code := process.poll()) is not None and code > 0:
                return f"the service ended with exit code {code}: {shlex.join(map(str, process.args))}"  # type: ignore[arg-type]
        return ""


def until(
    condition: Callable[[], Any], timeout_s: float, *, ended: Callable[[], str], state: Callable[[], Any]
) -> None:
    """Wait until a condition is true. A crowded machine makes no wait fail: its time begins again whenever
    something is recorded.

    Parameters:
      condition: what to wait for.
      timeout_s: how long it may stay false while nothing new is recorded; ten times as long at most.
      ended: says why it never will be true, "" as long as it may.
      state: of the cluster; the wait begins again when its events do not count the same as before.
    Raises: AssertionError, with the cluster's state.
    """
    start = time.monotonic()
    deadline, last, look = start + timeout_s, -1, start
    while not condition():
        why, now = ended(), time.monotonic()
        if why:
            if condition():  # what the service did before it ended came between the two looks
                return
            raise AssertionError(f"the condition is not true, and {why}\nthe cluster: {state()}")
        if now >= look:
            look, events = now + STATE_S, state().get("events")
            if events != last:
                last, deadline = events, min(now + timeout_s, start + LONGEST * timeout_s)
        if now > deadline:
            raise AssertionError(
                f"the condition was not true within {now - start:.0f} s, for {timeout_s:g} s of which "
                f"nothing new"
                f" was recorded at most\nthe cluster: {state()}"
            )
        time.sleep(LOOK_S)
