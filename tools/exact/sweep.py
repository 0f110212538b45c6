"""A process that sweeps stretches of seeds: tasks as JSON lines on standard input, counts on standard output.

Must not know which stretches there are. It ignores Ctrl-C: whoever started it closes the pipe.
"""

import argparse
import os
import signal
import sys
import time

import msgspec
from attrs import frozen

from tools.exact.ledger import Stretch
from tools.exact.subjects import SUBJECTS

WARM_UP = 5
"""Histories that are compared and not counted first: compiling may take longer than the limit of one history,
which then is undecided."""
_warm: set[str] = set()


@frozen(kw_only=True)
class Task:
    """A stretch of a subject."""

    subject: str
    source: str
    seed: int
    histories: int


def swept(task: Task) -> Stretch:
    """The stretch, compared. seconds: of processor time."""
    subject = SUBJECTS[task.subject]
    module = subject.load()
    for _ in range(WARM_UP if task.subject not in _warm else 0):
        subject.compare(module, 0, 1)
    _warm.add(task.subject)
    began = time.process_time()
    counted = subject.compare(module, task.seed, task.histories)
    return Stretch(
        source=task.source,
        seed=task.seed,
        histories=counted.histories,
        wrong=counted.wrong,
        illegal=counted.illegal,
        seconds=round(time.process_time() - began, 3),
    )


def main() -> None:
    """Entry of the process, which takes no argument."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        results.write(msgspec.json.encode(swept(msgspec.json.decode(line, type=Task))) + b"\n")
        results.flush()


if __name__ == "__main__":
    main()
