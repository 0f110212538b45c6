"""The bounds of a listener: sizes, numbers and times, each with its reason.

Owns numbers only.
"""

from attrs import frozen

MEBIBYTE = 1024 * 1024


@frozen(kw_only=True)
class Limits:
    """What one listener takes and keeps. Kafka's own default where it has one."""

    request_bytes: int = 100 * MEBIBYTE
    """Of one request: socket.request.max.bytes."""
    buffered_bytes: int = 512 * MEBIBYTE
    """Of unfinished requests over all connections of a listener (queued.max.request.bytes, which is off in
    Kafka). The connection that would exceed it is closed: waiting for room could wait for ever."""
    unread_bytes: int = 256 * MEBIBYTE
    """Of answers that clients do not read, over all connections of a listener. Kafka sends from its files and
    holds none; here four of the largest fit. Beyond it, whoever has not read for longest is closed."""
    elements: int = 200_000
    """Of all arrays in one request. An element is an object of some 100 bytes; Kafka advises at most 200,000
    partitions in a whole cluster."""
    connections: int = 10_000
    """Open at once: max.connections, which is off in Kafka. Each costs some 10 kB here."""
    idle_ms: int = 600_000
    """Without a request, or with an answer that nobody reads: connections.max.idle.ms."""
    request_timeout_ms: int = 30_000
    """For an answer of the core, beyond what the request itself may wait: Kafka's request.timeout.ms. After
    it the connection is closed."""
    fetch_bytes: int = 55 * MEBIBYTE
    """Of records in one answer, whatever the client asks for: the broker's fetch.max.bytes."""
    fetch_wait_ms: int = 300_000
    """The longest that a fetch may wait, whatever the client asks for: half of idle_ms, so that waiting is
    not idleness."""
    produce_wait_ms: int = 300_000
    """The longest that an acks=all produce may wait, for the same reason."""
