"""What work costs: wall time, processor time, memory; of this process, of a new one, or of all below one.

Memory and other processes are seen where the system shows them in /proc, as Linux does.
"""

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from typing import Any

from attrs import field, frozen

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
LOOK_S = 0.1
"""Between two looks at other processes. Spark ends an idle Python worker without waiting for it, so what a
process used is known from the last look."""


@frozen(kw_only=True)
class Cost:
    """What one turn cost."""

    # Seconds of the clock.
    wall_s: float
    # Seconds of processor time, the kernel's part included.
    cpu_s: float
    # The most resident memory, in MiB; 0 where nobody looked.
    mib: float = 0.0
    # Other figures, by name with its unit.
    more: Mapping[str, float | str] = field(factory=dict)


def here(work: Callable[[], Any]) -> Cost:
    """Cost of work that this process does. A Cost that the work returns is taken as it is."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    if isinstance(found, Cost):
        return found
    return Cost(wall_s=time.perf_counter() - wall, cpu_s=time.process_time() - cpu)


def fresh(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns in a new process, so that its peak of memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(function, *arguments).result()


def peak_mib() -> float:
    """The most memory that this process ever had; 0 where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


@frozen(kw_only=True)
class Used:
    """Of one process, so far."""

    java: bool
    parent: int
    # Seconds of processor time, without those of its children.
    cpu_s: float
    # Resident now.
    mib: float


def tree(root: int) -> dict[int, Used]:
    """A process and all below it, by id; empty where the system does not tell."""
    found: dict[int, Used] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (folder / "stat").read_text().rsplit(")", 1)
            fields = rest.split()
            resident = int((folder / "statm").read_text().split()[1]) * PAGE / (1 << 20)
        except (OSError, ValueError, IndexError):
            continue
        found[int(folder.name)] = Used(
            java="java" in name,
            parent=int(fields[1]),
            cpu_s=sum(map(int, fields[11:13])) / TICKS,
            mib=resident,
        )

    def below(process: int) -> bool:
        while process in found and process != root:
            process = found[process].parent
        return process == root

    return {process: one for process, one in found.items() if below(process)}


def cpu_s(*processes: int) -> float:
    """Seconds of processor time of these processes and all below them, so far."""
    return sum(one.cpu_s for process in processes for one in tree(process).values())


def whole(work: Callable[[], Any]) -> Cost:
    """Cost of work that this process and those below it do; memory is that of Python workers and of JVMs."""
    most, own, ended = {"workers": 0.0, "JVM": 0.0}, [0.0], Event()
    used = {process: one.cpu_s for process, one in tree(os.getpid()).items()}

    def look() -> None:
        while not ended.wait(LOOK_S):
            seen = tree(os.getpid())
            used.update((process, one.cpu_s) for process, one in seen.items())
            seen.pop(os.getpid(), None)
            for name, java in (("workers", False), ("JVM", True)):
                most[name] = max(most[name], sum(one.mib for one in seen.values() if one.java == java))
            own[0] = time.thread_time()

    thread = Thread(target=look, daemon=True)
    before, start = sum(used.values()), time.perf_counter()
    thread.start()
    try:
        work()
    finally:
        wall_s = time.perf_counter() - start
        ended.set()
        thread.join()
    used.update((process, one.cpu_s) for process, one in tree(os.getpid()).items())
    return Cost(
        wall_s=wall_s,
        cpu_s=sum(used.values()) - before - own[0],  # looking is no part of the work
        mib=sum(most.values()),
        more={f"{name} MiB": round(mib) for name, mib in most.items()},
    )
