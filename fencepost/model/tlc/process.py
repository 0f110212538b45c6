"""The Java process: started, read, limited, and ended together with its caller.

Owns the process and its limits. Must not know the meaning of its lines.

When `run_process` returns, the process and its children are dead, however the reading ended (the end of the
output, a limit, an exception, Ctrl-C). The memory limit is enforced twice: the heap is capped (Java then
reports that it is out of memory), and if /proc reports the resident memory, a process above the limit is
killed.
"""

import codecs
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from fencepost.traces.errors import EnvironmentError_

OVERHEAD_MB = 256
"""Memory of a JVM in addition to its heap: code, threads, the collector's tables."""
SMALLEST_MEMORY_MB = 384
LOOK_EVERY_S = 0.2
"""Seconds between two checks of the limits while the process is silent."""
CHUNK_BYTES = 1 << 16
LONGEST_LINE = 1 << 24
"""The most characters without a line feed; a longer line is split."""


@frozen(kw_only=True)
class RunLimits:
    """seconds: wall clock time. memory_mb: resident memory of the Java process. None is no limit."""

    seconds: float | None = None
    memory_mb: int | None = None

    @property
    def java_options(self) -> tuple[str, ...]:
        """The heap's share of the memory."""
        if self.memory_mb is None:
            return ()
        return (f"-Xmx{self.memory_mb - OVERHEAD_MB}m", f"-XX:MaxDirectMemorySize={OVERHEAD_MB // 4}m")


@frozen(kw_only=True)
class Ended:
    """exit_code: None if it was stopped; stopped: why, in words; seconds: how long it ran."""

    exit_code: int | None
    stopped: str | None
    seconds: float


def run_process(
    command: Sequence[str], folder: Path, limits: RunLimits, on_line: Callable[[str], None]
) -> Ended:
    """Run a process to its end or to a limit.

    Args:
        command: the command line.
        folder: the working directory.
        limits: the limits.
        on_line: called with each line of standard output and error.

    Returns:
        how it ended.
    """
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches this process only, and the group can be killed as one
        )
    except OSError as error:
        raise EnvironmentError_(
            expected="a Java that starts", seen=str(error.strerror), where=command[0]
        ) from None
    try:
        stopped = _read(process, started, limits, on_line)
        if stopped is None:
            stopped = _wait(process, started, limits)
    finally:
        _kill(process)
    return Ended(
        exit_code=process.returncode if stopped is None else None,
        stopped=stopped,
        seconds=time.monotonic() - started,
    )


def _read(
    process: "subprocess.Popen[bytes]", started: float, limits: RunLimits, on_line: Callable[[str], None]
) -> str | None:
    """Read to the end of the output (returns None) or to a limit (returns which one)."""
    assert process.stdout is not None
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    looked = started
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            ready = selector.select(LOOK_EVERY_S)
            now = time.monotonic()
            if now - looked >= LOOK_EVERY_S or not ready:
                looked = now
                exceeded = _exceeded(process.pid, now - started, limits)
                if exceeded is not None:
                    return exceeded
            if not ready:
                continue
            chunk = os.read(process.stdout.fileno(), CHUNK_BYTES)
            rest += decoder.decode(chunk, final=not chunk)
            *lines, rest = rest.split("\n")
            for line in lines:
                on_line(line)
            if rest and (not chunk or len(rest) > LONGEST_LINE):
                on_line(rest)
                rest = ""
            if not chunk:
                return None


def _wait(process: "subprocess.Popen[bytes]", started: float, limits: RunLimits) -> str | None:
    """The output has ended; wait for the process."""
    while True:
        try:
            process.wait(LOOK_EVERY_S)
            return None
        except subprocess.TimeoutExpired:
            exceeded = _exceeded(process.pid, time.monotonic() - started, limits)
            if exceeded is not None:
                return exceeded


def _exceeded(pid: int, seconds: float, limits: RunLimits) -> str | None:
    if limits.seconds is not None and seconds > limits.seconds:
        return f"stopped at the time limit of {limits.seconds:g} s"
    if limits.memory_mb is not None and resident_mb(pid) > limits.memory_mb:
        return f"stopped at the memory limit of {limits.memory_mb} MB"
    return None


def resident_mb(pid: int) -> int:
    """Resident memory of a process in MiB; 0 if the system does not report it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process and its group. It has nothing to save: its folder is private and will be removed."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
