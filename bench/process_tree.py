"""What this process and all below it use: processor time, and the memory of Python workers and of the JVM
(where the system tells, as Linux does)."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from attrs import frozen

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
LOOK_S = 0.1


@frozen(kw_only=True)
class Cost:
    """Of one piece of work. seconds: wall time; processor: seconds of all processes together; workers, jvm:
    the most bytes that all Python workers had together, and that the JVM had; what processes share counts in
    each."""

    seconds: float
    processor: float
    workers: int = 0
    jvm: int = 0


@frozen(kw_only=True)
class _Process:
    """One of them, now. ticks: of its own processor time."""

    java: bool
    parent: int
    ticks: int
    resident: int


def _tree() -> dict[int, _Process]:
    """This process and all below it."""
    found: dict[int, _Process] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (folder / "stat").read_text().rsplit(")", 1)
            told = rest.split()
            resident = int((folder / "statm").read_text().split()[1]) * PAGE
        except (OSError, ValueError, IndexError):
            continue
        ticks = sum(map(int, told[11:13]))
        found[int(folder.name)] = _Process(
            java="java" in name, parent=int(told[1]), ticks=ticks, resident=resident
        )

    def ours(process: int) -> bool:
        while process in found and process != os.getpid():
            process = found[process].parent
        return process == os.getpid()

    return {process: one for process, one in found.items() if ours(process)}


def cost_of(work: Callable[[], object]) -> Cost:
    """Do it once. Of a process that ends meanwhile, what it had used at the last look counts: Spark ends a
    Python worker that was idle for a minute, and nobody is sure to wait for it."""
    most, own, ended = [0, 0], [0.0], Event()
    used = {process: one.ticks for process, one in _tree().items()}

    def look() -> None:
        while not ended.wait(LOOK_S):
            everything = _tree()
            used.update((process, one.ticks) for process, one in everything.items())
            tree = {process: one for process, one in everything.items() if process != os.getpid()}
            for n, java in enumerate((False, True)):
                most[n] = max(most[n], sum(one.resident for one in tree.values() if one.java == java))
            own[0] = time.thread_time()

    thread = Thread(target=look, daemon=True)
    before, start = sum(used.values()), time.perf_counter()
    thread.start()
    try:
        work()
    finally:
        seconds = time.perf_counter() - start
        ended.set()
        thread.join()
    used.update((process, one.ticks) for process, one in _tree().items())
    ticks = sum(used.values()) - before
    processor = ticks / TICKS - own[0]  # looking is no part of the work
    return Cost(seconds=seconds, processor=processor, workers=most[0], jvm=most[1])
