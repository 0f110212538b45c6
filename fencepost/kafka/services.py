"""The service under test as a process of its own, which a test can kill, and the wait for what it does.

Owns the process, and when a wait is over. Must not know what the service does.
"""

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from attrs import define, field

from fencepost.traces.errors import EnvironmentError_, FencepostError

SERVERS = "BOOTSTRAP_SERVERS"
"""The environment variable in which a service finds the cluster."""
LOOK_S = 0.02
"""Between two looks."""
STATE_S = 1.0
"""Between two looks at whether anything was recorded: each asks the cluster, which has other work."""
LONGEST = 10
"""A wait ends after so many times its time-out, even if something is recorded all the time: a service that
rebalances for ever is no progress, and a crowded machine needs less."""
MOST_STARTS = 10
"""Of a service under chaos: one that ends again and again will not go on."""
END_S = 10.0
"""How long a process may take to be gone once it is killed."""


@define(eq=False)
class Service:
    """A command that runs as a process; a new one each time it is started again. It has the methods of
    `subprocess.Popen` that a test needs, for the process that runs now."""

    command: list[str]
    environment: Mapping[str, str]
    _process: "subprocess.Popen[bytes]" = field(init=False)
    # Processes that were stopped and replaced, until they have ended.
    _replaced: "list[subprocess.Popen[bytes]]" = field(factory=list, init=False)
    # Processes that chaos has asked to end.
    to_restart: set[int] = field(factory=set, init=False)
    # How often it was started.
    starts: int = field(default=0, init=False)
    # Whether the test itself has ended it, or its block is over: it is not started again.
    released: bool = field(default=False, init=False)
    _lock: threading.RLock = field(factory=threading.RLock, init=False)

    def start(self) -> None:
        """Start a process. Raises EnvironmentError_ where it cannot start."""
        try:
            self._process = subprocess.Popen(
                self.command, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise EnvironmentError_(
                expected="a command that starts", seen=str(error), where=" ".join(self.command)
            ) from None
        self.starts += 1

    def replace(self, process: int) -> None:
        """Start another process while this one is stopped; it is not waited for."""
        with self._lock:
            if not self.released and self._process.pid == process:
                self._replaced.append(self._process)
                self.start()

    def start_again(self) -> None:
        """Start it again if chaos asked it to end, or it has ended otherwise than well, and the test has not
        ended it."""
        with self._lock:
            code = self._process.poll()
            over = code is not None and (code != 0 or self._process.pid in self.to_restart)
            if over and not self.released and self.starts < MOST_STARTS:
                self.start()

    def processes(self) -> set[int]:
        """The numbers of those that run."""
        with self._lock:
            self._replaced = [each for each in self._replaced if each.poll() is None]
            return {each.pid for each in (self._process, *self._replaced) if each.poll() is None}

    def end(self) -> None:
        """Kill what runs (kill -9)."""
        with self._lock:
            self.released = True
            for process in (self._process, *self._replaced):
                process.kill()
                process.wait(END_S)

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As of `subprocess.Popen`."""
        return self._process.returncode

    def poll(self) -> int | None:
        """The exit code of the process; None while it runs."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. timeout: in seconds. Returns the exit code."""
        return self._process.wait(timeout)

    def kill(self) -> None:
        """kill -9; it is not started again."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM; it is not started again."""
        self.send_signal(signal.SIGTERM)

    def send_signal(self, number: int) -> None:
        """Send the process a signal. One that ends it is the test's own wish: it is not started again."""
        with self._lock:
            self.released |= number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
            self._process.send_signal(number)


@define(eq=False)
class Services:
    """The services that run in `with` blocks now."""

    running: list[Service] = field(factory=list)
    # Of a cluster: verbs that the keeper calls.
    _ask: Callable[..., Any] | None = field(default=None, init=False)
    _known: set[int] = field(factory=set, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    @contextmanager
    def service(
        self, command: Sequence[str], servers: str, environment: Mapping[str, str] | None
    ) -> Iterator[Service]:
        """Run a command for the block, and kill it (kill -9) at its end. Raises EnvironmentError_ where it
        cannot start."""
        service = Service(list(map(str, command)), {**(environment or {}), SERVERS: servers})
        service.start()
        self.running.append(service)
        self.tend()
        keeper = threading.Thread(target=self._keep, args=(service,), name="fencepost service", daemon=True)
        keeper.start()
        try:
            yield service
        finally:
            self.running.remove(service)
            service.end()
            keeper.join(END_S)
            self.tend()

    def keep(self, ask: Callable[..., Any]) -> None:
        """From now on chaos may strike them: one that ends with a mistake, or is killed, is started again, as
        whoever runs services does it.

        Args:
            ask: carries out a verb of the cluster.
        """
        self._ask = ask
        self.tend()

    def tend(self) -> None:
        """Start again what has ended, replace what chaos has stopped, and let the cluster know what runs."""
        with self._lock:
            ask = self._ask
            if ask is None:
                return
            struck = ask("take_struck") if self.running else {"replace": [], "restart": []}
            for service in list(self.running):
                for process in struck["replace"]:
                    service.replace(process)
                service.to_restart.update(struck["restart"])
                service.start_again()
            now = {process for service in list(self.running) for process in service.processes()}
            if now != self._known:
                ask("services_run", began=sorted(now - self._known), ended=sorted(self._known - now))
                self._known = now

    def _keep(self, service: Service) -> None:
        while not service.released:
            with suppress(FencepostError):  # the cluster has ended: the block ends soon, too
                self.tend()
            time.sleep(LOOK_S)

    def ended(self) -> str:
        """Which of them has ended with a mistake, in words; "" if none has. One that was killed by the test
        itself, that ended well, or that is about to be started again, is no mistake."""
        for service in self.running:
            again = self._ask is not None and not service.released and service.starts < MOST_STARTS
            if not again and (code := service.poll()) is not None and code > 0:
                return f"the service ended with exit code {code}: {shlex.join(service.command)}"
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
