"""Worker processes: started, fed one task at a time, heard, and replaced when they die.

Owns: processes and pipes. Must not know: seeds, traces, what a task means.

Every process has a PYTHONHASHSEED of its own, so that a run repeated in another process also proves that no
digest depends on it. Processes have sessions of their own: a Ctrl-C at the terminal reaches the driver
only.
"""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO

import msgspec
from attrs import define, field, frozen

from fencepost.campaign.workers.results import RunResult, Task
from fencepost.processes import forking
from fencepost.traces.errors import EnvironmentError_, FencepostError

COMMAND = (*forking.BEGIN, "fencepost.campaign.workers.worker")
TASK_LIMIT_S = 1200
"""Real time after which a run that has not ended is given up and its process killed. A run takes seconds; on
two cores that 40 others wanted, too, minutes."""
CLOSE_LIMIT_S = 120
"""Real time that a worker gets to finish the run in hand and sync its journal."""
_LINE_MAX = 1 << 20
"""Bytes of one read from a worker's pipe: more than a pipe holds."""


@frozen(kw_only=True)
class WorkerAnswer:
    """What a process said."""

    process: int
    task: Task
    # None if it died instead.
    result: RunResult | None
    # How it died.
    why: str = ""


@define(eq=False)
class Process:
    """One worker process."""

    # Its number, unique in its pool; also its PYTHONHASHSEED.
    number: int
    # Its place in the pool.
    slot: int
    popen: forking.Process
    # The task in hand, None while idle.
    task: Task | None = None
    # Time at which the task was given out.
    since: float = 0.0
    # Bytes of an unfinished line.
    buffer: bytes = b""

    @property
    def stdin(self) -> IO[bytes]:
        """Where tasks go."""
        assert self.popen.stdin is not None
        return self.popen.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """Where results come from."""
        assert self.popen.stdout is not None
        return self.popen.stdout

    def ended(self) -> str:
        """How it ended, in words."""
        status = self.popen.wait()
        return f"killed by signal {-status}" if status < 0 else f"ended with status {status}"


@define
class Pool:
    """Processes by slot."""

    jobs: int
    # Builds the first line for a slot.
    orders: Callable[[int], bytes]
    command: tuple[str, ...] = COMMAND
    task_limit_s: float = TASK_LIMIT_S
    processes: dict[int, Process] = field(factory=dict, init=False)
    # How many processes there ever were.
    started: int = field(default=0, init=False)
    _selector: selectors.BaseSelector = field(factory=selectors.DefaultSelector, init=False)

    def _start(self, slot: int) -> Process:
        self.started += 1
        environment = {**os.environ, "PYTHONHASHSEED": str(self.started)}
        popen = forking.start(self.command, environment, bufsize=0)
        process = Process(self.started, slot, popen)
        self.processes[slot] = process
        self._selector.register(process.stdout, selectors.EVENT_READ, process)
        self._write(process, self.orders(slot))
        return process

    def idle(self) -> Iterator[int]:
        """Slots that can take a task."""
        for slot in range(self.jobs):
            process = self.processes.get(slot)
            if process is None or process.task is None:
                yield slot

    def number(self, slot: int) -> int:
        """The number of the process in a slot; 0 if none was started there yet."""
        process = self.processes.get(slot)
        return process.number if process is not None else 0

    def replace(self, slot: int) -> None:
        """End the idle process of a slot, so that the next task meets a fresh one."""
        process = self.processes[slot]
        assert process.task is None, f"process {process.number} is busy with {process.task}"
        self._forget(process)
        process.stdin.close()
        process.popen.wait()
        process.stdout.close()

    def give(self, slot: int, task: Task) -> int:
        """Hand a task to an idle slot; answers the number of the process that takes it."""
        process = self.processes.get(slot) or self._start(slot)
        process.task, process.since = task, time.monotonic()
        self._write(process, msgspec.json.encode(task) + b"\n")
        return process.number

    @staticmethod
    def _write(process: Process, line: bytes) -> None:
        with suppress(BrokenPipeError):  # it is dead; its closed output tells so
            process.stdin.write(line)

    def numbers(self) -> set[int]:
        """The numbers of the processes that live."""
        return {process.number for process in self.processes.values()}

    @property
    def busy(self) -> bool:
        """Whether any task is in hand."""
        return any(process.task is not None for process in self.processes.values())

    def answers(self, wait_s: float = 1.0) -> list[WorkerAnswer]:
        """What the processes said within `wait_s`. Raises FencepostError if one met an error of the
        environment."""
        answers: list[WorkerAnswer] = []
        for key, _ in self._selector.select(wait_s):
            answers.extend(self._hear(key.data))
        now = time.monotonic()
        for process in list(self.processes.values()):
            if process.task is not None and now - process.since > self.task_limit_s:
                process.popen.kill()
                answers.append(self._died(process, f"gave no answer in {self.task_limit_s:g} s"))
        return answers

    def _hear(self, process: Process) -> Iterator[WorkerAnswer]:
        data = os.read(process.stdout.fileno(), _LINE_MAX)
        if not data:
            yield self._died(process, process.ended())
            return
        *lines, process.buffer = (process.buffer + data).split(b"\n")
        for line in lines:
            _raise_if_fatal(line)
            task, process.task = process.task, None
            assert task is not None, f"process {process.number} answered without a task: {line[:200]!r}"
            yield WorkerAnswer(process=process.number, task=task, result=RunResult.from_json(line))

    def _forget(self, process: Process) -> None:
        self._selector.unregister(process.stdout)
        del self.processes[process.slot]

    def _died(self, process: Process, why: str) -> WorkerAnswer:
        self._forget(process)
        process.popen.wait()
        process.stdin.close()
        process.stdout.close()
        if process.task is None:
            raise EnvironmentError_(
                expected="a worker that waits for its next task",
                seen=f"that it {why}",
                where="a worker process",
            )
        return WorkerAnswer(process=process.number, task=process.task, result=None, why=f"its process {why}")

    def close(self) -> None:
        """Close every pipe; each worker ends after the run in hand and syncs its journal, or is killed at the
        limit."""
        for process in self.processes.values():
            with suppress(BrokenPipeError):
                process.stdin.close()
        deadline = time.monotonic() + CLOSE_LIMIT_S
        for process in list(self.processes.values()):
            try:
                process.popen.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.popen.kill()
                process.popen.wait()
            self._forget(process)
            process.stdout.close()
        self._selector.close()


def _raise_if_fatal(line: bytes) -> None:
    if line.startswith(b'{"fatal":'):
        fields = msgspec.json.decode(line)["fatal"]
        raise FencepostError(**fields)
