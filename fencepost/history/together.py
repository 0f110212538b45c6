"""Clients that really work at the same time.

Owns how several clients begin together, the small seeded pauses between their operations, and how often
threads switch. Must not know what is recorded.

A thread that calls a fast service is done before the next thread has begun. So plain threads hardly overlap
and never meet a race. Three things change that. All clients wait at a barrier. Each client pauses at moments
that its seeded stream draws: before an operation, and at lines of Python inside it, where a race
has its gap. And Python switches threads after 0.1 ms instead of its default of 5 ms. Tasks
switch only where they await.
"""

import asyncio
import inspect
import sys
import threading
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, ClassVar

from attrs import define, field

from fencepost.history.arguments import check_callable, check_timeout, shown
from fencepost.traces.errors import FencepostError

SWITCH_S = 100e-6
"""How long a thread runs before another one may, 50 times shorter than CPython's default. With 1 us a lost
update was found as often (60 of 60 runs)."""
LONGEST_PAUSE_S = 50e-6
"""Longer than a call of a service in memory takes, too short to be noticed."""
FIRST_LINES = 4
"""The first pause of an operation is at one of its first lines; then the distance is drawn from twice as many
each time, so that an operation of n lines has about log2(n) pauses."""
OWN = str(Path(__file__).parent)
"""The recorder's files, in which no pause is needed."""
MOST_CLIENTS = 1_000
"""Each is a thread, or a task."""
TIMEOUT_S = 60.0
DEEPEST = 6
"""Lines of a late client's stack that its error shows."""


@define(eq=False)
class Client:
    """One client, and when it pauses."""

    random: Random
    # from how many lines the next distance is drawn
    reach: int = FIRST_LINES
    # lines until the next pause; 0 outside of operations
    left: int = 0

    def pause(self) -> None:
        """Let other threads run for a moment."""
        time.sleep(self.random.random() * LONGEST_PAUSE_S)

    def begin(self) -> None:
        """In a thread, an operation begins."""
        self.pause()
        self.reach = FIRST_LINES
        self.left = self.random.randint(1, self.reach)

    def end(self) -> None:
        """An operation has ended."""
        self.left = 0

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Python's trace function for this thread. frame: where it is; event: "line" or "call"; arg:
        unused."""
        if self.left and not frame.f_code.co_filename.startswith(OWN):
            self.left -= 1
            if not self.left:
                self.reach *= 2
                self.left = self.random.randint(1, self.reach)
                self.pause()
        return self.trace

    def watch_lines(self) -> None:
        """Watch the lines of this thread from now on. If a debugger or a coverage tool traces them already,
        only calls are watched."""
        if sys.gettrace() is None:
            sys.settrace(self.trace)
        elif sys.getprofile() is None:
            sys.setprofile(self.trace)

    async def pause_task(self) -> None:
        """In a task: let others run, up to three times."""
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)


CLIENT: ContextVar[Client | None] = ContextVar("fencepost_client", default=None)
"""Which client runs here; none outside of `clients`."""


@define(eq=False)
class _Switching:
    """The process-wide switch interval, short while any client needs it. before: the former value."""

    lock: ClassVar[threading.Lock] = threading.Lock()
    users: int = 0
    before: float = 0.0

    @contextmanager
    def short(self) -> Iterator[None]:
        """Short inside of the block; as it was when the last such block ends."""
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.before = sys.getswitchinterval()
                sys.setswitchinterval(SWITCH_S)
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if not self.users:
                    sys.setswitchinterval(self.before)


_SWITCHING = _Switching()


@define(eq=False)
class _Threads:
    """Threads that run one function."""

    function: Callable[[int], Any]
    clients: Sequence[Client]
    # Monotonic seconds, for all threads together.
    deadline_s: float
    barrier: threading.Barrier = field(init=False)
    # Results by client.
    results: dict[int, Any] = field(factory=dict)
    errors: dict[int, BaseException] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.barrier = threading.Barrier(len(self.clients))

    def work(self, number: int) -> None:
        """One client, from the barrier to its end."""
        CLIENT.set(self.clients[number])
        try:
            self.barrier.wait(self.deadline_s)
            self.clients[number].watch_lines()
            self.results[number] = self.function(number)
        except BaseException as error:  # the caller raises a client's exception again
            self.errors[number] = error

    def run(self) -> list[Any]:
        """The results in the order of the clients. Raises what the first client raised, FencepostError where
        one does not end."""
        end = time.monotonic() + self.deadline_s
        threads = [
            threading.Thread(target=self.work, args=(number,), daemon=True, name=f"client {number}")
            for number in range(len(self.clients))
        ]
        with _SWITCHING.short():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(max(0.0, end - time.monotonic()))
        late = [number for number, thread in enumerate(threads) if thread.is_alive()]
        _raise_first(self.errors)
        if late:
            raise _too_late(late[0], self.deadline_s, _place_of(threads[late[0]]))
        return [self.results[number] for number in range(len(threads))]


async def _tasks(function: Callable[[int], Any], clients: Sequence[Client], deadline_s: float) -> list[Any]:
    """The same with tasks of the running loop."""
    begin = asyncio.Event()
    waiting = 0

    async def work(number: int) -> Any:
        nonlocal waiting
        CLIENT.set(clients[number])
        waiting += 1
        if waiting == len(clients):
            begin.set()
        await begin.wait()
        await clients[number].pause_task()
        return await function(number)

    tasks = [asyncio.create_task(work(number), name=f"client {number}") for number in range(len(clients))]
    try:
        _, late = await asyncio.wait(tasks, timeout=deadline_s)
    finally:
        for task in tasks:
            task.cancel()
    ended = {number: task for number, task in enumerate(tasks) if task not in late}
    _raise_first({number: error for number, task in ended.items() if (error := task.exception()) is not None})
    if late:
        raise _too_late(min(number for number, task in enumerate(tasks) if task in late), deadline_s)
    return [task.result() for task in tasks]


def together(count: int, function: Callable[[int], Any], *, seed: int, timeout_s: float) -> Any:
    """See `History.clients`. count: how many clients; function: called with 0 to count - 1; seed: of the
    pauses; timeout_s: for all together."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_CLIENTS:
        raise FencepostError(
            expected=f"a number of clients from 1 to {MOST_CLIENTS}", seen=shown(count), where="clients"
        )
    check_callable(function, "a function of a client's number", "clients: function")
    check_timeout(timeout_s, "clients")
    clients = [Client(Random(f"{seed} {number}")) for number in range(count)]
    if _makes_coroutines(function):
        return _tasks(function, clients, timeout_s)
    results = _Threads(function, clients, timeout_s).run()
    for number, result in enumerate(results):
        if inspect.isawaitable(result) or isinstance(result, Generator | AsyncGenerator):
            for other in results:
                if inspect.iscoroutine(other):
                    other.close()
            raise FencepostError(
                expected="a function that does its work when it is called, or a coroutine function",
                seen=f"that client {number} got a {type(result).__name__}, which nobody runs",
                where="clients: function",
            )
    return results


def _makes_coroutines(function: Callable[[int], Any]) -> bool:
    """Whether it is a coroutine function, or an object that is called like one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004 (the method itself, to look at it)
    )


def _raise_first(errors: dict[int, BaseException]) -> None:
    """The error of the first client that has one, and how many others have."""
    for number in sorted(errors):
        more = f"; so did {len(errors) - 1} other clients" if len(errors) > 1 else ""
        errors[number].add_note(f"client {number} raised this{more}")
        raise errors[number]


def _place_of(thread: threading.Thread) -> str:
    """Where a thread is now: its innermost lines, the last one first. Empty when it has ended."""
    frame = sys._current_frames().get(thread.ident or 0)
    stack = traceback.extract_stack(frame, limit=DEEPEST) if frame is not None else []
    return " < ".join(f"{Path(one.filename).name}:{one.lineno} ({one.name})" for one in reversed(stack))


def _too_late(client: int, deadline_s: float, place: str = "") -> FencepostError:
    return FencepostError(
        expected=f"that each client ends within {deadline_s:g} s",
        seen=f"that client {client} still runs" + (f" in {place}" if place else ""),
        where="clients",
        hint="give a longer timeout_s, or a time-out to what the client waits for",
    )
