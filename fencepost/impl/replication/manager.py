"""The replicas of this broker: becoming leader and follower, checkpoints, periodic work (R1, R9; C2).

Owns the table of partitions. The one place where a LeaderAndIsr changes a role.
"""

from itertools import count

from attrs import define, evolve, field

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.broker_states import BrokerState, enter
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.log.checkpoint.log_checkpoints import read_offsets, write_offsets
from fencepost.impl.log.layout import DOOMED, HIGH_WATERMARKS, doomed_directory
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.replication.fetcher import ReplicaFetcher
from fencepost.impl.replication.isr import SHRINK_TIMER, InSyncReplicas
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import FollowerState, Partition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.plan import TopicOptions

CHECKPOINT_TIMER = ("high_watermark_checkpoint",)
LONGEST_DETAIL = 300
"""Characters of an illegal name in an event."""


def log_options(topic: TopicOptions) -> LogOptions:
    """The options of a topic's logs."""
    return LogOptions(
        segment_bytes=topic.segment_bytes,
        segment_ms=topic.segment_ms,
        index_interval_bytes=topic.index_interval_bytes,
        flush_messages=topic.flush_messages,
        retention_ms=topic.retention_ms,
        retention_bytes=topic.retention_bytes,
        delete="delete" in topic.cleanup_policy,
        compact="compact" in topic.cleanup_policy,
        contiguous="compact" not in topic.cleanup_policy,
        delete_retention_ms=topic.delete_retention_ms,
        max_message_bytes=topic.max_message_bytes,
    )


@define
class ReplicaManager:
    """The replicas of one broker."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Every replica here, led or followed; shared with the leader role.
    partitions: dict[kafka.TopicPartition, Partition]
    # The leader role.
    leader: LeaderRole
    # The fetcher of followers.
    fetcher: ReplicaFetcher
    # The ISRs.
    isr: InSyncReplicas
    # The log directory.
    logs: LogDirectory
    # Which brokers are alive.
    metadata: MetadataCache
    # The class of partitions.
    partition_type: type[Partition] = Partition
    # High watermarks read at start. Each is kept until a replica takes it over, so that a checkpoint never
    # forgets a partition (KAFKA-1647).
    checkpointed: dict[kafka.TopicPartition, int] = field(factory=dict)
    # The high watermarks in the last checkpoint.
    written: dict[kafka.TopicPartition, int] = field(factory=dict)
    # (controller epoch, correlation id) of the latest LeaderAndIsr or StopReplica; it never decreases.
    latest: tuple[int, int] = (-1, -1)
    # Whether the configurations of topics were read since the start.
    options_known: bool = False

    # ---- start-up and periodic work

    def start(self) -> None:
        """Recover every log on the disk and read the checkpoint."""
        self.checkpointed = read_offsets(self.broker_context.files, HIGH_WATERMARKS)
        self.logs.begin()
        self._remove_doomed()
        names = [name.rpartition("-") for name in self.broker_context.files.list("")]
        keys = [
            kafka.TopicPartition(topic, int(number))
            for topic, dash, number in names
            if dash and number.isdigit()
        ]
        if keys and not self.logs.clean:
            enter(self.broker_context, BrokerState.RECOVERING)
        for key in keys:
            self._create(key)
        self.logs.loaded()
        self.broker_context.set_timer(
            CHECKPOINT_TIMER, self.broker_context.options.high_watermark_checkpoint_interval_ms
        )
        self.broker_context.set_timer(SHRINK_TIMER, self._shrink_interval())

    def _remove_doomed(self) -> None:
        """Remove the rest of replicas that were being deleted when the process died."""
        for name in self.broker_context.files.list(""):
            if name.endswith(DOOMED):
                self.broker_context.files.remove_directory(name)

    def _shrink_interval(self) -> int:
        return max(1, self.broker_context.options.replica_lag_time_max_ms // 2)

    def _create(self, key: kafka.TopicPartition) -> Partition:
        log = self.logs.open(key, self._log_options(key))
        self._expect_gaps(key)
        partition = self.partition_type(self.broker_context, key, log, self.logs, created=self.latest)
        partition.high_watermark = partition.high_watermark_within_log(self.checkpointed.get(key, 0))
        self.partitions[key] = partition
        self.broker_context.record(
            Name.LOG_RECOVERED,
            key,
            offset=log.log_end_offset,
            high_watermark=partition.high_watermark,
            log_start_offset=log.log_start_offset,
            leader_epoch=log.epochs.latest_epoch(),
        )
        partition.assert_bounds()
        return partition

    # ---- options

    def _log_options(self, key: kafka.TopicPartition) -> LogOptions:
        """The options of a log. Gaps are allowed if the plan, an operator's change or the disk says that
        there may be some. An operator's compaction is kept until it is known whether it is still
        configured."""
        options = log_options(self.broker_context.topic_options(key.topic))
        if (
            not options.contiguous
            or not log_options(self.broker_context.planned_options(key.topic)).contiguous
        ):
            return evolve(options, contiguous=False)
        if self.logs.may_have_gaps(key):
            return evolve(options, contiguous=False, delete=options.delete and self.options_known)
        return options

    def _expect_gaps(self, key: kafka.TopicPartition) -> None:
        compact = log_options(self.broker_context.topic_options(key.topic)).compact
        if compact and log_options(self.broker_context.planned_options(key.topic)).contiguous:
            self.logs.expect_gaps(key)

    def configure(self, topic: str) -> None:
        """The options of a topic have changed: apply them to its open logs."""
        for key, partition in sorted(self.partitions.items()):
            if key.topic == topic:
                self._expect_gaps(key)
                partition.log.configure(self._log_options(key))

    def all_configured(self) -> None:
        """The configurations of all topics are known now, including topics without one."""
        self.options_known = True
        for key, partition in sorted(self.partitions.items()):
            if self.logs.may_have_gaps(key):
                partition.log.configure(self._log_options(key))

    # ---- checkpoints

    def checkpoint(self) -> None:
        """Write the high watermarks and the recovery points if any moved."""
        current = self.keep_checkpointed()
        if current != self.written:
            self.replace_checkpoint(current)
            self.written = current
        self.logs.checkpoint()
        self.broker_context.set_timer(
            CHECKPOINT_TIMER, self.broker_context.options.high_watermark_checkpoint_interval_ms
        )

    def replace_checkpoint(self, current: dict[kafka.TopicPartition, int]) -> None:
        """Protection R9: a checkpoint is replaced as a whole, so that a crash leaves the old one or the new
        one."""
        write_offsets(self.broker_context.files, HIGH_WATERMARKS, current)

    def keep_checkpointed(self) -> dict[kafka.TopicPartition, int]:
        """Protection KAFKA-1647: a checkpoint holds the high watermark of every replica, also if its leader
        is down or unknown. It also holds values that were read at start and that no replica has taken over
        yet."""
        current = dict(self.checkpointed)
        current.update({key: partition.high_watermark for key, partition in self.partitions.items()})
        return current

    def close(self) -> None:
        """Stop cleanly: flush and release every log, write the checkpoints, then the marker. Raises
        LogOfflineError or OSError if the disk fails."""
        self.checkpoint()
        self.logs.close()

    def shrink(self) -> None:
        """Remove lagging members from ISRs."""
        for _, partition in sorted(self.partitions.items()):
            if partition.is_leader:
                self.isr.maybe_shrink(partition)
        self.broker_context.set_timer(SHRINK_TIMER, self._shrink_interval())

    # ---- roles

    def apply(self, request: kafka.LeaderAndIsrRequest) -> None:
        """Take the roles that the controller assigns, partition by partition."""
        in_order = self.late_copy_fencing(request)
        number = request.controller_epoch, request.correlation_id
        for state in request.partitions:
            partition = self.partitions.get(state.partition)
            if partition is None and (not in_order or not self._may_be_created(state.partition)):
                continue  # it was deleted since, or never could exist
            if partition is not None and not in_order and number < partition.created:
                continue  # another one had that name
            partition = partition or self._create(state.partition)
            if self.leader_epoch_fencing(partition, state) and self._may_follow(state):
                self._take(partition, state)

    def _may_be_created(self, key: kafka.TopicPartition) -> bool:
        """A name from ZooKeeper or a request may be impossible for a directory: the disk's error would halt
        the broker."""
        if not key.is_legal:
            self.broker_context.record(
                Name.MARK, cause="illegal_partition", detail=repr(tuple(key))[:LONGEST_DETAIL]
            )
        return key.is_legal

    def _may_follow(self, state: kafka.PartitionState) -> bool:
        """Kafka's makeFollowers: a replica does not follow a leader that is not known to be alive. The
        replica exists, with its high watermark checkpointed (KAFKA-1647). Role and epoch stay as they were,
        so that the same request can be obeyed later. (docs/decisions/unknown-leader.md)"""
        if state.leader < 0 or state.leader == self.broker_context.node or self.metadata.runs(state.leader):
            return True
        self.broker_context.record(
            Name.MARK,
            state.partition,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            cause="leader_not_alive",
        )
        return False

    def leader_epoch_fencing(self, partition: Partition, state: kafka.PartitionState) -> bool:
        """Protection KAFKA-1188: only a higher leader epoch changes a role.

        Args:
            partition: the replica.
            state: the state in the request.

        Returns:
            whether to obey.
        """
        return state.leader_epoch > partition.leader_epoch

    def _take(self, partition: Partition, state: kafka.PartitionState) -> None:
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
            replica: FollowerState(caught_up_at=self.broker_context.now if replica in partition.isr else -1)
            for replica in partition.replicas
            if replica != self.broker_context.node
        }
        self.broker_context.record(
            Name.BECAME_LEADER,
            partition.key,
            leader=self.broker_context.node,
            leader_epoch=partition.leader_epoch,
            offset=end,
            high_watermark=partition.high_watermark,
            isr=partition.isr,
        )
        self.leader.high_watermark.advance(partition)

    def assign_epoch_on_election(self, partition: Partition) -> None:
        """Protection KAFKA-7415: the new epoch enters the cache before anything is written, so that queries
        about it can be answered."""
        partition.log.epochs.assign(partition.leader_epoch, partition.log.log_end_offset)

    def _become_follower(self, partition: Partition) -> None:
        partition.followers = {}
        self.broker_context.record(
            Name.BECAME_FOLLOWER,
            partition.key,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            offset=partition.log.log_end_offset,
            high_watermark=partition.high_watermark,
        )
        if partition.leader >= 0:
            self.fetcher.follow(partition)

    # ---- stopping replicas

    def stop_replicas(
        self, request: kafka.StopReplicaRequest
    ) -> tuple[tuple[kafka.TopicPartition, ErrorCode], ...]:
        """Stop fetching and leading these partitions, and delete those that are marked. Returns the error of
        each; a partition without a replica here counts as stopped."""
        if not self.late_copy_fencing(request):
            return tuple((key, ErrorCode.FENCED_LEADER_EPOCH) for key, _, _ in request.partitions)
        return tuple((key, self._stop(key, epoch, delete)) for key, epoch, delete in request.partitions)

    def late_copy_fencing(self, request: kafka.LeaderAndIsrRequest | kafka.StopReplicaRequest) -> bool:
        """A retried request may arrive after later ones. A late copy of a StopReplica must not delete what
        they created; a late copy of a LeaderAndIsr must not create again what they deleted, nor give a role
        to what was created since under the same name (KIP-516: names are used again)."""
        number = (request.controller_epoch, request.correlation_id)
        late = request.controller_epoch == self.latest[0] and number < self.latest
        self.latest = max(self.latest, number)
        return not late

    def _stop(self, key: kafka.TopicPartition, leader_epoch: int, delete: bool) -> ErrorCode:
        partition = self.partitions.get(key)
        if partition is None:
            return NO_ERROR
        if not self.stop_replica_fencing(partition, leader_epoch):
            return ErrorCode.FENCED_LEADER_EPOCH
        self.fetcher.stop(key)
        partition.leader = kafka.NO_LEADER
        if delete:
            self._delete(partition)
        self.leader.complete(partition)
        return NO_ERROR

    def stop_replica_fencing(self, partition: Partition, leader_epoch: int) -> bool:
        """Protection KIP-570: a StopReplica with an earlier leader epoch than the one obeyed must not stop a
        replica that came back since.

        Args:
            partition: the replica.
            leader_epoch: the epoch in the request.

        Returns:
            whether to obey.
        """
        return leader_epoch == kafka.EPOCH_DURING_DELETE or leader_epoch >= partition.leader_epoch

    def _delete(self, partition: Partition) -> None:
        """Rename the directory, which is the decisive step, then remove its content. A crash in between
        leaves nothing that looks like a replica, and the next start removes it."""
        key, files = partition.key, self.broker_context.files
        del self.partitions[key]
        self.checkpointed.pop(key, None)
        self.logs.forget(key)
        names = files.list("")
        doomed = next(name for number in count() if (name := doomed_directory(str(key), number)) not in names)
        files.rename(str(key), doomed)
        self.broker_context.record(
            Name.MARK, key, leader_epoch=partition.leader_epoch, cause="replica_deleted", on_disk=True
        )
        files.sync_directory("")
        for name in files.list(doomed):
            files.remove(f"{doomed}/{name}")
        files.remove_directory(doomed)
