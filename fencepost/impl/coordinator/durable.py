"""Appends that are answered when every replica has them, as acks=all is: what coordinators write, and
markers.

Owns what waits for the high watermark of a partition. Must not know what the records say, nor who asked. What
becomes of an append is reported exactly once: no error, an error before anything was written (base offset
-1), or an error after it, when the records may count or not.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from attrs import define, field, frozen

from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.log.batch.header import NO_PRODUCER_ID
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.producer.producer_state import NO_EPOCH, InvalidProducerEpochError
from fencepost.impl.log.values import NO_VALUE
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import Partition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

Done = Callable[[ErrorCode, int], None]
"""Called with the error and the base offset (-1: nothing was written)."""
KeyAndValue = tuple[bytes, bytes | None]


@frozen
class Pending:
    """An append that waits until the high watermark reaches `required_offset` in the same leader epoch."""

    append_id: int
    partition: TopicPartition
    base_offset: int
    required_offset: int
    leader_epoch: int
    done: Done


@define
class DurableAppends:
    """pending: by id, in order of appending."""

    # First word of the timers of these appends; each kind of them has its own.
    TIMER: ClassVar[str]
    leader: LeaderRole
    pending: dict[int, Pending] = field(factory=dict)
    _last_id: int = 0

    @property
    def broker_context(self) -> BrokerContext:
        """Of the broker."""
        return self.leader.broker_context

    def write(
        self,
        key: TopicPartition,
        epoch: int,
        records: Sequence[KeyAndValue],
        done: Done,
        timeout_ms: int,
        *,
        producer: tuple[int, int] = (NO_PRODUCER_ID, NO_EPOCH),
    ) -> int:
        """Append these records as one batch, if this broker leads the partition in this epoch. `done` may be
        called at once. producer: id and epoch, if the batch is part of a transaction. Returns the base
        offset, -1 if nothing was written."""
        partition = self.leader.partitions.get(key)
        if partition is None or not partition.is_leader or partition.leader_epoch != epoch:
            self.not_leading(done)
            return -1
        if not self.in_sync(partition):
            done(ErrorCode.NOT_ENOUGH_REPLICAS, -1)
            return -1
        now_ms = self.broker_context.now // MILLISECOND
        batch = encode_batch(
            [Record(nth, now_ms, name, value) for nth, (name, value) in enumerate(records)],
            base_offset=0,
            leader_epoch=-1,
            producer_id=producer[0],
            producer_epoch=producer[1],
            transactional=producer[0] != NO_PRODUCER_ID,
        )
        if len(batch) > partition.log.options.max_message_bytes:
            done(ErrorCode.MESSAGE_TOO_LARGE, -1)
            return -1
        try:
            base_offset = partition.log.append_as_leader(batch, epoch, now_ms=now_ms).base_offset
        except InvalidProducerEpochError:
            done(ErrorCode.INVALID_PRODUCER_EPOCH, -1)
            return -1
        self.appended(partition, base_offset, len(records))
        self.wait(partition, base_offset, done, timeout_ms)
        return base_offset

    def appended(self, partition: Partition, base_offset: int, count: int) -> None:
        """Record that brokers' own records were appended.

        Args:
            partition: to which they were.
            base_offset: of the first one.
            count: how many.
        """
        self.broker_context.record(
            Name.APPENDED,
            partition.key,
            offset=base_offset,
            leader_epoch=partition.leader_epoch,
            values=(NO_VALUE,) * count,
            cause="leader",
        )

    def not_leading(self, done: Done) -> None:
        """There is nothing to write into."""
        done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    def wait(self, partition: Partition, base_offset: int, done: Done, timeout_ms: int) -> None:
        """The log of this leader has just been appended to, from `base_offset` to its end. `done` may be
        called at once."""
        self._last_id += 1
        self.pending[self._last_id] = Pending(
            self._last_id,
            partition.key,
            base_offset,
            partition.log.log_end_offset,
            partition.leader_epoch,
            done,
        )
        self.broker_context.set_timer((self.TIMER, self._last_id), timeout_ms)
        self.leader.high_watermark.advance(partition)
        self.leader.complete(partition)

    def moved(self, partition: Partition) -> None:
        """The partition's high watermark or role may have changed."""
        for waiting in [each for each in self.pending.values() if each.partition == partition.key]:
            if waiting.append_id not in self.pending:
                continue  # an answer before it led to its end
            if not partition.is_leader or partition.leader_epoch != waiting.leader_epoch:
                self._end(waiting, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.high_watermark >= waiting.required_offset:
                self._end(waiting, self._enough(partition))

    def _enough(self, partition: Partition) -> ErrorCode:
        return NO_ERROR if self.in_sync(partition) else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def in_sync(self, partition: Partition) -> bool:
        """Whether acks=all may be promised."""
        minimum = self.broker_context.topic_options(partition.key.topic).min_insync_replicas
        return partition.enough_in_sync(minimum)

    def expire(self, append_id: int) -> None:
        """An append's time is up; it may come to pass all the same."""
        waiting = self.pending.get(append_id)
        if waiting is not None:
            self._end(waiting, ErrorCode.REQUEST_TIMED_OUT)

    def _end(self, waiting: Pending, error: ErrorCode) -> None:
        del self.pending[waiting.append_id]
        self.broker_context.cancel_timer((self.TIMER, waiting.append_id))
        waiting.done(error, waiting.base_offset)
