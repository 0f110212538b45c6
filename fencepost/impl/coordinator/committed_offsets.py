"""Committed offsets: commit, fetch, retention (P4).

Owns which commits are accepted, what a fetch returns, and when offsets expire. Must not know rebalances. A
commit is visible once it is below the high watermark, and never before. Of two commits the later one in the
log wins, whichever was answered first.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

import msgspec
from attrs import define

from fencepost.impl.coordinator.consumer_group import Group, StoredOffset
from fencepost.impl.coordinator.group_log import Done, GroupLog, nobody_waits
from fencepost.impl.coordinator.group_records import (
    NO_EXPIRY,
    GroupKey,
    OffsetKey,
    OffsetValue,
    encode_key,
    fits,
    offset_records,
)
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.coordinator.group_table import GroupTable
from fencepost.impl.coordinator.member_requests import GroupMembership
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.broker_api import NO_EPOCH
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import TxnOffsetCommitRequest
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

MAXIMUM_METADATA = 4096
"""offset.metadata.max.bytes: the longest metadata of a commit in characters."""
LARGEST_EPOCH = (1 << 31) - 1
EXPIRY_TIMER = ("group_expiry",)
COMMIT_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""The client's error for each error of an append."""


@define
class GroupOffsets:
    """Committed offsets of all groups of this broker."""

    table: GroupTable
    log: GroupLog
    membership: GroupMembership

    # ---- commit

    def commit(self, source: int, request: kafka.OffsetCommitRequest) -> None:
        """Write the offsets. The response is sent when they are below the high watermark.

        Args:
            source: the client.
            request: the offsets.
        """
        group, error = self._admit(request)
        if group is None or error is not NO_ERROR:
            self._committed(source, request, error, appended=False)
            return
        self.membership.heard(group, request.member_id)
        if not request.offsets:  # nothing to write or wait for
            self._committed(source, request, NO_ERROR, appended=False)
            return
        values, records = offset_records(group.group_id, request.offsets, self.table.now_ms)
        done = partial(self._stored, source, request, group, values)
        group.storing.update(each.partition for each in request.offsets)
        self.log.append(group.number, self.table.epoch_of(group), records, done)

    def _admit(self, request: kafka.OffsetCommitRequest) -> tuple[Group | None, ErrorCode]:
        """The group, and whether the commit may be written. The group is created if a consumer without a
        group membership commits first."""
        error = self.log.not_coordinator(self.table.number_of(request.group_id))
        if error is not NO_ERROR:
            return None, error
        error = self.storable(request)
        if error is not NO_ERROR:
            return None, error
        group = self.table.groups.get(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                return None, ErrorCode.ILLEGAL_GENERATION
            group = self.table.create(request.group_id)
        if group.phase is GroupPhase.DEAD:
            return group, ErrorCode.COORDINATOR_NOT_AVAILABLE
        if request.generation_id < 0 and group.phase is GroupPhase.EMPTY:
            return group, NO_ERROR
        error = group.identity_error(request.member_id, request.group_instance_id)
        if error is NO_ERROR:
            error = self.generation_fencing(group, request.generation_id)
        return group, error

    def storable(self, request: kafka.OffsetCommitRequest | TxnOffsetCommitRequest) -> ErrorCode:
        """Whether the offsets can be records at all."""
        if not fits(request.group_id):
            return ErrorCode.INVALID_GROUP_ID
        for each in request.offsets:
            if not each.partition.is_legal:
                return ErrorCode.INVALID_TOPIC_EXCEPTION
            if not NO_EPOCH <= each.leader_epoch <= LARGEST_EPOCH:
                return ErrorCode.INVALID_REQUEST
            if len(each.metadata) > MAXIMUM_METADATA:
                return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return NO_ERROR

    def generation_fencing(self, group: Group, generation: int) -> ErrorCode:
        """Protection P3: only a member of the group's current generation commits, and not while the next one
        waits for its assignment."""
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.phase is GroupPhase.COMPLETING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return NO_ERROR

    def _stored(
        self,
        source: int,
        request: kafka.OffsetCommitRequest,
        group: Group,
        values: list[OffsetValue],
        error: ErrorCode,
        base_offset: int,
    ) -> None:
        group.storing -= Counter(each.partition for each in request.offsets)
        if error is NO_ERROR and self.table.groups.get(group.group_id) is group:
            for nth, (each, value) in enumerate(zip(request.offsets, values, strict=True)):
                self.materialise(group, each.partition, StoredOffset(value, base_offset + nth))
        self._committed(source, request, COMMIT_ERRORS.get(error, error), appended=base_offset >= 0)

    def materialise(self, group: Group, key: TopicPartition, stored: StoredOffset) -> None:
        """Make a committed offset visible to fetches, unless a later record of the log already is.

        Args:
            group: the group.
            key: the partition.
            stored: the offset.
        """
        known = group.offsets.get(key)
        if known is None or known.stands_at < stored.stands_at:
            group.offsets[key] = stored

    def _committed(
        self, source: int, request: kafka.OffsetCommitRequest, error: ErrorCode, *, appended: bool
    ) -> None:
        response = kafka.OffsetCommitResponse(
            correlation_id=request.correlation_id,
            error=error,
            appended=appended,
            coordinator_epoch=self._epoch(request.group_id),
        )
        self.table.broker_context.reply(source, response, request.correlation_id)

    def _epoch(self, group_id: str) -> int:
        return self.table.place(self.table.number_of(group_id)).owned_epoch

    # ---- fetch

    def fetch(self, source: int, request: kafka.OffsetFetchRequest) -> None:
        """Answer with the committed offsets.

        Args:
            source: the client.
            request: the group and the partitions.
        """
        error = self.log.not_coordinator(self.table.number_of(request.group_id))
        offsets: tuple[kafka.CommittedOffset, ...] = ()
        if error is NO_ERROR:
            group = self.table.groups.get(request.group_id)
            known = {} if group is None else group.offsets
            asked = request.partitions or tuple(sorted(known))
            if request.require_stable and group is not None:
                error = self.stable_offsets_only(group, asked)
        if error is NO_ERROR:
            offsets = tuple(self._committed_offset(key, known.get(key)) for key in asked)
        response = kafka.OffsetFetchResponse(
            correlation_id=request.correlation_id,
            error=error,
            offsets=offsets,
            coordinator_epoch=self._epoch(request.group_id),
        )
        self.table.broker_context.reply(source, response, request.correlation_id)

    def stable_offsets_only(self, group: Group, asked: Sequence[TopicPartition]) -> ErrorCode:
        """Protection KIP-447: a consumer that goes on from committed offsets waits for the transactions that
        commit some; else the records between are processed twice.

        Args:
            group: whose offsets are fetched.
            asked: the partitions.

        Returns:
            UNSTABLE_OFFSET_COMMIT if a transaction is open on one of them.
        """
        unstable = any(group.is_unstable(key) for key in asked)
        return ErrorCode.UNSTABLE_OFFSET_COMMIT if unstable else NO_ERROR

    @staticmethod
    def _committed_offset(key: TopicPartition, stored: StoredOffset | None) -> kafka.CommittedOffset:
        if stored is None:
            return kafka.CommittedOffset(partition=key, offset=kafka.NO_OFFSET)
        value = stored.value
        return kafka.CommittedOffset(
            partition=key, offset=value.offset, leader_epoch=value.leader_epoch, metadata=value.metadata
        )

    # ---- retention

    def expire(self) -> None:
        """Remove expired offsets, and groups without offsets."""
        for _, group in sorted(self.table.groups.items()):
            if self.log.not_coordinator(group.number) is NO_ERROR:
                self._expire(group)
        self.start()

    def start(self) -> None:
        """Check again later."""
        self.table.broker_context.set_timer(
            EXPIRY_TIMER, self.table.broker_context.options.groups.offsets_retention_check_ms
        )

    def _expire(self, group: Group) -> None:
        keys = [key for key in self.expired(group) if key not in group.expiring]
        if keys:
            self.forget(group, keys, group.phase.value)
        elif group.phase is GroupPhase.DEAD:
            self.remove(group)  # the tombstone was not written at the last time
        elif group.phase is GroupPhase.EMPTY and not self.holds_offsets(group) and not group.pending:
            self.table.move(group, GroupPhase.DEAD, "nothing is left of it")
            self.remove(group)

    def holds_offsets(self, group: Group) -> bool:
        """Protection P5-PENDING: a commit that is being written is one of the group's offsets. The first one
        of a consumer that is no member is all that its group has.

        Args:
            group: an empty one.
        """
        return bool(group.offsets or group.open or group.storing)

    def remove(self, group: Group, done: Done = nobody_waits) -> None:
        """Remove a group. Clients cannot join a dead group. When its tombstones are durable it is removed,
        and its name is free."""
        records = [(encode_key(OffsetKey(group.group_id, key)), None) for key in self.deletable(group)]
        if group.generation:
            records.append((encode_key(GroupKey(group.group_id)), None))
        if records:
            removed = partial(self._removed, group, done)
            self.log.append(group.number, self.table.epoch_of(group), records, removed)
        else:
            del self.table.groups[group.group_id]
            done(NO_ERROR, -1)

    def deletable(self, group: Group) -> list[TopicPartition]:
        """Protection KAFKA-14505: what there is to delete. An offset that is being written, or is of a
        transaction without a marker so far, is in the log, too: without a tombstone the next coordinator
        loads it.

        Args:
            group: the group.

        Returns:
            the partitions with an offset that counts or may count later, sorted.
        """
        in_transactions = (key for offsets in group.open.values() for key in offsets)
        return sorted({*group.offsets, *group.storing, *in_transactions})

    def _removed(self, group: Group, done: Done, error: ErrorCode, base_offset: int) -> None:
        if error is NO_ERROR and self.table.groups.get(group.group_id) is group:
            del self.table.groups[group.group_id]
            key = TopicPartition(OFFSETS_TOPIC, group.number)
            if group.generation:
                self.table.broker_context.record(
                    Name.GROUP_REMOVED, key, leader_epoch=self.table.epoch_of(group), detail=group.group_id
                )
        done(error, base_offset)

    def forget(
        self, group: Group, keys: Sequence[TopicPartition], why: str, done: Done = nobody_waits
    ) -> None:
        """Write tombstones for these offsets, and remove the offsets once that is durable, unless they were
        committed again meanwhile.

        Args:
            group: the group.
            keys: the partitions.
            why: the group's state, or DELETED, for the event.
            done: called with the result.
        """
        group.expiring.update(dict.fromkeys(keys))
        for key in keys:
            self.tell(group, key, why)
        records = [(encode_key(OffsetKey(group.group_id, key)), None) for key in keys]
        forgotten = partial(self._forgotten, group, keys, done)
        self.log.append(group.number, self.table.epoch_of(group), records, forgotten)

    def expired(self, group: Group) -> list[TopicPartition]:
        """The offsets that have expired (KIP-211): of an empty group all, of a stable one those of topics
        that it does not consume."""
        if not self.no_expiry_while_rebalancing(group):
            return []
        topics = group.subscribed_topics() if group.phase is GroupPhase.STABLE else frozenset()
        if topics is None:
            return []
        since_ms = group.since_ms if group.phase is GroupPhase.EMPTY and group.protocol_type else NO_EXPIRY
        return [
            key
            for key, stored in sorted(group.offsets.items())
            if key.topic not in topics
            and not group.is_unstable(key)
            and not self.is_being_written(group, key)
            and self.table.now_ms >= self.expires_at_ms(stored.value, since_ms)
        ]

    def is_being_written(self, group: Group, key: TopicPartition) -> bool:
        """Protection P4-WRITTEN: an offset that is being committed again does not expire: its tombstone would
        stand behind the commit.

        Args:
            group: the group.
            key: the partition.
        """
        return key in group.storing

    def no_expiry_while_rebalancing(self, group: Group) -> bool:
        """Protection KAFKA-13636: nothing expires between two generations, because the subscriptions are not
        known then."""
        return group.phase in (GroupPhase.EMPTY, GroupPhase.STABLE)

    def expires_at_ms(self, value: OffsetValue, since_ms: int) -> int:
        """Protection KAFKA-8069: an offset without an expiry time of its own expires by the retention.
        since_ms: when its group became empty (-1: the time of the commit counts)."""
        if value.expires_at_ms != NO_EXPIRY:
            return value.expires_at_ms
        begins = since_ms if since_ms >= 0 else value.commit_timestamp_ms
        return begins + self.table.broker_context.options.groups.offsets_retention_ms

    def _forgotten(
        self, group: Group, keys: Sequence[TopicPartition], done: Done, error: ErrorCode, base_offset: int
    ) -> None:
        for nth, key in enumerate(keys):
            group.expiring.pop(key, None)
            if error is NO_ERROR:
                group.drop_offset(key, base_offset + nth)
        done(error, base_offset)

    def tell(self, group: Group, key: TopicPartition, why: str) -> None:
        """Record an event for an offset that is removed. why: the group's state, or DELETED."""
        detail = {"group": group.group_id, "topic": key.topic, "partition": key.partition}
        self.table.broker_context.record(
            Name.GROUP_OFFSET_EXPIRED,
            TopicPartition(OFFSETS_TOPIC, group.number),
            leader_epoch=self.table.epoch_of(group),
            cause=why,
            detail=msgspec.json.encode(detail).decode(),
        )
