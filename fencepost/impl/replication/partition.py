"""One replica of one partition at this broker: its log, its role, its high watermark.

Owns the state that leader and follower share. Must not know sockets, ZooKeeper or timers. The inequalities
that always hold: 0 <= log_start_offset <= high_watermark <= log_end_offset, and a leader's high watermark
never goes back within its epoch. The first is asserted at the end of each operation that could break it
(`assert_bounds`): a broker that finds itself wrong ends, before it tells anybody.
"""

from attrs import define, evolve, field

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.broker_api import NO_EPOCH, NO_LEADER, TopicPartition
from fencepost.traces.events import Name


@define
class FollowerState:
    """What a leader knows about a follower (R3).

    Attributes:
        log_end_offset: its last fetch offset; -1 until it fetched in this epoch.
        caught_up_at: host time at which it last had everything that the leader had then.
        last_fetch_at, leader_end_at_fetch: of its last fetch.
    """

    log_end_offset: int = -1
    caught_up_at: int = 0
    last_fetch_at: int = 0
    leader_end_at_fetch: int = -1


@define
class Partition:
    """One replica of one partition."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Topic and partition.
    key: TopicPartition
    # The log.
    log: SegmentedLog
    # The log directory, which checkpoints the log.
    logs: LogDirectory
    # The last request when it was created: the controller's epoch, and the number.
    created: tuple[int, int] = (-1, -1)
    # The offset below which records are committed. log start <= high watermark <= log end.
    high_watermark: int = 0
    # The leader; NO_LEADER if there is none.
    leader: int = NO_LEADER
    # That of the last LeaderAndIsr obeyed; it never decreases.
    leader_epoch: int = NO_EPOCH
    # The epoch of the controller that wrote the state.
    controller_epoch: int = NO_EPOCH
    # The log end offset when this leader's epoch began.
    epoch_start_offset: int = 0
    # The assigned replicas.
    replicas: tuple[int, ...] = ()
    # The ISR in ZooKeeper, as far as this leader knows.
    isr: tuple[int, ...] = ()
    # The version of the state node in ZooKeeper, as far as this leader knows.
    zk_version: int = -1
    # A proposed ISR that is not settled yet; None if there is none.
    pending_isr: tuple[int, ...] | None = None
    # The state of each follower; only on the leader.
    followers: dict[int, FollowerState] = field(factory=dict)

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition, by its own knowledge."""
        return self.leader == self.broker_context.node

    @property
    def maximal_isr(self) -> frozenset[int]:
        """All replicas that are, or may be by now, in ZooKeeper's ISR. A replica is removed only when its
        removal is certain, and counts as soon as it is proposed."""
        isr = frozenset(self.isr)
        return isr if self.pending_isr is None else isr.union(self.pending_isr)

    def enough_in_sync(self, minimum: int) -> bool:
        """Protection of acks=all: whether the ISR has min.insync.replicas members, or all existing replicas.
        Apache Kafka 3.9 and 4.x limit the setting in this way; otherwise acks=all would be refused for
        ever."""
        return len(self.isr) >= min(minimum, max(1, len(self.replicas)))

    def set_high_watermark(self, offset: int, *, cause: str) -> bool:
        """Set the high watermark, clamped to the log.

        Args:
            offset: the new high watermark.
            cause: why it moves, for the event.

        Returns:
            whether it moved.
        """
        clamped = self.high_watermark_within_log(offset)
        if clamped == self.high_watermark:
            return False
        self.high_watermark = clamped
        self.broker_context.record(
            Name.HIGH_WATERMARK, self.key, high_watermark=clamped, leader_epoch=self.leader_epoch, cause=cause
        )
        self.assert_bounds()
        return True

    def high_watermark_within_log(self, offset: int) -> int:
        """Protection KAFKA-3978: the high watermark stays within [log start, log end], whatever a checkpoint
        or a leader says."""
        log = self.log
        if offset > log.log_end_offset:
            offset = log.log_end_offset
        return offset if offset > log.log_start_offset else log.log_start_offset

    def assert_bounds(self) -> None:
        """Assert 0 <= log start <= high watermark <= log end. Where it does not hold, all three are recorded
        first: what is wrong is for the judges to name, not for the broker."""
        log = self.log
        if not 0 <= log.log_start_offset <= self.high_watermark <= log.log_end_offset:
            self.log_start_moved(cause="bounds")
            raise AssertionError(
                f"{self.key}: the high watermark {self.high_watermark} is not between the log start "
                f"{log.log_start_offset} and the log end {log.log_end_offset}"
            )

    # ---- the log's start

    def advance_log_start_offset(self, offset: int, *, cause: str) -> bool:
        """Records below `offset` may be deleted; it is at most the high watermark. Returns whether it
        moved."""
        if not self.log.log_start_offset < offset <= self.high_watermark:
            return False
        self.log.advance_log_start_offset(offset)
        self.log_start_moved(cause=cause)
        self.assert_bounds()
        return True

    def log_start_moved(self, *, cause: str) -> None:
        """Record the new log start."""
        self.broker_context.record(
            Name.LOG_START,
            self.key,
            log_start_offset=self.log.log_start_offset,
            high_watermark=self.high_watermark,
            end_offset=self.log.log_end_offset,
            leader_epoch=self.leader_epoch,
            cause=cause,
        )

    # ---- truncation

    def truncate_to(self, offset: int, *, cause: str) -> None:
        """Truncate the log (and the high watermark with it) as a follower.

        Args:
            offset: the new log end offset.
            cause: why, for the event.
        """
        before, high_watermark = self.log.log_end_offset, self.high_watermark
        log_start_offset = self.log.log_start_offset
        self.logs.truncate_to(self.key, offset)
        if self.log.log_end_offset < before:
            self._truncated(before, high_watermark, cause)
        self.set_high_watermark(min(self.high_watermark, self.log.log_end_offset), cause="follower")
        if self.log.log_start_offset != log_start_offset:
            self.log_start_moved(cause="truncated")
        self.assert_bounds()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records and continue at `offset`, where the leader's log starts."""
        before, high_watermark = self.log.log_end_offset, self.high_watermark
        self.logs.truncate_fully_and_start_at(self.key, offset)
        self._truncated(before, high_watermark, "full")
        self.high_watermark_follows_log_start()
        self.log_start_moved(cause="truncated")
        self.assert_bounds()

    def allow_gaps(self) -> None:
        """From now on a gap in this log is no damage, after a restart neither."""
        self.logs.expect_gaps(self.key)
        self.log.configure(evolve(self.log.options, contiguous=False))

    def high_watermark_follows_log_start(self) -> None:
        """Protection KAFKA-9491: a full truncation moves the whole log, and the high watermark with it."""
        self.set_high_watermark(self.log.log_start_offset, cause="follower")

    def _truncated(self, before: int, high_watermark: int, cause: str) -> None:
        self.broker_context.record(
            Name.TRUNCATED,
            self.key,
            offset=self.log.log_end_offset,
            end_offset=before,
            high_watermark=high_watermark,
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            cause=cause,
        )
