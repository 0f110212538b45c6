"""An asyncio loop in a separate thread, and calls into it from any other thread.

Owns the thread's life and the crossing. Must not know what is called.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from attrs import define, field

from fencepost.traces.errors import EnvironmentError_

ANSWER_S = 300.0
"""Longest wait of one call, far above what any of them does on a starved machine."""
Answer = TypeVar("Answer")


@define(eq=False)
class LoopThread:
    """A running loop until `close`."""

    # Name of the thread.
    name: str
    loop: asyncio.AbstractEventLoop = field(factory=asyncio.new_event_loop)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Run the loop. The thread is a daemon: it never keeps a program alive that forgot to close it."""
        assert self._thread is None, f"{self.name} is started twice"
        self._thread = threading.Thread(target=self.loop.run_forever, name=self.name, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it is between `start` and `close`."""
        return self._thread is not None and not self.loop.is_closed()

    def call(self, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        """Call something in the loop's thread. From the loop's own thread it is called at once.

        Args:
            function: what to call.
            args: of the call.
            kwargs: of the call.

        Returns:
            What it returns; what it raises is raised here.
        """
        if threading.current_thread() is self._thread:
            return function(*args, **kwargs)
        answer: Future[Answer] = Future()

        def work() -> None:
            try:
                answer.set_result(function(*args, **kwargs))
            except BaseException as error:
                answer.set_exception(error)

        self._check_open()
        self.loop.call_soon_threadsafe(work)
        return self._wait(answer)

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run a coroutine there to its end. Not from the loop's own thread."""
        assert threading.current_thread() is not self._thread, "a loop cannot wait for itself"
        try:
            self._check_open()
        except BaseException:
            work.close()
            raise
        return self._wait(asyncio.run_coroutine_threadsafe(work, self.loop))

    def close(self) -> None:
        """End the loop and its thread. Closing again does nothing."""
        if not self.running:
            return
        assert self._thread is not None
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(ANSWER_S)
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def _check_open(self) -> None:
        if not self.running:
            raise EnvironmentError_(
                expected="a cluster that runs",
                seen="one that was closed",
                where=self.name,
                hint="start another one",
            )

    def _wait(self, answer: "Future[Answer]") -> Answer:
        try:
            return answer.result(ANSWER_S)
        except TimeoutError:
            if answer.done():
                raise  # the call's own
            raise EnvironmentError_(
                expected=f"an answer within {ANSWER_S:g} s", seen="none", where=self.name
            ) from None
