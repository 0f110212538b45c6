"""Bugs of cooperative rebalances (KIP-429): what a member keeps, what it gives up, and when."""

from fencepost.impl.client.consumer.assignors import Assignment, Subscriptions
from fencepost.impl.client.consumer.coordinator_requests import ConsumerCoordinator
from fencepost.impl.client.consumer.fetch import ConsumerFetcher
from fencepost.impl.messages.topic_partition import TopicPartition


class AssignsWhatOthersHave(ConsumerCoordinator):
    """KAFKA-15170: a partition goes to its new owner at once, while the old one still reads it."""

    def free_partitions(self, members: Subscriptions, shares: Assignment) -> Assignment:
        """All of them."""
        return shares


class KeepsWhatItLost(ConsumerCoordinator):
    """KAFKA-12983: a member that was removed from its group joins again with what it had, and goes on where
    it was."""

    def lose(self) -> None:
        """As if nothing had happened."""
        if not self.cooperative:
            super().lose()


class WaitsForAnotherRebalance(ConsumerCoordinator):
    """P5-REJOIN: what a member has given up belongs to nobody until something else makes a rebalance."""

    def must_join_again(self, given_up: tuple[TopicPartition, ...]) -> bool:
        """Never."""
        return False


class RevokesEverything(ConsumerFetcher):
    """P5-KEPT: a member begins again at the committed offsets of all its partitions, as after an eager
    rebalance."""

    def keep(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Read these; nothing is known of any of them."""
        self.assign(partitions)
