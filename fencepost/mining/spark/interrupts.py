"""Ctrl-C while Spark is in use: it waits until py4j has said its sentence.

Owns: the handler of SIGINT and SIGTERM while a session is there, and what a thread does that must not be
interrupted. Must not know: what runs on Spark.

Theory. Python runs a signal's handler in the main thread, between two bytecodes. When that is in the middle
of a call to the JVM, the interrupt cuts the call, py4j logs the cut with a traceback, and the answer to this
call is read as the answer to the next. PySpark's own handler makes it worse: it calls the JVM from inside the
handler. An interrupt while the JVM starts leaves that JVM running for good.

So the start happens in another thread, for which the main thread waits (PySpark installs its handler only in
the main thread). Afterwards our handler looks at the frame that it interrupts. While py4j or pyspark is on
the stack, it comes back a moment later.
"""

import _thread
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from attrs import define

AGAIN_S = 0.02
"""After this time the handler checks again. A call to the JVM takes about a millisecond; 20 are not
noticeable."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TALKING = ("py4j", "pyspark")


def _talks(frame: FrameType | None) -> bool:
    """Whether this frame, or one that called it, is in the middle of a call to the JVM."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in _TALKING:
            return True
        frame = frame.f_back
    return False


@define
class Patience:
    """When an interrupt is raised."""

    # Not at present: something has to come to its end first.
    held: bool = False
    # One is on its way, from a timer.
    waiting: bool = False

    def interrupt(self, signum: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, now or as soon as it interrupts no call to the JVM. signum, frame:
        Python's."""
        if not self.held and not _talks(frame):
            raise KeyboardInterrupt
        if self.waiting:
            return  # pressed twice: one interrupt is on its way

        def again() -> None:
            self.waiting = False
            _thread.interrupt_main(signal.Signals(signum))

        self.waiting = True
        timer = threading.Timer(AGAIN_S, again)
        timer.daemon = True
        timer.start()

    def to_the_end(self, work: Callable[[], None]) -> None:
        """Do `work` in a separate thread, which no signal reaches. An interrupt waits for its end. Raises
        what `work` raises."""
        errors: list[Exception] = []
        ended = threading.Event()

        def run() -> None:
            try:
                work()
            except Exception as error:
                errors.append(error)
            finally:
                ended.set()

        self.held = True
        try:
            threading.Thread(target=run, daemon=True).start()
            ended.wait()
        finally:
            self.held = False
        if errors:
            raise errors[0]


@contextmanager
def patient_interrupts() -> Iterator[Patience]:
    """Inside, Ctrl-C and SIGTERM raise KeyboardInterrupt only between two calls to the JVM. Changes nothing
    in other threads, which no signal reaches, and of signals that are ignored (nohup) or end the process at
    once."""
    patience = Patience()
    before = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {signum: signal.getsignal(signum) for signum in SIGNALS}
        before = {signum: handler for signum, handler in handlers.items() if callable(handler)}
    try:
        for signum in before:
            signal.signal(signum, patience.interrupt)
        with _without_complaints():
            yield patience
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@contextmanager
def _without_complaints() -> Iterator[None]:
    """py4j logs a connection that ends while the session is stopped; after an interruption that is
    expected."""

    def other(record: logging.LogRecord) -> bool:
        return "while sending command" not in record.getMessage()

    library = logging.getLogger("py4j")
    before = library.level
    library.setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(other)
    try:
        yield
    finally:
        library.setLevel(before)
        logging.getLogger().removeFilter(other)
