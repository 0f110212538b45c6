"""When the machine gave nobody a processor, or a broker none: a sentinel thread that is late, and what the
scheduler says of each thread.

Owns the thread. A process that gets no processor for a while loses its sessions and holds others up, and
nothing in it or in them is wrong. Nobody inside could say so: the one who is late does not know. A broker may
starve while we do not: Linux counts how long each of its threads was ready to run and did not
(/proc/PID/task/TID/schedstat).
"""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import define, field

STEP_S = 0.02
LATE_S = 0.1
"""Later than this, somebody else may have missed a heartbeat too."""
AROUND_S = 0.3
"""Others may have stood still a little earlier, or longer."""


LOOK_S = 0.5
"""How often the threads of brokers are looked at."""
STARVED = 0.5
"""The part of that time for which a thread waited for a processor: half of what is due comes late then."""
MACHINE = -1
"""Instead of a broker: everybody."""
NANOSECONDS = 1e9


def waits_of(pid: int) -> dict[str, int]:
    """How long each thread of a process was ready to run and did not, so far, by its number; nanoseconds.
    Empty where nobody says."""
    found: dict[str, int] = {}
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            found[path.parent.name] = int(path.read_text(encoding="ascii").split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return found


@define(eq=False)
class Sentinel:
    """Watches until the block is over."""

    # Gets each stretch, seconds of time.monotonic, and the broker, or MACHINE. It is called in the thread.
    report: Callable[[float, float, int], None]
    # The process of each broker; under MACHINE that of whoever all of them need, such as ZooKeeper.
    processes: Callable[[], Mapping[int, int]] = dict
    waits: Callable[[int], dict[str, int]] = waits_of
    # By process: what its threads had waited at the last look.
    _waited: dict[int, dict[str, int]] = field(factory=dict)
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
        last = looked = time.monotonic()
        while not self._over.wait(STEP_S):
            now = time.monotonic()
            if now - last > STEP_S + LATE_S:
                self.report(last - AROUND_S, now + AROUND_S, MACHINE)
            last = now
            if now - looked >= LOOK_S:
                self.look_at_brokers(looked, now)
                looked = now

    def look_at_brokers(self, since: float, now: float) -> None:
        """Report the brokers of which a thread has waited for most of the time.

        Args:
            since, now: seconds of time.monotonic.
        """
        for broker, pid in self.processes().items():
            before, waited = self._waited.get(pid), self.waits(pid)
            self._waited[pid] = waited
            if before is None:
                continue
            longest = max((waited[one] - before[one] for one in before.keys() & waited.keys()), default=0)
            if longest > STARVED * (now - since) * NANOSECONDS:
                self.report(since - AROUND_S, now + AROUND_S, broker)
