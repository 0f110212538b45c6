"""A worker process: a copy of the tree, and one forked pytest per fault.

Owns: the copy, forking, time and memory of a fault's tests. Must not know how faults are found or what
results mean.

The process imports the third-party packages once and never `fencepost`; each fault's tests run in a fork,
which imports it from the copy with one file changed. Kernels run uncompiled (NUMBA_DISABLE_JIT=1, set by
whoever starts this): compiling costs more than these tests do. Tasks come as JSON lines on standard input,
answers go to standard output.
"""

import argparse
import gc
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from attrs import field, frozen

from tools.mutation.plugin import Choice, Reach, quick_hypothesis

MEMORY_BYTES = 6 << 30
"""Of address space; a fault that allocates without end is noticed by it."""
WALL_FACTOR = 8
"""Wall clock allowed for each second of processor time: other work runs on the machine too."""
WARM = ("hypothesis.stateful", "numba", "numpy", "pyarrow.parquet", "pytest", "rich.table", "rich_click")
"""Third-party packages that forks find imported already."""
DEATHS = {int(signal.SIGXCPU): "time", int(signal.SIGKILL): "time", int(signal.SIGPROF): "time"}


@frozen(kw_only=True)
class Task:
    """file, after: what to write into the copy ("" for nothing); tests: in order, and the seconds of
    processor time after which each counts as one that does not end; cpu_s: for all of them together. watch:
    files whose lines are."""

    file: str = ""
    after: str = ""
    paths: tuple[str, ...] = ()
    tests: tuple[tuple[str, float], ...] = ()
    cpu_s: int = 600
    watch: tuple[str, ...] = ()


@frozen(kw_only=True)
class Answer:
    """code: pytest's exit code, or -1; died: "time" or a signal; test: the first that failed; seconds: of
    wall clock; said: the end of what it printed."""

    code: int
    died: str = ""
    test: str = ""
    seconds: float = 0.0
    said: str = ""
    reach: tuple[tuple[str, int, str], ...] = ()
    times: dict[str, float] = field(factory=dict)


def _in_child(work: Callable[[], Any], cpu_s: int, told: Path, said: Path) -> tuple[int, float]:
    """Run `work` in a fork, its answer written to `told` as JSON; answers the status and the seconds."""
    started = time.monotonic()
    told.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()
            words = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(words, 1)
            os.dup2(words, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            told.write_bytes(msgspec.json.encode(work()))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    signal.signal(signal.SIGTERM, lambda *_: _end_with(pid))
    deadline = started + cpu_s * WALL_FACTOR
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status, time.monotonic() - started
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            return status, time.monotonic() - started
        time.sleep(0.005)


def _end_with(pid: int) -> None:
    """Whoever ends this process ends the fork, too."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os._exit(1)


def _arguments(paths: tuple[str, ...]) -> list[str]:
    quiet = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:benchmark",
        "-p",
        "no:randomly",
        "--tb=no",
    ]
    return [*paths, *quiet, "-o", "timeout=0"]


def _ask(top: Path, task: Task) -> Callable[[], dict[str, Any]]:
    """What the fork does."""

    def work() -> dict[str, Any]:
        import pytest

        quick_hypothesis()
        if task.watch:
            reach = Reach(top, frozenset(task.watch))
            reach.begin()
            code = pytest.main(_arguments(task.paths), plugins=[reach])
            sys.settrace(None)
            rows = [
                (file, line, test) for (file, line), tests in reach.lines.items() for test in sorted(tests)
            ]
            test = next(iter(reach.failed), "")
            return {"code": int(code), "test": test, "reach": rows, "times": reach.seconds}
        choice = Choice({test: (number, limit) for number, (test, limit) in enumerate(task.tests)})
        paths = tuple(dict.fromkeys(test.split("::")[0] for test, _ in task.tests))
        code = pytest.main(["-x", *_arguments(paths)], plugins=[choice])
        return {"code": int(code), "test": choice.failed}

    return work


def run(top: Path, task: Task) -> Answer:
    """One task in the copy at `top`, which is as it was afterwards."""
    told, said = top / ".told", top / ".said"
    path = top / task.file
    before = path.read_bytes() if task.file else b""
    stamp = path.stat().st_mtime if task.file else 0.0
    try:
        if task.file:
            path.write_text(task.after, encoding="utf-8")
            os.utime(path, (stamp + 100, stamp + 100))  # whatever was compiled of the old text does not count
        status, seconds = _in_child(_ask(top, task), task.cpu_s, told, said)
    finally:
        if task.file:
            path.write_bytes(before)
            os.utime(path, (stamp, stamp))
    words = said.read_text(errors="replace")[-600:] if said.exists() else ""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Answer(code=-1, died=DEATHS.get(number, f"signal {number}"), seconds=seconds, said=words)
    if not told.exists():
        return Answer(code=-1, died="no answer", seconds=seconds, said=words)
    answer = msgspec.json.decode(told.read_bytes())
    return msgspec.convert({**answer, "seconds": seconds, "said": words}, Answer)


def main() -> None:
    """Entry of the process; its argument is the copy of the tree, which comes first on the path."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", type=Path, help="the copy")
    top = parser.parse_args().tree.resolve()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    elsewhere = str(Path(__file__).parents[2])
    os.chdir(top)
    sys.path[:] = [str(top), *(place for place in sys.path if place not in ("", elsewhere))]
    for name in WARM:
        import_module(name)
    assert "fencepost" not in sys.modules, "what a fault changes would not be imported again"
    gc.freeze()
    for line in sys.stdin.buffer:
        answer = run(top, msgspec.json.decode(line, type=Task))
        results.write(msgspec.json.encode(answer) + b"\n")
        results.flush()


if __name__ == "__main__":
    main()
