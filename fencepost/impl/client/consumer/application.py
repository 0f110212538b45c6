"""What uses a consumer: the calls that it is told by.

Owns the protocol. Must not know how a consumer works.
"""

from typing import Protocol, TypeVar

from fencepost.impl.client.consumer.fetch import ConsumedRecord
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode

User = TypeVar("User", contravariant=True)
"""The consumer that is used."""


class Application(Protocol[User]):
    """What uses a consumer. Each call may use the consumer's verbs; what the last verb came to is the next
    call."""

    def started(self, consumer: User) -> None:
        """The process is up."""
        ...

    def polled(self, consumer: User, records: list[ConsumedRecord]) -> None:
        """A poll has ended; empty if its time was over."""
        ...

    def committed(self, consumer: User, error: ErrorCode) -> None:
        """A commit_sync has ended."""
        ...

    def woken(self, consumer: User) -> None:
        """The time that `sleep` named is over."""
        ...

    def assigned(self, consumer: User, partitions: tuple[TopicPartition, ...]) -> None:
        """The rebalance listener: these partitions are ours from now on."""
        ...

    def revoked(self, consumer: User, partitions: tuple[TopicPartition, ...]) -> None:
        """The rebalance listener, always before the next `assigned`: these partitions are ours no more."""
        ...

    def failed(self, consumer: User, error: ErrorCode) -> None:
        """The consumer cannot go on: it was fenced, or nothing is committed and the reset policy is none."""
        ...
