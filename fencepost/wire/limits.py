"""The bounds of a listener: sizes, numbers and times, each with its reason.

Owns the numbers, and how often the log speaks of one source: a peer that sends nonsense on a thousand
connections is one line a minute. Must not know clocks or sockets.
"""

from attrs import define, field, frozen

MEBIBYTE = 1024 * 1024
EVERY_S = 60.0
"""Seconds between two lines about one source."""
MOST_SOURCES = 1_000
"""Sources that are remembered; the one that was spoken of longest ago is forgotten first."""


@frozen(kw_only=True)
class Limits:
    """What one listener accepts and keeps. Kafka's own default if it has one."""

    # Size of one request: socket.request.max.bytes.
    request_bytes: int = 100 * MEBIBYTE
    # Incomplete requests over all connections of a listener (queued.max.request.bytes, which is off in
    # Kafka). The connection that would exceed it is closed, because waiting for room could take for ever.
    buffered_bytes: int = 512 * MEBIBYTE
    # Answers that clients do not read, over all connections of a listener. Kafka sends from its files and
    # holds none; here four of the largest fit. Beyond it, the client that has not read for longest is closed.
    unread_bytes: int = 256 * MEBIBYTE
    # Elements of all arrays in one request. An element is an object of some 100 bytes; Kafka advises at most
    # 200,000 partitions in a whole cluster.
    elements: int = 200_000
    # Open connections: max.connections, which is off in Kafka. Each costs some 10 kB here.
    connections: int = 10_000
    # Longest time without a request, or with an unread answer: connections.max.idle.ms.
    idle_ms: int = 600_000
    # Longest wait for the core's answer, in addition to the wait that the request allows: Kafka's
    # request.timeout.ms. After it the connection is closed.
    request_timeout_ms: int = 30_000
    # Records in one answer, whatever the client asks for: the broker's fetch.max.bytes.
    fetch_bytes: int = 55 * MEBIBYTE
    # Longest wait of a fetch, whatever the client asks for: half of idle_ms, so that a waiting connection is
    # not idle.
    fetch_wait_ms: int = 300_000
    # The longest that an acks=all produce may wait, for the same reason.
    produce_wait_ms: int = 300_000


@define(eq=False)
class Complaints:
    """What was said of each source."""

    # When the last line about it was said, and how many have not been said since; the longest ago first.
    _said: dict[str, tuple[float, int]] = field(factory=dict)

    def line(self, source: str, now_s: float) -> str | None:
        """What a line about this source says at its end: how many others were withheld; None: it is withheld,
        too. source: a host; now_s: of a monotonic clock."""
        last, withheld = self._said.get(source, (-EVERY_S, 0))
        if source in self._said and now_s - last < EVERY_S:
            self._said[source] = last, withheld + 1
            return None
        self._said.pop(source, None)
        if len(self._said) >= MOST_SOURCES:
            del self._said[next(iter(self._said))]
        self._said[source] = now_s, 0
        return f"; {withheld:,} more from {source} since its last line" if withheld else ""
