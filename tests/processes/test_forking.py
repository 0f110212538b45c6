"""Processes that are forked from a loaded one are what new ones are."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from fencepost.processes import forking

MODULE = """
import json, os, signal, sys
LOADED, LATE = os.getpid(), []
def load():
    LATE.append(os.getpid())
def main():
    seen = {
        "forked": os.getpid() != LOADED,
        "late": LATE == [LOADED],
        "environment": dict(os.environ),
        "cwd": os.getcwd(),
        "path": sys.path[0],
        "session": os.getsid(0) == os.getpid(),
        "hash": hash("fencepost"),
        "signals": [signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL, signal.set_wakeup_fd(-1)],
        "files": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],
        "input": sys.stdin.readline(),
    }
    print(json.dumps(seen), flush=True)
    print("a warning", file=sys.stderr)
    for line in sys.stdin:
        word = line.strip()
        if word == "raise":
            raise ValueError("a broker tripped")
        if word == "no module":
            sys.exit("in words")
        sys.exit(int(word))
"""


@pytest.fixture(params=[True, False], ids=["forked", "new"])
def forks(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Whether processes are forked; each test is run both ways. Its directory has the module a_process."""
    (tmp_path / "a_process.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    if request.param:
        with forking.kept():
            yield True
    else:
        monkeypatch.setattr(forking, "_kept", [])
        yield False


def begin(module: str = "a_process", **variables: str) -> forking.Process:
    return forking.start((*forking.BEGIN, module), {**os.environ, **variables})


def say(process: forking.Process, text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.flush()


def seen(process: forking.Process) -> dict:
    say(process, "hello\n")
    assert process.stdout is not None
    return msgspec.json.decode(process.stdout.readline())


def end(process: forking.Process, text: str = "") -> int:
    assert process.stdin is not None and process.stdout is not None
    say(process, text)
    process.stdin.close()
    try:
        return process.wait(60)
    finally:
        process.stdout.close()


def test_a_process_has_its_own_environment_directory_session_and_streams(
    forks: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rule: a forked process is what a new one is, in all that ours look at."""
    other = tmp_path / "elsewhere"
    for folder, value in ((tmp_path, "1"), (other, "2")):
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
        if folder == other and not forks:
            (other / "a_process.py").write_text(MODULE)
        process = begin(WORD=value)
        told = seen(process)
        assert told.pop("hash") is not None
        environment = told.pop("environment")
        environment.pop("LC_CTYPE", None)  # an interpreter that starts in the locale C sets it
        ours = {name: text for name, text in os.environ.items() if name != "LC_CTYPE"}
        assert environment == {**ours, "WORD": value}
        assert told == {
            "forked": forks,
            "late": forks,
            "cwd": str(folder),
            "path": str(folder),
            "session": True,
            "signals": [True, -1],
            "files": [0, 1, 2],
            "input": "hello\n",
        }
        assert process.poll() is None
        assert end(process) == 0
        assert "a warning" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [("7\n", 7, ""), ("raise\n", 1, "a broker tripped"), ("no module\n", 1, "in words")],
)
def test_exit_codes_are_those_of_the_process(
    forks: bool, text: str, code: int, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rule: a return code is the process's own, also of one that raises."""
    process = begin()
    seen(process)
    assert end(process, text) == code
    assert process.poll() == process.wait() == code
    assert says in capfd.readouterr().err


def test_a_killed_process_ends_by_its_signal_and_others_go_on(forks: bool) -> None:
    """Rule: a kill meets one process; its code is the signal; to kill it again is harmless."""
    first, second = begin(), begin()
    seen(first), seen(second)
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(0)
    first.kill()
    assert first.wait(60) == -signal.SIGKILL
    first.kill()
    assert second.poll() is None
    assert end(second) == 0
    assert end_of(first) == -signal.SIGKILL


def test_a_process_that_has_just_ended_may_be_killed(forks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server may know of its end a moment before who kills it does."""
    process = begin()
    seen(process)
    assert end(process) == 0
    monkeypatch.setattr(forking.Forked, "poll", lambda self: None)
    process.kill()
    assert process.wait() == 0


def end_of(process: forking.Process) -> int:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    return process.wait()


def test_each_hash_seed_has_its_own(forks: bool) -> None:
    """Rule: a process has the PYTHONHASHSEED that it was started with, so that a campaign's repeats prove
    what they claim."""
    hashes = []
    for seed in ("1", "2", "1"):
        process = begin(PYTHONHASHSEED=seed)
        hashes.append(seen(process)["hash"])
        assert end(process) == 0
    assert hashes[0] == hashes[2] != hashes[1]


def test_a_module_that_cannot_be_loaded_ends_the_process(
    forks: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rule: what cannot be loaded is an end with a code, not a wait without one."""
    process = begin("no_such_process")
    assert process.wait(60) == 1
    assert process.poll() == 1
    process.kill()
    assert "no_such_process" in capfd.readouterr().err
    assert end_of(process) == 1


def test_servers_end_and_leave_their_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: no server outlives `kept`; a process that still runs does."""
    (tmp_path / "a_process.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    with forking.kept():
        process = begin()
        seen(process)
    say(process, "3\n")
    assert process.stdout is not None
    assert process.stdout.read() == b""
    assert end_of(process) == 1, "its server can no longer tell its code"


def test_a_command_that_is_not_ours_is_not_forked() -> None:
    """Rule: only modules that begin as ours do are forked."""
    with forking.kept():
        process = forking.start((sys.executable, "-c", "print(input())"), os.environ)
        assert isinstance(process, subprocess.Popen)
        say(process, "hello\n")
        assert process.stdout is not None and process.stdout.read() == b"hello\n"
        assert end_of(process) == 0
