"""Limits of time and memory that also hold while a model's step runs.

Owns the clock, the memory of the process and the watchdog. Must not know which work is limited.

The clock is read between slices of compiled work and between steps. A step that does not return is
interrupted: a watchdog thread raises `LimitReached` in the working thread, repeatedly until that thread
leaves. One case cannot be interrupted from inside the process: a single call into C that does not return (a
huge power, a regular expression), and the memory that it allocates. A model must limit such calls itself
(docs/explanation/linearizability.md).
"""

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from attrs import define, field, frozen

POLL_SECONDS = 0.02
"""The interval at which the watchdog reads the clock and the memory in use."""


SETTLE_SECONDS = 0.000_5
"""The interval at which the work looks whether its watchdog has ended."""
T = TypeVar("T")


class LimitReached(BaseException):
    """Time or memory is used up. It is not an Exception, so that a model that catches Exception does not
    catch it."""


@frozen(kw_only=True)
class SearchLimits:
    """The limits of one check.

    Attributes:
        timeout_s: wall clock time in seconds.
        memory_bytes: by how many bytes the memory of the process may grow.
        nodes: how many configurations the search may remember.
    """

    timeout_s: float = 60.0
    memory_bytes: int = 2 << 30
    nodes: int = 1 << 26


def memory_in_use() -> int:
    """Bytes of memory that the process uses now. On systems that do not report it: the maximum so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * _page_size()
    except (OSError, ValueError, IndexError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used if sys.platform == "darwin" else used * 1024


def _page_size() -> int:
    import resource

    return resource.getpagesize()


@define(eq=False)
class Guard:
    """One use of limits."""

    # The limits that apply.
    limits: SearchLimits
    # The moment on the monotonic clock, in seconds, at which the time is used up.
    deadline: float = field(init=False)
    # Bytes in use at the beginning; None until it is first read. Reading it can take longer than judging a
    # short history.
    _base: int | None = field(init=False)
    # The limit that was reached, as text; "" if none.
    reached: str = ""
    # Read the memory in use at construction, not at the first use of `base`.
    at_once: bool = True
    # The guard of the larger work that this work is a part of.
    outer: "Guard | None" = None
    # Held while the watchdog raises, and while limits are suspended.
    _raising: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.deadline = time.monotonic() + self.limits.timeout_s
        self._base = memory_in_use() if self.at_once else None

    @property
    def base(self) -> int:
        """Bytes in use at the beginning of the work."""
        if self._base is None:
            self._base = memory_in_use()
        return self._base

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.deadline - time.monotonic()

    def over(self) -> str:
        """The limit that is reached now, as text; "" if none."""
        if self.seconds_left <= 0:
            return f"the time limit of {self.limits.timeout_s:g} s was met"
        if memory_in_use() - self.base > self.limits.memory_bytes:
            return memory_words(self.limits.memory_bytes)
        return ""

    def check(self) -> None:
        """Raise LimitReached if a limit is reached."""
        self.reached = self.reached or self.over()
        if self.reached:
            raise LimitReached(self.reached)

    def room_for(self, more: int) -> None:
        """Raise LimitReached if `more` additional bytes would exceed the memory limit."""
        if memory_in_use() - self.base + more > self.limits.memory_bytes:
            self.reached = self.reached or memory_words(self.limits.memory_bytes)
            raise LimitReached(self.reached)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Suspend all limits while the body runs. Its time and memory are added to the limits."""
        with nullcontext() if self.outer is None else self.outer.stopped(), self._raising:
            began, used = time.monotonic(), memory_in_use()
            try:
                yield
            finally:
                self.deadline += time.monotonic() - began
                self._base = self.base + max(0, memory_in_use() - used)

    def watch(self, work: Callable[[], T]) -> T:
        """Call a function. A watchdog raises LimitReached in it as soon as a limit is reached.

        An exception from another thread may arrive after any call, so that a lock that Python code has taken
        may never be given back. Therefore `at_work` is one that the interpreter itself gives back (`with` on
        a lock), the watchdog waits for no lock without a bound, and raises nothing before `start`, which
        waits by a lock of Python code, has returned.

        Args:
            work: is called once, in this thread.

        Returns:
            What it returns.

        Raises:
            LimitReached: if a limit was reached; and what the function raises.
        """
        assert self.base >= 0, "what is in use at the beginning does not count"
        at_work, ended, started = threading.Lock(), SimpleQueue[None](), SimpleQueue[None]()
        thread = ctypes.c_ulong(threading.get_ident())

        def guard() -> None:
            while not at_work.acquire(timeout=POLL_SECONDS):
                if not self._raising.acquire(timeout=POLL_SECONDS):
                    continue
                try:
                    self.reached = self.reached or self.over()
                    if self.reached and at_work.locked() and not started.empty():
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(LimitReached))
                finally:
                    self._raising.release()
            ended.put(None)

        watchdog = threading.Thread(target=guard, daemon=True, name="limits")
        try:
            with at_work:
                watchdog.start()
                started.put(None)
                return work()
        finally:
            _await_end(watchdog, ended)


def _await_end(watchdog: threading.Thread, ended: "SimpleQueue[None]") -> None:
    """Wait until the watchdog has ended, so that its last exception arrives here and not later.

    Withdrawing an asynchronous exception (with NULL) makes CPython 3.11 look for one at every call from then
    on. A thread that is traced then never gets past the beginning of a function.
    """
    while True:
        try:
            while watchdog.is_alive() and ended.empty():
                time.sleep(SETTLE_SECONDS)
            return
        except LimitReached:
            continue


def memory_words(limit: int) -> str:
    """The memory limit as the reason of an Unknown."""
    return f"the memory limit of {limit / (1 << 20):,.0f} MiB was met"
