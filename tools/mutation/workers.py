"""A forked process for each fault: what it does there is gone with it.

Owns processes: how many there are, their memory, their processor time, and that none outlives its parent.
Must not know faults or what answers mean.
"""

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from attrs import frozen

MEMORY_BYTES = 6 << 30
"""Of address space. A healthy run needs a few hundred megabytes with everything that is imported; a fault
that
allocates without end ends there."""
WALL_FACTOR = 8
"""Wall clock allowed for each second of processor time: other work runs on the machine too."""
LOOK_S = 1.0
"""How often it is looked whether a process is too late."""
DEATHS = {signal.SIGXCPU: "time", signal.SIGKILL: "time", signal.SIGPROF: "time"}
Call = Callable[[], Any]


@frozen(kw_only=True)
class Ended:
    """What became of a process."""

    # What its call returned, None if it died.
    answer: Any
    # "time", the signal, or "no answer".
    died: str = ""
    # Of wall clock.
    seconds: float = 0.0


@frozen
class _Running:
    key: Any
    process: BaseProcess
    began: float
    # Of processor time, in seconds; 0: no limit.
    cpu_s: int

    @property
    def late(self) -> bool:
        return bool(self.cpu_s) and time.monotonic() > self.began + self.cpu_s * WALL_FACTOR

    def kill(self) -> None:
        """With everything that it started."""
        assert self.process.pid is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()


def _child(sender: Connection, call: Call, cpu_s: int) -> None:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if cpu_s:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    sender.send(call())


def forked(todo: Iterable[tuple[Any, Call, int]], jobs: int) -> Iterator[tuple[Any, Ended]]:
    """Each key with what became of its call, as they end.

    Args:
        todo: keys, what a process of its own does for each, and the seconds of processor time after which it
            is ended (0: none). Taken one by one, so that a later one can depend on earlier answers.
        jobs: processes at a time.
    """
    waiting = iter(todo)
    running: dict[Connection, _Running] = {}
    context = multiprocessing.get_context("fork")
    try:
        while True:
            while len(running) < jobs and (one := next(waiting, None)) is not None:
                key, call, cpu_s = one
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_child, args=(theirs, call, cpu_s))
                process.start()
                theirs.close()
                running[ours] = _Running(key, process, time.monotonic(), cpu_s)
            if not running:
                return
            for ready in wait(list(running), LOOK_S):
                assert isinstance(ready, Connection)
                found = running.pop(ready)
                yield found.key, _ended(ready, found)
            for found in running.values():
                if found.late:
                    found.kill()
    finally:
        for found in running.values():
            found.kill()
            found.process.join()


def _ended(ours: Connection, found: _Running) -> Ended:
    answer, died = None, ""
    try:
        answer = ours.recv()
    except EOFError:
        died = "no answer"
    ours.close()
    found.process.join()
    code = found.process.exitcode or 0
    if died and code < 0:
        number = signal.Signals(-code)
        died = DEATHS.get(number, f"signal {-code}")
    return Ended(answer=answer, died=died, seconds=time.monotonic() - found.began)


def in_a_child(call: Call, cpu_s: int = 0) -> Ended:
    """The same for one call."""
    ((_, ended),) = forked([(None, call, cpu_s)], 1)
    return ended
