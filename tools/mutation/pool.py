"""Worker processes with a copy of the tree each, fed one task at a time.

Owns: the copies, the processes, their end. Must not know faults or results.
"""

import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from attrs import define, field

from fencepost.traces.errors import EnvironmentError_
from tools.mutation.bench import Answer, Task
from tools.mutation.checkers import TOP

COPIED = ("fencepost", "tests", "docs", "bench", "pyproject.toml", "README.md", "Makefile")


@define(eq=False)
class Bench:
    """One worker. given: what it is busy with, None while idle."""

    top: Path
    process: "subprocess.Popen[bytes]"
    given: Any = None


@define(eq=False)
class Pool:
    """`jobs` workers; their copies lie in one temporary folder, removed at the end."""

    jobs: int
    folder: Path = field(factory=lambda: Path(tempfile.mkdtemp(prefix="mutation-")))
    benches: list[Bench] = field(factory=list)
    selector: selectors.BaseSelector = field(factory=selectors.DefaultSelector)

    def __enter__(self) -> Self:
        for number in range(self.jobs):
            top = self.folder / str(number)
            for name in COPIED:
                source = TOP / name
                if source.is_dir():
                    ignored = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(source, top / name, symlinks=True, ignore=ignored)
                elif source.exists():
                    shutil.copy2(source, top / name)
            settings = {"NUMBA_DISABLE_JIT": "1", "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
            environment = os.environ | settings
            process = subprocess.Popen(
                [sys.executable, "-m", "tools.mutation.bench", str(top)],
                cwd=TOP,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
            bench = Bench(top, process)
            self.benches.append(bench)
            self.selector.register(process.stdout, selectors.EVENT_READ, bench)  # type: ignore[arg-type]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for bench in self.benches:
            bench.process.stdin.close()  # type: ignore[union-attr]
            if kind is not None:
                bench.process.terminate()
        for bench in self.benches:
            bench.process.wait()
            bench.process.stdout.close()  # type: ignore[union-attr]
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, bench: Bench, task: Task, given: Any) -> None:
        """Hand a task to an idle worker."""
        assert bench.given is None, "a worker does one thing at a time"
        bench.given = given
        bench.process.stdin.write(msgspec.json.encode(task) + b"\n")  # type: ignore[union-attr]
        bench.process.stdin.flush()  # type: ignore[union-attr]

    def idle(self) -> list[Bench]:
        """Workers that wait."""
        return [bench for bench in self.benches if bench.given is None]

    def answers(self) -> Iterator[tuple[Any, Answer]]:
        """What was given and what came of it, at least one. Raises EnvironmentError_ if a worker died."""
        for key, _ in self.selector.select():
            bench = key.data
            line = bench.process.stdout.readline()
            if not line:
                raise EnvironmentError_(
                    expected="an answer of a worker",
                    seen="that it ended",
                    where="mutation",
                    hint="its words stand above",
                )
            given, bench.given = bench.given, None
            yield given, msgspec.json.decode(line, type=Answer)
