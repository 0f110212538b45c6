"""Bugs of consumers that seek while an answer is on its way."""

from fencepost.impl.client.consumer.fetch import ConsumerFetcher, Reset
from fencepost.impl.messages.topic_partition import TopicPartition


class TakesAnyReset(ConsumerFetcher):
    """KAFKA-7703: the application seeks to the end while the log start is being asked for, and the answer to
    that is where it goes on."""

    def still_wanted(self, key: TopicPartition, reset: Reset) -> bool:
        """As long as any is."""
        return key in self.resets


class KeepsPositions(ConsumerFetcher):
    """P5-POSITIONS: a consumer that is given a partition again goes on where it was itself, and commits that,
    whoever had the partition meanwhile."""

    def forget_positions(self) -> None:
        """It remembers."""


class BeginsAtTheCommitted(ConsumerFetcher):
    """P5-SEEK: the application seeks while the committed offset is being asked for, and the answer to that is
    where it begins."""

    def still_missing(self, key: TopicPartition) -> bool:
        """Whatever it did meanwhile."""
        return key in self.assigned
