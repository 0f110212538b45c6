"""Operating-system processes: started in their own session, identified by more than their number, and
reliably ended.

Owns signals and /proc. Must not know what the processes do. A process id alone does not identify a process,
because the system reuses it. Together with the start time (where /proc reports it) it does.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from attrs import frozen

POLL_S = 0.02
GRACE_S = 5.0
"""How long a process may take to end after SIGTERM before it is killed."""
STILL_S = 1.0
"""How long its threads may take to stand still after SIGSTOP."""
UNKNOWN = 0
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@frozen
class ProcessId:
    """pid, and the start time (clock ticks since the machine's start; UNKNOWN if the system does not report
    it)."""

    pid: int
    began: int = UNKNOWN


def spawn(command: Sequence[str], log: BinaryIO, *, dies_with_us: bool = False) -> ProcessId:
    """Start a process that a Ctrl-C at our terminal does not reach; its starter ends it. Its output goes to
    `log`.

    dies_with_us: where the system supports it (Linux), the process is killed when the thread that started it
    ends, even after SIGKILL.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=death_with_us() if dies_with_us else None,
    )
    process.returncode = (
        0  # it is waited for by its number, here or by a later command, so Popen need not warn
    )
    return identify(process.pid)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the block is done, so that every started process is recorded. No effect
    outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = {
        number: signal.signal(number, lambda number, frame: came.append((number, frame)))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        os.kill(os.getpid(), came[0][0])


def death_with_us() -> Callable[[], None] | None:
    """What a child calls before its program begins, to be killed when the thread that started it ends; None
    where the system has no such thing."""
    return None if _LIBC is None else _ask_for_death


def end_with(parent: int) -> None:
    """End this process by SIGKILL when its parent's thread that started it ends, even after SIGKILL of the
    parent. No effect but on Linux. parent: the parent's number; if it has gone already, this is the end."""
    if _LIBC is not None:
        _ask_for_death()
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def _ask_for_death() -> None:
    assert _LIBC is not None
    _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def identify(pid: int) -> ProcessId:
    """The identity of a running process."""
    fields = _stat(pid)
    return ProcessId(pid, int(fields[19]) if fields else UNKNOWN)


def state(process: ProcessId) -> str:
    """running, paused or dead."""
    _reap(process.pid)
    fields = _stat(process.pid)
    if not fields:
        return "dead" if Path("/proc/self/stat").exists() or not _signalled(process.pid, 0) else "running"
    if fields[0] in "ZX" or (process.began != UNKNOWN and int(fields[19]) != process.began):
        return "dead"
    return "paused" if fields[0] in "Tt" else "running"


def send_signal(process: ProcessId, number: signal.Signals) -> bool:
    """Send the signal `number` if `process` is still the same process; returns whether it was. After SIGSTOP
    all of its threads stand still."""
    sent = state(process) != "dead" and _signalled(process.pid, number)
    if sent and number is signal.SIGSTOP:
        _until_still(process.pid)
    return sent


def _until_still(pid: int) -> None:
    """Each thread of a process stops for itself, on a busy machine some milliseconds later."""
    deadline = time.monotonic() + STILL_S
    while time.monotonic() < deadline:
        states = {fields[0] for path in Path(f"/proc/{pid}/task").glob("*/stat") if (fields := _fields(path))}
        if states <= set("tTZX"):
            return
        time.sleep(POLL_S / 10)


def end(
    processes: Sequence[ProcessId], grace_s: float = GRACE_S, how: signal.Signals = signal.SIGTERM
) -> None:
    """End all processes together, then kill those that remain. On return none of them runs, even after a
    second Ctrl-C.

    Args:
        processes: the processes.
        grace_s: how long they may take before they are killed.
        how: the first signal.
    """
    with uninterrupted():
        _end(processes, grace_s, how)


def _end(processes: Sequence[ProcessId], grace_s: float, how: signal.Signals) -> None:
    for process in processes:
        send_signal(process, how)
        send_signal(process, signal.SIGCONT)  # a paused process does not handle signals
    if not _wait(processes, grace_s):
        for process in processes:
            send_signal(process, signal.SIGKILL)
        gone = _wait(processes, GRACE_S)
        assert gone, f"killed, but still there: {[p.pid for p in processes if state(p) != 'dead']}"


def kill(process: ProcessId) -> None:
    """Kill a process, as in a crash; on return it does not run."""
    end_at_once = send_signal(process, signal.SIGKILL)
    if end_at_once:
        _wait([process], GRACE_S)


def _wait(processes: Sequence[ProcessId], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(state(process) != "dead" for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty if there is no such process, or no /proc."""
    return _fields(Path(f"/proc/{pid}/stat"))


def _fields(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _signalled(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _reap(pid: int) -> None:
    """Reap a child process that has ended."""
    with contextlib.suppress(OSError):
        os.waitpid(pid, os.WNOHANG)
