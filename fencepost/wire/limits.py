"""The bounds of a listener: sizes, numbers and times, each with its reason.

Owns numbers only.
"""

from attrs import frozen

MEBIBYTE = 1024 * 1024


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
