"""Pieces of the input judged by several processes, reported in the order of the input.

Owns processes, pipes, order, and a time limit that holds even if a judge does not return. Must not know
what is asked.

A piece belongs to one process. Messages about a later piece wait until every earlier piece is done. A slow
piece delays the reports, not the work.
"""

import os
import selectors
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Self

from attrs import define, field

from fencepost.checkers.verdict import Decision, Verdict
from fencepost.cli.check.work import Began, Judgement, Question, WorkMessage, judged
from fencepost.cli.check.worker import Order, Orders, WorkerMessage, decode, encode
from fencepost.mining.inputs.traces import Piece, Quarantined
from fencepost.processes import forking
from fencepost.traces.errors import FencepostError

COMMAND = (*forking.BEGIN, "fencepost.cli.check.worker")
GRACE_S = 10.0
"""Seconds beyond the time limit before a process that does not return is killed. The judge itself is only
a fraction of a second late."""
READ_BYTES = 1 << 18
"""Bytes of one read from a worker's pipe: more than a pipe holds."""


@define(eq=False)
class Worker:
    """One process."""

    process: forking.Process
    # Index of the current piece; -1: none.
    number: int = -1
    # The trace that it judges; None while it reads.
    last: Began | None = None
    # When it began that trace, in seconds on the monotonic clock; 0 while it reads.
    since: float = 0.0
    # Bytes of an incomplete line of its output.
    buffer: bytes = b""

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe for orders."""
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe for answers."""
        assert self.process.stdout is not None
        return self.process.stdout

    def give(self, order: Order, number: int) -> None:
        """Send a piece. number: its index in the input."""
        self.number, self.last, self.since = number, None, 0.0
        with suppress(BrokenPipeError):  # it is dead; the end of its output will show that
            self.stdin.write(encode(order))
            self.stdin.flush()

    def close(self) -> None:
        """End the process."""
        with suppress(BrokenPipeError):
            self.stdin.close()
        self.process.kill()
        self.process.wait()
        self.stdout.close()


@define(eq=False)
class Pool:
    """The processes and their messages."""

    # The input, in the order of the reports.
    pieces: Sequence[Piece]
    # The same for every piece.
    question: Question
    # Most processes.
    jobs: int
    # The command line of a process.
    command: tuple[str, ...] = COMMAND
    # (index, traces judged already) of the pieces that no process has.
    waiting: deque[tuple[int, int]] = field(init=False)
    # Messages that are not reported yet, by index of their piece.
    said: dict[int, deque[WorkMessage]] = field(factory=dict, init=False)
    # Indexes of pieces without further messages.
    finished: set[int] = field(factory=set, init=False)
    # The living processes; at most `jobs`.
    workers: list[Worker] = field(factory=list, init=False)
    _selector: selectors.BaseSelector = field(factory=selectors.DefaultSelector, init=False)

    def __attrs_post_init__(self) -> None:
        self.waiting = deque((number, 0) for number in range(len(self.pieces)))

    def __enter__(self) -> Self:
        for _ in range(min(self.jobs, len(self.pieces))):
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.close()
        self._selector.close()

    def _start(self) -> None:
        process = forking.start(self.command, os.environ)
        worker = Worker(process)
        self.workers.append(worker)
        self._selector.register(worker.stdout, selectors.EVENT_READ, worker)
        with suppress(BrokenPipeError):
            worker.stdin.write(encode(Orders(question=self.question, path=tuple(sys.path))))
        self._next(worker)

    def _next(self, worker: Worker) -> None:
        if self.waiting:
            number, skip = self.waiting.popleft()
            worker.give(Order(piece=self.pieces[number], skip=skip), number)
        else:
            worker.number = -1

    def messages(self) -> Iterator[tuple[int, WorkMessage]]:
        """(index of the piece, message), in the order of the pieces. Raises FencepostError if the question
        is wrong."""
        for number in range(len(self.pieces)):
            mine = self.said.setdefault(number, deque())
            while mine or number not in self.finished:
                while mine:
                    yield number, mine.popleft()
                if number not in self.finished:
                    self._hear()
            del self.said[number]

    def _hear(self) -> None:
        for key, _ in self._selector.select(timeout=0.2):
            worker: Worker = key.data
            data = os.read(worker.stdout.fileno(), READ_BYTES)
            if not data:
                status = worker.process.wait()
                died = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
                self._replace(worker, f"the process that judged it {died}")
                continue
            *lines, worker.buffer = (worker.buffer + data).split(b"\n")
            for line in lines:
                self._heard(worker, decode(line, WorkerMessage))
        limit = self.question.timeout_s
        now = time.monotonic()
        for worker in list(self.workers):
            if limit and worker.since and now - worker.since > limit + GRACE_S:
                reason = f"the time limit of {limit:g} s has passed, and the step could not be interrupted"
                self._replace(worker, reason)

    def _heard(self, worker: Worker, message: WorkerMessage) -> None:
        if message.fatal is not None:
            raise FencepostError(**message.fatal)
        if message.done:
            self.finished.add(worker.number)
            self._next(worker)
        elif message.began is not None:
            worker.last, worker.since = message.began, time.monotonic()
        else:
            messages = message.messages
            assert messages is not None, "an empty message"
            self._say(worker.number, messages)
            worker.last, worker.since = None, 0.0

    def _say(self, number: int, messages: WorkMessage) -> None:
        self.said.setdefault(number, deque()).append(messages)

    def _replace(self, worker: Worker, reason: str) -> None:
        """Replace a process that is gone: its trace is undecided, and another process gets the rest of its
        piece. If it was still reading, the piece is reported as unreadable."""
        self._selector.unregister(worker.stdout)
        self.workers.remove(worker)
        worker.close()
        if worker.number < 0:
            return
        if worker.last is None:
            source = self.pieces[worker.number].source
            self._say(
                worker.number, Quarantined(source=source, reason=f"{source}: while it was read, {reason}")
            )
            self.finished.add(worker.number)
            self._start()
            return
        verdict = Verdict(decision=Decision.UNKNOWN, check="all", reason=reason)
        last = worker.last
        seconds = time.monotonic() - worker.since
        self._say(
            worker.number,
            Judgement(
                index=last.index,
                source=last.source,
                trace_id=last.trace_id,
                stored=last.stored,
                verdict=verdict,
                seconds=seconds,
            ),
        )
        self.waiting.appendleft((worker.number, last.index + 1))
        self._start()


def judged_by_all(
    pieces: Sequence[Piece], question: Question, jobs: int
) -> Iterator[tuple[int, WorkMessage]]:
    """(index of the piece, message) for each piece, in order. jobs: processes at most; with one, or one
    piece, this process judges. Raises FencepostError if the question is wrong."""
    if jobs == 1 or len(pieces) < 2:
        for number, piece in enumerate(pieces):
            for messages in judged(piece, question):
                yield number, messages
        return
    with Pool(pieces, question, jobs) as pool:
        yield from pool.messages()
