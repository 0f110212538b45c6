"""When the machine gave nobody a processor: a sentinel thread that is late.

Owns the thread. A process that gets no processor for a while loses its sessions and holds others up, and
nothing in it or in them is wrong. Nobody inside could say so: the one who is late does not know.
"""

import threading
import time
from collections.abc import Callable

from attrs import define, field

STEP_S = 0.02
LATE_S = 0.1
"""Later than this, somebody else may have missed a heartbeat too."""
AROUND_S = 0.3
"""Others may have stood still a little earlier, or longer."""


@define(eq=False)
class Sentinel:
    """report(begin, end): gets each stretch, seconds of time.monotonic. It is called in the thread."""

    report: Callable[[float, float], None]
    _over: threading.Event = field(factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> "Sentinel":
        self._thread = threading.Thread(target=self._look, name="sentinel", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        last = time.monotonic()
        while not self._over.wait(STEP_S):
            now = time.monotonic()
            if now - last > STEP_S + LATE_S:
                self.report(last - AROUND_S, now + AROUND_S)
            last = now
