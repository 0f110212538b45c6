"""Kafka's consumer protocol: subscriptions of group members and assignments by their leader, as bytes.

Owns the formats (ConsumerProtocolSubscription version 1, ConsumerProtocolAssignment version 0). Must not know
groups. Version 1 includes the partitions that a member already owns; a sticky assignor keeps them.
"""

import struct

from attrs import frozen

from fencepost.impl.messages.topic_partition import TopicPartition

PROTOCOL_TYPE = "consumer"


@frozen(kw_only=True)
class Subscription:
    """topics: in no particular order. owned: the member's partitions in the previous generation."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _partitions(partitions: tuple[TopicPartition, ...]) -> bytes:
    topics: dict[str, list[int]] = {}
    for key in sorted(partitions):
        topics.setdefault(key.topic, []).append(key.partition)
    parts = [struct.pack(">i", len(topics))]
    for topic, numbers in topics.items():
        parts += (_string(topic), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(parts)


def encode_subscription(subscription: Subscription) -> bytes:
    """Version 1, without user data."""
    topics = b"".join(map(_string, subscription.topics))
    head = struct.pack(">hi", 1, len(subscription.topics))
    return head + topics + struct.pack(">i", -1) + _partitions(subscription.owned)


def encode_assignment(partitions: tuple[TopicPartition, ...]) -> bytes:
    """Version 0, without user data."""
    return struct.pack(">h", 0) + _partitions(partitions) + struct.pack(">i", -1)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(value)

    def bytes(self, size: int) -> bytes:
        self._at += max(0, size)
        return self._data[self._at - max(0, size) : self._at]

    def string(self) -> str:
        return self.bytes(self.number("h")).decode()

    def partitions(self) -> tuple[TopicPartition, ...]:
        found = []
        for _ in range(self.number("i")):
            topic = self.string()
            found += [TopicPartition(topic, self.number("i")) for _ in range(self.number("i"))]
        return tuple(found)


def decode_subscription(data: bytes) -> Subscription | None:
    """The subscription of a member; None if the bytes are not a subscription."""
    try:
        reader = _Reader(data)
        version = reader.number("h")
        topics = tuple(reader.string() for _ in range(reader.number("i")))
        reader.bytes(reader.number("i"))
        return Subscription(topics=topics, owned=reader.partitions() if version >= 1 else ())
    except (struct.error, UnicodeDecodeError):
        return None


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...] | None:
    """The assignment of a member; None if the bytes are not an assignment. b"" is an empty assignment: the
    leader sent none for this member."""
    if not data:
        return ()
    try:
        reader = _Reader(data)
        reader.number("h")
        return reader.partitions()
    except (struct.error, UnicodeDecodeError):
        return None
