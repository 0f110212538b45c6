"""KAFKA-1647: a partition whose leader is down at start-up gets no local replica, and the checkpoint holds
the high watermarks of local replicas.

1. b1 leads, b2 follows and has checkpointed the high watermark 100; both stop, b2 starts again: the leader is
   down, so that b2 makes no replica
2. the next checkpoint names the replicas that b2 has, so not this one: the 100 that stood there is gone
3. b2 is killed and starts once more: its high watermark is 0
4. with KIP-101's protection missing too it cuts its log there as soon as it has a leader; if that is gone
   meanwhile, everything is
"""

from attrs import define, field

from fencepost.impl.messages.broker_api import LeaderAndIsrRequest, TopicPartition
from fencepost.impl.replication.manager import ReplicaManager


@define
class ForgetsWhoHasNoLeader(ReplicaManager):
    """begun: whether a LeaderAndIsr came, which began the checkpoints in that Kafka. made: the partitions
    that have a replica: they had a leader once."""

    begun: bool = False
    made: dict[TopicPartition, None] = field(factory=dict)

    def apply(self, request: LeaderAndIsrRequest) -> None:
        """A replica is made where the leader is alive."""
        super().apply(request)
        if not self.begun:
            self.begun, self.written = True, dict(self.checkpointed)
        for state in request.partitions:
            partition = self.partitions.get(state.partition)
            if partition is not None and partition.leader >= 0:
                self.made[state.partition] = None

    def keep_checkpointed(self) -> dict[TopicPartition, int]:
        """The replicas that were made, and no others."""
        kept = super().keep_checkpointed()
        return {key: kept[key] for key in kept if key in self.made} if self.begun else kept
