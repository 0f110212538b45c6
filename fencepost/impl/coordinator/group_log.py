"""Appends to __consumer_offsets, which are confirmed when every in-sync replica has them, as with acks=all.

Owns the appends that wait for the high watermark of an offsets partition, and the check whether this broker
is the coordinator. Must not know the content of the records, or the requests. Each append has exactly one
result: no error, an error before anything was written (base offset -1), or an error after it, when the
records may or may not be committed later.
"""

from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from fencepost.impl.coordinator.group import Group
from fencepost.impl.coordinator.records import OFFSETS_TOPIC, GroupKey, encode_group, encode_key
from fencepost.impl.coordinator.table import GroupTable
from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.values import NO_VALUE
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import Partition
from fencepost.traces.events import Name
from fencepost.traces.outcomes import NO_ERROR, ErrorCode

APPEND_TIMER = "group_append"

Done = Callable[[ErrorCode, int], None]
"""Called with the error and the base offset (-1: nothing was written)."""
KeyAndValue = tuple[bytes, bytes | None]


@frozen
class Pending:
    """An append that waits until the high watermark reaches `required_offset` in the same leader epoch."""

    # The id of the append.
    append_id: int
    # The offsets partition.
    partition: TopicPartition
    # The first offset of the batch.
    base_offset: int
    # The high watermark that completes it.
    required_offset: int
    # The epoch in which it was appended.
    leader_epoch: int
    # Called with the result.
    done: Done


@define
class GroupLog:
    """pending: by id, in the order of appending."""

    table: GroupTable
    leader: LeaderRole
    pending: dict[int, Pending] = field(factory=dict)
    _last_id: int = 0

    @property
    def broker_context(self) -> BrokerContext:
        """The context of the broker."""
        return self.table.broker_context

    def not_coordinator(self, number: int) -> ErrorCode:
        """Protection KAFKA-4362: a broker answers for a group only while it leads the group's offsets
        partition, in the epoch in which it loaded the group."""
        partition = self.table.partitions.get(TopicPartition(OFFSETS_TOPIC, number))
        if not self.table.count or partition is None or not partition.is_leader:
            return ErrorCode.NOT_COORDINATOR
        if self.table.place(number).owned_epoch != partition.leader_epoch:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return NO_ERROR

    def append(self, number: int, epoch: int, records: Sequence[KeyAndValue], done: Done) -> None:
        """Append these records as one batch, if this broker leads the partition in this epoch. `done` may be
        called at once."""
        key = TopicPartition(OFFSETS_TOPIC, number)
        partition = self.table.partitions.get(key)
        if partition is None or not partition.is_leader or partition.leader_epoch != epoch:
            self.not_leading(done)
            return
        if not self._in_sync(partition):
            done(ErrorCode.NOT_ENOUGH_REPLICAS, -1)
            return
        now_ms = self.broker_context.now // MILLISECOND
        batch = encode_batch(
            [Record(nth, now_ms, name, value) for nth, (name, value) in enumerate(records)],
            base_offset=0,
            leader_epoch=-1,
        )
        if len(batch) > partition.log.options.max_message_bytes:
            done(ErrorCode.MESSAGE_TOO_LARGE, -1)
            return
        appended = partition.log.append_as_leader(batch, epoch, now_ms=now_ms)
        self.broker_context.record(
            Name.APPENDED,
            key,
            offset=appended.base_offset,
            leader_epoch=epoch,
            values=(NO_VALUE,) * len(records),
            cause="leader",
        )
        self._last_id += 1
        end = partition.log.log_end_offset
        self.pending[self._last_id] = Pending(self._last_id, key, appended.base_offset, end, epoch, done)
        self.broker_context.set_timer(
            (APPEND_TIMER, self._last_id), self.broker_context.options.groups.offsets_commit_timeout_ms
        )
        self.leader.high_watermark.advance(partition)
        self.leader.complete(partition)

    def not_leading(self, done: Done) -> None:
        """This broker does not lead the partition."""
        done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    def store(self, group: Group, epoch: int, assignments: dict[str, bytes], done: Done) -> None:
        """Append a generation with its assignment.

        Args:
            group: the group.
            epoch: the epoch in which this broker coordinates it.
            assignments: the assignment of each member.
            done: called with the result.
        """
        record = (encode_key(GroupKey(group.group_id)), encode_group(group.as_value(assignments)))
        self.append(group.number, epoch, (record,), done)

    # ---- waiting appends

    def moved(self, partition: Partition) -> None:
        """The partition's high watermark or role may have changed."""
        for waiting in [each for each in self.pending.values() if each.partition == partition.key]:
            if waiting.append_id not in self.pending:
                continue  # the result of an earlier append completed it
            if not partition.is_leader or partition.leader_epoch != waiting.leader_epoch:
                self._end(waiting, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.high_watermark >= waiting.required_offset:
                self._end(waiting, self._enough(partition))

    def _enough(self, partition: Partition) -> ErrorCode:
        return NO_ERROR if self._in_sync(partition) else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def _in_sync(self, partition: Partition) -> bool:
        return partition.enough_in_sync(self.broker_context.topic_options(OFFSETS_TOPIC).min_insync_replicas)

    def expire(self, append_id: int) -> None:
        """The time of an append is up; it may still be committed later."""
        waiting = self.pending.get(append_id)
        if waiting is not None:
            self._end(waiting, ErrorCode.REQUEST_TIMED_OUT)

    def _end(self, waiting: Pending, error: ErrorCode) -> None:
        del self.pending[waiting.append_id]
        self.broker_context.cancel_timer((APPEND_TIMER, waiting.append_id))
        waiting.done(error, waiting.base_offset)


def nobody_waits(error: ErrorCode, base_offset: int) -> None:
    """The callback of a clean-up append: if it fails, the next coordinator repeats it.

    Args:
        error: not used.
        base_offset: not used.
    """
