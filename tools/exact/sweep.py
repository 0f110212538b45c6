"""One stretch of seeds, compared in a process of its own. Must not know which stretches there are."""

import os
import signal
import time

from attrs import evolve, frozen

from tools.exact.subjects import SUBJECTS

WARM_UP = 5
"""Histories that are compared and not counted first: compiling may take longer than the limit of one history,
which then is undecided."""
_warm: set[str] = set()


@frozen(kw_only=True)
class Stretch:
    """Seeds [seed, seed + histories) of a subject, compared."""

    # Digest of the code that was compared.
    source: str
    seed: int
    histories: int
    wrong: int = 0
    illegal: int | None = None
    seconds: float = 0.0


def begin() -> None:
    """In a worker: whoever started it is interrupted, and what it prints is no answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)


def swept(name: str, task: Stretch) -> tuple[str, Stretch]:
    """A stretch of a subject, compared. seconds: of processor time."""
    subject = SUBJECTS[name]
    for _ in range(WARM_UP if name not in _warm else 0):
        subject.compare(0, 1)
    _warm.add(name)
    began = time.process_time()
    found = subject.compare(task.seed, task.histories)
    seconds = round(time.process_time() - began, 3)
    return name, evolve(task, wrong=found.wrong, illegal=found.illegal, seconds=seconds)
