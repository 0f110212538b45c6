"""One replica of one partition at this broker: its log, its role, its high watermark.

Owns the state that leader and follower share. Must not know sockets, ZooKeeper or timers. The inequalities that always hold:
0 <= log_start_offset <= high_watermark <= log_end_offset, and a leader's high watermark never goes back within its epoch.
"""

from attrs import define, field

from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages import NO_EPOCH, NO_LEADER, TopicPartition
from fencepost.impl.shell import Shell
from fencepost.traces.events import Name


@define
class FollowerState:
    """What a leader knows of a follower (R3). log_end_offset: its last fetch offset, -1 until it fetched in this epoch.
    caught_up_at: host time at which it had everything the leader had then. last_fetch_at, leader_end_at_fetch: of its last fetch."""

    log_end_offset: int = -1
    caught_up_at: int = 0
    last_fetch_at: int = 0
    leader_end_at_fetch: int = -1


@define
class Partition:
    """leader_epoch: of the last LeaderAndIsr obeyed; moves up only. epoch_start_offset: log end offset when this leader's epoch began.
    isr, zk_version: what ZooKeeper holds, as far as this leader knows. pending_isr: proposed and not yet answered.
    followers: only on the leader."""

    shell: Shell
    key: TopicPartition
    log: SegmentedLog
    high_watermark: int = 0
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    controller_epoch: int = NO_EPOCH
    epoch_start_offset: int = 0
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    zk_version: int = -1
    pending_isr: tuple[int, ...] | None = None
    followers: dict[int, FollowerState] = field(factory=dict)

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition, as far as it knows."""
        return self.leader == self.shell.node

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The ISR that ZooKeeper holds or may hold by now: a replica leaves only when its removal is certain, and counts as soon as it is proposed."""
        return frozenset(self.isr) | frozenset(self.pending_isr or ())

    def set_high_watermark(self, offset: int, *, cause: str) -> bool:
        """Clamp into the log (KAFKA-3978) and take over; returns whether it moved."""
        clamped = max(self.log.log_start_offset, min(offset, self.log.log_end_offset))
        if clamped == self.high_watermark:
            return False
        self.high_watermark = clamped
        self.shell.record(
            Name.HIGH_WATERMARK,
            self.key,
            high_watermark=clamped,
            leader_epoch=self.leader_epoch,
            cause=cause,
        )
        return True

    def truncate_to(self, offset: int, *, cause: str) -> None:
        """Cut the log (and the high watermark with it) as a follower."""
        before, high_watermark = self.log.log_end_offset, self.high_watermark
        self.log.truncate_to(offset)
        if self.log.log_end_offset < before:
            self.shell.record(
                Name.TRUNCATED,
                self.key,
                offset=self.log.log_end_offset,
                end_offset=before,
                high_watermark=high_watermark,
                leader=self.leader,
                leader_epoch=self.leader_epoch,
                cause=cause,
            )
        self.set_high_watermark(min(self.high_watermark, self.log.log_end_offset), cause="follower")
