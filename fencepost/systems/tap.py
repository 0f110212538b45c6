"""Who looks at the requests and answers of connections, between the sockets and the simulated network.

Owns the form. Must not know who looks.
"""

from typing import Any


class Tap:
    """Gets the requests and answers of connections. Every method may be overridden; by default they do
    nothing."""

    def asked(self, broker: int, source: int, request: Any) -> None:
        """A connection asks a broker."""

    def answered(self, source: int, answer: Any, *, delivered: bool) -> None:
        """An answer reaches the socket of a connection, or (not delivered) finds that the connection has
        gone."""

    def lost(self, broker: int) -> None:
        """The broker's process is gone, and every request that it had."""
