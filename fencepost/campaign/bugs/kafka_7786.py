"""KAFKA-7786: an answer is applied although the leader epoch changed while it was under way."""

from fencepost.impl.messages import TopicPartition
from fencepost.impl.replication.fetcher import Conversation, Following, ReplicaFetcher


class TakesOldAnswers(ReplicaFetcher):
    """Asks only whether the partition is still fetched from that broker."""

    def still_same_epoch(self, conversation: Conversation, key: TopicPartition) -> Following | None:
        """Of whatever epoch."""
        return conversation.followings.get(key)
