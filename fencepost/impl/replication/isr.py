"""The in-sync replicas of the partitions that this broker leads: shrink, expand, and the write to ZooKeeper
(R2, R8).

Owns the proposals and the notifications to the controller. A proposal belongs to the maximal ISR from the
moment it is made; only ZooKeeper's answer settles it.
"""

from collections.abc import Callable

from attrs import define, field

from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.core.procedures import Procedure, Procedures
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.replication.partition import FollowerState, Partition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Data, Done, Failed, GetData, SetData
from fencepost.impl.zookeeper.znodes import LeaderAndIsr
from fencepost.traces.events import Name

SHRINK_TIMER = ("isr_shrink",)
NOTIFY_TIMER = ("isr_notify",)


@define
class InSyncReplicas:
    """The ISRs of the partitions that this broker leads."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Runs sequences of ZooKeeper requests.
    procedures: Procedures
    # Which brokers are alive.
    metadata: MetadataCache
    # Partitions with an ISR change since the last notification to the controller, in order.
    changed: dict[TopicPartition, None] = field(factory=dict)
    # Called when a proposal is settled, so that the leader can move its high watermark.
    on_settled: list[Callable[[Partition], None]] = field(factory=list)
    # Whether a notification is being written.
    notifying: bool = False

    # ---- fetches of followers

    def on_follower_fetch(self, partition: Partition, follower: FollowerState, offset: int) -> None:
        """A follower asked for `offset`, so it has everything below. Kafka's rule: it is caught up if it has,
        now or at its last fetch, everything that the leader had then."""
        now, end = self.broker_context.now, partition.log.log_end_offset
        if offset >= end:
            follower.caught_up_at = now
        elif offset >= follower.leader_end_at_fetch >= 0:
            follower.caught_up_at = max(follower.caught_up_at, follower.last_fetch_at)
        follower.last_fetch_at, follower.leader_end_at_fetch, follower.log_end_offset = now, end, offset

    def maybe_expand(self, partition: Partition, member: int) -> None:
        """Propose a follower for the ISR if it may join.

        Args:
            partition: the partition.
            member: the broker id of the follower.
        """
        if member in partition.isr or partition.pending_isr is not None:
            return
        follower = partition.followers[member]
        if (
            member in partition.replicas
            and self.staying_isr_members_only(member)
            and follower.log_end_offset >= partition.high_watermark
            and self.isr_expand_after_epoch_start(partition, follower)
        ):
            self._propose(partition, tuple(sorted((*partition.isr, member))), cause="expand")

    def staying_isr_members_only(self, member: int) -> bool:
        """Protection KAFKA-14140: a broker that is gone or about to stop does not rejoin the ISR through a
        last fetch."""
        return member in self.metadata.live_brokers

    def isr_expand_after_epoch_start(self, partition: Partition, follower: FollowerState) -> bool:
        """Protection KAFKA-7128: a new leader's high watermark lags, so reaching it proves nothing; the
        follower must reach the start of the epoch.

        Args:
            partition: the partition.
            follower: the state of the follower.

        Returns:
            whether it may join.
        """
        return follower.log_end_offset >= partition.epoch_start_offset

    # ---- lag

    def maybe_shrink(self, partition: Partition) -> None:
        """Propose to remove the members that have not caught up for replica.lag.time.max.ms."""
        if partition.pending_isr is not None:
            return
        limit = self.broker_context.now - self.broker_context.options.replica_lag_time_max_ms * MILLISECOND
        end = partition.log.log_end_offset
        lagging = {
            member
            for member in partition.isr
            if member in partition.followers
            and partition.followers[member].log_end_offset != end
            and partition.followers[member].caught_up_at < limit
        }
        if lagging:
            kept = tuple(member for member in partition.isr if member not in lagging)
            self._propose(partition, kept, cause="shrink")

    # ---- the write

    def _propose(self, partition: Partition, isr: tuple[int, ...], *, cause: str) -> None:
        partition.pending_isr = isr
        epoch = partition.leader_epoch
        self.broker_context.record(Name.ISR_PROPOSED, partition.key, leader_epoch=epoch, isr=isr, cause=cause)
        self.procedures.start(self._write(partition, isr, cause))

    def _write(self, partition: Partition, isr: tuple[int, ...], cause: str) -> Procedure:
        epoch = partition.leader_epoch
        state = LeaderAndIsr(
            leader=self.broker_context.node,
            leader_epoch=epoch,
            controller_epoch=partition.controller_epoch,
            isr=isr,
        )
        path = znodes.state_path(partition.key)
        reply = yield SetData(path, znodes.encode_state(state), partition.zk_version)
        if isinstance(reply, Done):
            assert reply.stat is not None
            version: int | None = reply.stat.version
        else:
            assert isinstance(reply, Failed), reply
            current = yield GetData(path)
            version = self.accept_own_isr_write(current, state)
        if not partition.is_leader or partition.leader_epoch != epoch:
            return  # another LeaderAndIsr came meanwhile and set the state
        if version is None:
            # An earlier attempt may have been applied before another broker's write: the proposed members
            # count until LeaderAndIsr brings the state.
            self.broker_context.record(Name.ISR_REFUSED, partition.key, leader_epoch=epoch, isr=isr)
            return
        partition.pending_isr = None
        partition.isr, partition.zk_version = isr, version
        self.broker_context.record(
            Name.ISR_UPDATED, partition.key, leader_epoch=epoch, isr=isr, zk_version=version, cause=cause
        )
        self._notify_later(partition.key)
        for settled in self.on_settled:
            settled(partition)

    def accept_own_isr_write(self, current: object, state: LeaderAndIsr) -> int | None:
        """Protection KAFKA-1382: the write may have been applied although its reply was lost; the current
        content decides.

        Args:
            current: the node that was read.
            state: the state that was proposed.

        Returns:
            the version of the node if the proposal was written, otherwise None.
        """
        if isinstance(current, Data) and current.data == znodes.encode_state(state):
            return current.stat.version
        return None

    # ---- notifications

    def _notify_later(self, key: TopicPartition) -> None:
        self.changed[key] = None
        if not self.notifying:
            self.notifying = True
            self.broker_context.set_timer(NOTIFY_TIMER, self.broker_context.options.isr_change_propagation_ms)

    def notify(self) -> None:
        """Notify the controller through /isr_change_notification that ISRs changed. (It reads the states
        itself.)"""
        self.notifying = False
        keys, self.changed = list(self.changed), {}
        if keys:
            self.procedures.start(self._notification(keys))

    def _notification(self, keys: list[TopicPartition]) -> Procedure:
        yield Create(znodes.ISR_CHANGE_PREFIX, znodes.encode_isr_changes(keys), sequential=True)
