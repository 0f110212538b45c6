"""What uses a consumer: the calls that it is told by.

Owns the protocol. Must not know how a consumer works.
"""

from typing import TYPE_CHECKING, Protocol

from fencepost.impl.client.consumer_fetch import ConsumedRecord
from fencepost.impl.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode

if TYPE_CHECKING:
    from fencepost.impl.client.consumer import Consumer


class Application(Protocol):
    """What uses a consumer. Each call may use the consumer's verbs; what the last verb came to is the next call."""

    def started(self, consumer: "Consumer") -> None:
        """The process is up."""
        ...

    def polled(self, consumer: "Consumer", records: list[ConsumedRecord]) -> None:
        """A poll has ended; empty if its time was over."""
        ...

    def committed(self, consumer: "Consumer", error: ErrorCode) -> None:
        """A commit_sync has ended."""
        ...

    def woken(self, consumer: "Consumer") -> None:
        """The time that `sleep` named is over."""
        ...

    def assigned(self, consumer: "Consumer", partitions: tuple[TopicPartition, ...]) -> None:
        """The rebalance listener: these partitions are ours from now on."""
        ...

    def revoked(self, consumer: "Consumer", partitions: tuple[TopicPartition, ...]) -> None:
        """The rebalance listener, always before the next `assigned`: these partitions are ours no more."""
        ...

    def failed(self, consumer: "Consumer", error: ErrorCode) -> None:
        """The consumer cannot go on: it was fenced, or nothing is committed and the reset policy is none."""
        ...
