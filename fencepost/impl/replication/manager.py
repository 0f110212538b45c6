"""The replicas of this broker: becoming leader and follower, checkpoints, periodic work (R1, R9; C2).

Owns the table of partitions. The one place where a LeaderAndIsr changes a role.
"""

from attrs import define, field

from fencepost.impl.log.checkpoints import read_high_watermarks, write_high_watermarks
from fencepost.impl.log.epochs import LeaderEpochCache
from fencepost.impl.log.log import Log
from fencepost.impl.messages import LeaderAndIsrRequest, PartitionState, StopReplicaRequest, TopicPartition
from fencepost.impl.replication.fetcher import ReplicaFetcher
from fencepost.impl.replication.isr import SHRINK_TIMER, InSyncReplicas
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import FollowerState, Partition
from fencepost.impl.shell import Shell
from fencepost.traces.events import Name

CHECKPOINT_TIMER = ("high_watermark_checkpoint",)


@define
class ReplicaManager:
    """partitions: every replica here, led or followed; shared with the leader role. checkpointed: high watermarks read at start-up,
    kept until a replica takes them over so that a checkpoint never forgets a partition (KAFKA-1647)."""

    shell: Shell
    partitions: dict[TopicPartition, Partition]
    leader: LeaderRole
    fetcher: ReplicaFetcher
    isr: InSyncReplicas
    log_type: type[Log]
    epoch_cache_type: type[LeaderEpochCache]
    checkpointed: dict[TopicPartition, int] = field(factory=dict)
    written: dict[TopicPartition, int] = field(factory=dict)

    # ---- start-up and periodic work

    def start(self) -> None:
        """Recover every log on the disk and read the checkpoint."""
        self.checkpointed = read_high_watermarks(self.shell.files)
        for name in self.shell.files.list(""):
            topic, dash, number = name.rpartition("-")
            if dash and number.isdigit():
                self._create(TopicPartition(topic, int(number)))
        self.shell.set_timer(CHECKPOINT_TIMER, self.shell.options.high_watermark_checkpoint_interval_ms)
        self.shell.set_timer(SHRINK_TIMER, self._shrink_interval())

    def _shrink_interval(self) -> int:
        return max(1, self.shell.options.replica_lag_time_max_ms // 2)

    def _create(self, key: TopicPartition) -> Partition:
        log = self.log_type.open(
            self.shell.files,
            str(key),
            flush_messages=self.shell.topic_options(key.topic).flush_messages,
            epoch_cache=self.epoch_cache_type,
        )
        high_watermark = min(self.checkpointed.get(key, 0), log.log_end_offset)
        partition = Partition(self.shell, key, log, max(log.log_start_offset, high_watermark))
        self.partitions[key] = partition
        self.shell.record(
            Name.LOG_RECOVERED,
            key,
            offset=log.log_end_offset,
            high_watermark=partition.high_watermark,
            leader_epoch=log.epochs.latest_epoch(),
        )
        return partition

    def checkpoint(self) -> None:
        """Write the high watermarks, if any moved."""
        current = dict(self.checkpointed)
        current.update({key: partition.high_watermark for key, partition in self.partitions.items()})
        if current != self.written:
            write_high_watermarks(self.shell.files, current)
            self.written = current
        self.shell.set_timer(CHECKPOINT_TIMER, self.shell.options.high_watermark_checkpoint_interval_ms)

    def shrink(self) -> None:
        """Look for lagging ISR members."""
        for _, partition in sorted(self.partitions.items()):
            if partition.is_leader:
                self.isr.maybe_shrink(partition)
        self.shell.set_timer(SHRINK_TIMER, self._shrink_interval())

    # ---- roles

    def apply(self, request: LeaderAndIsrRequest) -> None:
        """Take the roles that the controller gives, partition by partition."""
        for state in request.partitions:
            partition = self.partitions.get(state.partition) or self._create(state.partition)
            if self.leader_epoch_fencing(partition, state):
                self._take(partition, state)

    def leader_epoch_fencing(self, partition: Partition, state: PartitionState) -> bool:
        """Protection KAFKA-1188: only a higher leader epoch changes a role."""
        return state.leader_epoch > partition.leader_epoch

    def _take(self, partition: Partition, state: PartitionState) -> None:
        partition.leader, partition.leader_epoch = state.leader, state.leader_epoch
        partition.controller_epoch, partition.replicas = state.controller_epoch, state.replicas
        partition.isr, partition.zk_version, partition.pending_isr = state.isr, state.zk_version, None
        self.fetcher.stop(partition.key)
        if partition.is_leader:
            self._become_leader(partition)
        else:
            self._become_follower(partition)
        self.leader.complete(partition)

    def _become_leader(self, partition: Partition) -> None:
        end = partition.log.log_end_offset
        partition.epoch_start_offset = end
        self.assign_epoch_on_election(partition)
        partition.followers = {
            replica: FollowerState(caught_up_at=self.shell.now if replica in partition.isr else -1)
            for replica in partition.replicas
            if replica != self.shell.node
        }
        self.shell.record(
            Name.BECAME_LEADER,
            partition.key,
            leader=self.shell.node,
            leader_epoch=partition.leader_epoch,
            offset=end,
            high_watermark=partition.high_watermark,
            isr=partition.isr,
        )
        self.leader.high_watermark.advance(partition)

    def assign_epoch_on_election(self, partition: Partition) -> None:
        """Protection KAFKA-7415: the new epoch enters the cache before anything is written, so that questions about it have an answer."""
        partition.log.epochs.assign(partition.leader_epoch, partition.log.log_end_offset)

    def _become_follower(self, partition: Partition) -> None:
        partition.followers = {}
        self.shell.record(
            Name.BECAME_FOLLOWER,
            partition.key,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            offset=partition.log.log_end_offset,
            high_watermark=partition.high_watermark,
        )
        if partition.leader >= 0:
            self.fetcher.follow(partition)

    def stop_replicas(self, request: StopReplicaRequest) -> None:
        """Stop fetching and leading these partitions, unless a later epoch was obeyed (KIP-570)."""
        for key, leader_epoch, _ in request.partitions:
            partition = self.partitions.get(key)
            if partition is not None and leader_epoch >= partition.leader_epoch:
                self.fetcher.stop(key)
                partition.leader = -1
                self.leader.complete(partition)
