"""DeleteGroups and OffsetDelete: an administrator deletes a group, or some of its offsets (KIP-229, KIP-496).

Owns what may be deleted (Kafka's GroupCoordinator.handleDeleteGroups and handleDeleteOffsets). Must not know
how it is written: committed_offsets.py does that. Kafka answers as soon as the tombstones are appended. Here
the response is sent when they are durable, so that a confirmed deletion stays.
"""

from collections.abc import Sequence
from functools import partial

from attrs import define

from fencepost.impl.coordinator.committed_offsets import COMMIT_ERRORS, GroupOffsets
from fencepost.impl.coordinator.consumer_group import Group
from fencepost.impl.coordinator.group_log import GroupLog
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.coordinator.group_table import GroupTable
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.consumer_protocol import PROTOCOL_TYPE
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import OFFSET_DELETED
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

Results = dict[TopicPartition, ErrorCode]


@define
class GroupDeletion:
    """Deletion for all groups of this broker."""

    table: GroupTable
    log: GroupLog
    offsets: GroupOffsets
    metadata: MetadataCache

    def _known(self, group_id: str) -> tuple[Group | None, ErrorCode]:
        error = self.log.not_coordinator(self.table.number_of(group_id))
        if error is not NO_ERROR:
            return None, error
        group = self.table.groups.get(group_id)
        if group is None or group.phase is GroupPhase.DEAD:
            return None, ErrorCode.GROUP_ID_NOT_FOUND
        return group, NO_ERROR

    # ---- groups

    def delete_group(self, source: int, request: kafka.DeleteGroupRequest) -> None:
        """Delete an empty group with its offsets. The response is sent when that is durable.

        Args:
            source: the client.
            request: the group.
        """
        group, error = self._known(request.group_id)
        if group is not None and group.phase is not GroupPhase.EMPTY:
            error = ErrorCode.NON_EMPTY_GROUP
        done = partial(self._group_deleted, source, request)
        if group is None or error is not NO_ERROR:
            done(error, -1)
            return
        self.table.move(group, GroupPhase.DEAD, "it is deleted, as somebody asked")
        for key in self.offsets.deletable(group):
            self.offsets.tell(group, key, OFFSET_DELETED)
        self.offsets.remove(group, done)

    def _group_deleted(
        self, source: int, request: kafka.DeleteGroupRequest, error: ErrorCode, _: int
    ) -> None:
        response = kafka.DeleteGroupResponse(
            correlation_id=request.correlation_id, error=COMMIT_ERRORS.get(error, error)
        )
        self.table.broker_context.reply(source, response, request.correlation_id)

    # ---- offsets

    def delete_offsets(self, source: int, request: kafka.OffsetDeleteRequest) -> None:
        """Delete offsets of partitions that no member of the group consumes. The response is sent when that
        is durable.

        Args:
            source: the client.
            request: the group and the partitions.
        """
        answer = partial(self._offsets_deleted, source, request)
        if not request.group_id:
            answer({}, ErrorCode.INVALID_GROUP_ID, -1)
            return
        group, error = self._known(request.group_id)
        if group is None:
            answer({}, error, -1)
            return
        results, keys = self._deletable(group, request.partitions)
        if group.phase is not GroupPhase.EMPTY and group.protocol_type != PROTOCOL_TYPE:
            answer({}, ErrorCode.NON_EMPTY_GROUP, -1)
        elif keys:
            self.offsets.forget(group, keys, OFFSET_DELETED, partial(answer, results))
        else:
            answer(results, NO_ERROR, -1)

    def _deletable(
        self, group: Group, partitions: Sequence[TopicPartition]
    ) -> tuple[Results, list[TopicPartition]]:
        """The result for each partition, and those with an offset to delete. If members are about to join,
        their subscriptions are not known, and nothing is deleted."""
        consumed = frozenset() if group.phase is GroupPhase.EMPTY else group.subscribed_topics()
        results: Results = {}
        for key in partitions:
            if key not in self.metadata.leaders:
                results[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif consumed is None or key.topic in consumed:
                results[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                results[key] = NO_ERROR
        return results, [key for key in self.offsets.deletable(group) if results.get(key) is NO_ERROR]

    def _offsets_deleted(
        self, source: int, request: kafka.OffsetDeleteRequest, results: Results, error: ErrorCode, _: int
    ) -> None:
        response = kafka.OffsetDeleteResponse(
            correlation_id=request.correlation_id,
            error=COMMIT_ERRORS.get(error, error),
            results=tuple(results.items()) if error is NO_ERROR else (),
        )
        self.table.broker_context.reply(source, response, request.correlation_id)
