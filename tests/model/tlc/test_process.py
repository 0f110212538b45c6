"""model/tlc/process.py: limits hold, and nothing is left behind. Any program will do."""

import os
import sys
import time
from pathlib import Path

import pytest

from fencepost.model.tlc.process import RunLimits, run_process
from fencepost.traces.errors import EnvironmentError_

TELL_PID = "import os, sys, time; print(os.getpid(), flush=True); "


def run(program: str, limits: RunLimits, on_line, folder: Path = Path()):
    return run_process([sys.executable, "-c", program], folder, limits, on_line)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def dead(pid: int) -> bool:
    """Gone, or a zombie that its new parent has not noticed yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return gone(pid)
    return stat.rsplit(")", 1)[1].split()[0] == "Z"


def test_lines_and_exit_code(tmp_path):
    """Rule: both streams, bytes that are no text, and a last line without its line feed arrive; the exit code
    is the process's."""
    lines: list[str] = []
    program = (
        r"import sys; sys.stderr.buffer.write(b'a\xff\r\n'); sys.stderr.flush(); "
        r"sys.stdout.write('end'); sys.stdout.flush(); sys.exit(12)"
    )
    ended = run(program, RunLimits(), lines.append, tmp_path)
    assert ([line.rstrip("\r") for line in lines], ended.exit_code, ended.stopped) == (
        ["a\ufffd", "end"],
        12,
        None,
    )


@pytest.mark.parametrize(
    "chatter",
    [
        "time.sleep(60)",
        "[print('x', flush=True) for _ in iter(int, 1)]",
        "os.close(1); os.close(2); time.sleep(60)",
    ],
)
def test_the_time_limit_holds(chatter):
    """Rule: a process that sleeps, one that never stops talking, and one that closed its output are all
    ended."""
    lines: list[str] = []
    ended = run(
        TELL_PID + chatter,
        RunLimits(seconds=0.5),
        lambda line: lines.append(line) if len(lines) < 9 else None,
    )
    assert (ended.exit_code, ended.stopped) == (None, "stopped at the time limit of 0.5 s")
    assert gone(int(lines[0]))


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="this system does not say how much is resident"
)
def test_the_memory_limit_holds():
    """Rule: a process that takes more is ended, whatever its own settings say."""
    lines: list[str] = []
    ended = run(
        TELL_PID + "b = bytearray(os.urandom(1 << 20) * 200); time.sleep(60)",
        RunLimits(memory_mb=100),
        lines.append,
    )
    assert (ended.exit_code, ended.stopped) == (None, "stopped at the memory limit of 100 MB")
    assert gone(int(lines[0]))


@pytest.mark.parametrize("reason", [KeyboardInterrupt, ValueError])
def test_whoever_stops_reading_leaves_no_process(reason):
    """Rule: Ctrl-C, and any mistake of the reader's, end the process and its children."""
    pids: list[int] = []

    def read(line: str) -> None:
        pids.append(int(line))
        if len(pids) == 2:
            raise reason

    child = (
        "import subprocess; subprocess.Popen([sys.executable, '-c', 'import os, time; print(os.getpid(), "
        "flush=True); time.sleep(60)']);"
        "time.sleep(60)"
    )
    with pytest.raises(reason):
        run(TELL_PID + child, RunLimits(seconds=60), read)
    assert gone(pids[0])
    deadline = time.monotonic() + 600  # nobody waits for a grandchild: the kernel ends it in its own time
    while not dead(pids[1]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert dead(pids[1])


def test_a_program_that_does_not_start(tmp_path):
    """Rule: one sentence."""
    with pytest.raises(EnvironmentError_, match="expected a Java that starts"):
        run_process([str(tmp_path / "java")], tmp_path, RunLimits(), print)
