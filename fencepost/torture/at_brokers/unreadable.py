"""Connections that the brokers closed because of what a client sent.

Owns the reading of their log. Must not know why a client did so. A broker answers a request in error if it
can read it; what it cannot read (a request that ends too early, a version that was never advertised) ends the
connection, and a client that retries may hide that from its application.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field

LOGGER = "fencepost.wire"
MOST = 100
"""Lines that are kept of a run."""


@define(eq=False)
class _Kept(logging.Handler):
    lines: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.lines) < MOST and "connection closed" in record.getMessage():
            self.lines.append(record.getMessage().partition("connection closed: ")[2])


@contextmanager
def kept() -> Iterator[list[str]]:
    """What clients of this process's brokers sent and no broker can read, while the block lasts."""
    handler, logger = _Kept(), logging.getLogger(LOGGER)
    logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
