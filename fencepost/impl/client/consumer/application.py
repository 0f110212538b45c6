"""The user of a consumer: the calls that it receives.

Owns the protocol. Must not know how a consumer works.
"""

from typing import Protocol, TypeVar

from fencepost.impl.client.consumer.fetch import ConsumedRecord
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode

User = TypeVar("User", contravariant=True)
"""The consumer that is used."""


class Application(Protocol[User]):
    """The user of a consumer. Each call may use one of the consumer's methods; the result of the last method
    comes with the next call."""

    def started(self, consumer: User) -> None:
        """The process has started."""
        ...

    def polled(self, consumer: User, records: list[ConsumedRecord]) -> None:
        """A poll has ended.

        Args:
            consumer: the consumer.
            records: the records; empty if the time was over.
        """
        ...

    def committed(self, consumer: User, error: ErrorCode) -> None:
        """A commit_sync has ended.

        Args:
            consumer: the consumer.
            error: NONE if the offsets are committed.
        """
        ...

    def woken(self, consumer: User) -> None:
        """The time of `sleep` is over."""
        ...

    def assigned(self, consumer: User, partitions: tuple[TopicPartition, ...]) -> None:
        """The rebalance listener: these partitions are assigned from now on."""
        ...

    def revoked(self, consumer: User, partitions: tuple[TopicPartition, ...]) -> None:
        """The rebalance listener, always before the next `assigned`: these partitions are no longer
        assigned."""
        ...

    def failed(self, consumer: User, error: ErrorCode) -> None:
        """The consumer cannot continue: it was fenced, or nothing is committed and the reset policy is
        none."""
        ...
