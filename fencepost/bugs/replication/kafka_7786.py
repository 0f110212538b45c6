"""KAFKA-7786: a follower applies an answer that it asked for in an earlier leader epoch.

1. b2 asks b1, who leads epoch 1, where an epoch ends; the answer is on its way
2. b3 leads epoch 2 and b1 cuts its log; then b1 leads epoch 3, and b2 hears of it
3. the answer about b1's log of epoch 1 arrives; b2 cuts by it and fetches on: what it holds, b1 has cut, or
   the other way round
"""

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.replication.fetcher import Conversation, Following, ReplicaFetcher


class AppliesLateAnswers(ReplicaFetcher):
    """Looks whether the partition is fetched from that leader, not since when."""

    def still_same_epoch(self, conversation: Conversation, key: TopicPartition) -> Following | None:
        """Any epoch will do."""
        return conversation.followings.get(key)
