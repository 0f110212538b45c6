"""Limits of time and memory that hold, inside a model's step too.

Owns the clock, the process's memory and the watchdog. Must not know what is being limited.

Between slices of compiled work and between steps the clock is simply read. A step that does not return is
interrupted: a watchdog thread raises `LimitReached` in the thread that runs it, again and again until it
leaves. What cannot be interrupted from inside the process is one call into C that does not come back (a huge
power, a regular expression), and what such a call allocates: bound those in the model
(docs/how-to/models.md).
"""

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import define, field, frozen

POLL_SECONDS = 0.02
"""How often the watchdog looks at the clock and at memory."""


class LimitReached(BaseException):
    """Time or memory is used up. Not an Exception, so that a model that catches those does not swallow it."""


@frozen(kw_only=True)
class SearchLimits:
    """timeout_s: seconds of wall clock; memory_bytes: by which the process may grow; nodes: configurations
    that are remembered at most."""

    timeout_s: float = 60.0
    memory_bytes: int = 2 << 30
    nodes: int = 1 << 26


def memory_in_use() -> int:
    """Bytes that this process has in memory now (the most it ever had where the system does not tell)."""
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
    """One use of limits. deadline: on the monotonic clock; base: memory in use at the beginning; reached:
    which limit, "" if none; at_once: the beginning is now, not only when it is first used; outer: of the work
    that this one is a share of. Asking the system for memory may take longer than judging a short history."""

    limits: SearchLimits
    deadline: float = field(init=False)
    _base: int | None = field(init=False)
    reached: str = ""
    at_once: bool = True
    outer: "Guard | None" = None
    _raising: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.deadline = time.monotonic() + self.limits.timeout_s
        self._base = memory_in_use() if self.at_once else None

    @property
    def base(self) -> int:
        """Bytes."""
        if self._base is None:
            self._base = memory_in_use()
        return self._base

    @property
    def seconds_left(self) -> float:
        """Until the deadline; negative behind it."""
        return self.deadline - time.monotonic()

    def over(self) -> str:
        """Which limit is reached now, in words; "" if none."""
        if self.seconds_left <= 0:
            return f"the time limit of {self.limits.timeout_s:g} s was met"
        if memory_in_use() - self.base > self.limits.memory_bytes:
            return memory_words(self.limits.memory_bytes)
        return ""

    def check(self) -> None:
        """Raises LimitReached if a limit is."""
        self.reached = self.reached or self.over()
        if self.reached:
            raise LimitReached(self.reached)

    def room_for(self, more: int) -> None:
        """Raises LimitReached if so many more bytes would be too many."""
        if memory_in_use() - self.base + more > self.limits.memory_bytes:
            self.reached = self.reached or memory_words(self.limits.memory_bytes)
            raise LimitReached(self.reached)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While the body runs, no limit counts or interrupts: what it takes is added to them."""
        with ExitStack() as held:
            if self.outer is not None:
                held.enter_context(self.outer.stopped())
            held.enter_context(self._raising)
            began, used = time.monotonic(), memory_in_use()
            try:
                yield
            finally:
                self.deadline += time.monotonic() - began
                self._base = self.base + max(0, memory_in_use() - used)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While the body runs, a watchdog raises LimitReached in it once a limit is reached, whatever it is
        doing."""
        assert self.base >= 0, "what is in use at the beginning does not count"
        done, raised, lock = threading.Event(), threading.Event(), self._raising
        thread = ctypes.c_ulong(threading.get_ident())

        def watch() -> None:
            while not done.wait(POLL_SECONDS):
                with lock:
                    self.reached = self.reached or self.over()
                    if self.reached and not done.is_set():
                        raised.set()
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(LimitReached))

        watcher = threading.Thread(target=watch, daemon=True, name="limits")
        watcher.start()
        try:
            yield
        finally:
            _settle(done, raised, lock, thread)


def _settle(
    done: threading.Event, raised: threading.Event, lock: threading.Lock, thread: ctypes.c_ulong
) -> None:
    """Stop the watchdog, and let what it raised arrive here.

    An exception that is taken back (with NULL) leaves CPython 3.11 looking for one at every call, for ever,
    and a thread that is traced then never gets past the beginning of a function. So one more is raised, which
    replaces the one that may be under way; when it has arrived, nothing is left.
    """
    asked = False
    while True:
        try:
            with lock:
                done.set()
            if not raised.is_set():
                return
            asked = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(LimitReached))
            while True:
                pass  # it arrives at the next turn
        except LimitReached:
            if asked:
                return


def memory_words(limit: int) -> str:
    """The memory limit as a reason."""
    return f"the memory limit of {limit / (1 << 20):,.0f} MiB was met"
