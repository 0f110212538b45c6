"""A process of `fencepost check`: reads pieces from standard input, writes verdicts to standard output.

Owns the two ends of that pipe. Must not know which other pieces exist.

A message is a line of JSON: {"began": ...}, {"judgement": ...}, {"quarantined": ...}, {"done": true}, or
{"fatal": ...} if the question itself is wrong. The process ignores Ctrl-C: the process that started it
handles Ctrl-C and ends this one.
"""

import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from attrs import frozen

from fencepost.cli.check.work import Began, Judgement, Question, WorkMessage, judged
from fencepost.mining.inputs.traces import Piece, Quarantined
from fencepost.traces.errors import FencepostError


@frozen(kw_only=True)
class Orders:
    """The first line."""

    question: Question
    # Python's module path of the caller, so that the caller's model is found here too.
    path: tuple[str, ...]


@frozen(kw_only=True)
class Order:
    """Every other line: a piece, and how many of its traces were judged before."""

    piece: Piece
    skip: int = 0


@frozen(kw_only=True)
class WorkerMessage:
    """One line of an answer; one of the fields is set."""

    began: Began | None = None
    judgement: Judgement | None = None
    quarantined: Quarantined | None = None
    done: bool = False
    fatal: dict[str, str] | None = None

    @property
    def messages(self) -> WorkMessage | None:
        """The message about the piece, None for the others."""
        return self.began or self.judgement or self.quarantined


def _encoded(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value).__name__)


def _decoded(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind.__name__)


def encode(value: Any) -> bytes:
    """A value of this module as a line of JSON."""
    return msgspec.json.encode(value, enc_hook=_encoded) + b"\n"


def decode(line: bytes, kind: Any) -> Any:
    """The value in a line. kind: its type."""
    return msgspec.json.decode(line, type=kind, dec_hook=_decoded)


def message(messages: WorkMessage) -> WorkerMessage:
    """A message about the piece, wrapped for the pipe."""
    if isinstance(messages, Began):
        return WorkerMessage(began=messages)
    return (
        WorkerMessage(judgement=messages)
        if isinstance(messages, Judgement)
        else WorkerMessage(quarantined=messages)
    )


def serve(orders_in: BinaryIO, results: BinaryIO) -> None:
    """Judge the pieces that `orders_in` names and write the answers to `results`, until `orders_in` closes or
    the question is invalid."""

    def say(said: WorkerMessage) -> None:
        results.write(encode(said))
        results.flush()

    orders: Orders = decode(orders_in.readline(), Orders)
    sys.path[:] = orders.path
    if orders.question.model:
        import fencepost.checkers.linearizability.linearizability_judge  # noqa: F401 (before any clock runs)

        gc.freeze()  # these objects stay; scanning them for garbage costs more than a short history
    try:
        for line in orders_in:
            order: Order = decode(line, Order)
            for messages in judged(order.piece, orders.question, order.skip):
                say(message(messages))
            say(WorkerMessage(done=True))
    except FencepostError as error:
        fatal = {name: getattr(error, name) for name in ("expected", "seen", "where", "hint")}
        say(WorkerMessage(fatal=fatal))


def load() -> None:
    """Load what a verdict needs, before any process is forked (fencepost/processes/forking.py)."""
    import fencepost.checkers.linearizability.linearizability_judge  # noqa: F401
    from fencepost.checkers import judges

    judges.load()


def main() -> None:
    """Entry point of the process. Prints of libraries and models go to standard error, because standard
    output is for the results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, results)
    except BrokenPipeError:  # the caller is gone, and nothing reads the rest
        os._exit(0)
