"""A line every 30 seconds if there is no visible progress bar, so that long work does not look like a hang.

Owns the thread that reports. Must not know the work.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_S = 30.0
"""Seconds between two lines. Reason: CI systems end a job that is silent for ten minutes, and a person begins
to wonder after one."""


@contextmanager
def heartbeat(report: Callable[[float], None], every_s: float | None = None) -> Iterator[None]:
    """Inside, `report(seconds since the start)` is called every `every_s` seconds, from a separate thread."""
    every_s = EVERY_S if every_s is None else every_s
    ended, started = threading.Event(), time.monotonic()

    def beat() -> None:
        while not ended.wait(every_s):
            report(time.monotonic() - started)

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
