"""Bugs of committed offsets: whose commits count, and when they go."""

from fencepost.impl.client.consumer.coordinator_requests import ConsumerCoordinator
from fencepost.impl.coordinator.committed_offsets import GroupOffsets
from fencepost.impl.coordinator.consumer_group import Group
from fencepost.impl.coordinator.group_records import OffsetValue
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode


class ExpiresWhileRebalancing(GroupOffsets):
    """KAFKA-13636: between two generations a group consumes nothing, so that its offsets expire by the age of
    their commits."""

    def no_expiry_while_rebalancing(self, group: Group) -> bool:
        """In any phase."""
        return group.phase is not GroupPhase.DEAD


class ExpiresAtOnce(GroupOffsets):
    """KAFKA-8069: an offset that names no end of its own is taken for one whose end has come."""

    def expires_at_ms(self, value: OffsetValue, since_ms: int) -> int:
        """Whatever it says, -1 for nothing included."""
        return value.expires_at_ms


class TakesAnyGeneration(GroupOffsets):
    """P3: a member commits although the group has gone on to another generation."""

    def generation_fencing(self, group: Group, generation: int) -> ErrorCode:
        """It is a member."""
        return ErrorCode.NONE


class ForgetsPendingCommits(GroupOffsets):
    """P5-PENDING: a group without members whose first commit is still being written is removed, because it
    has no offset yet. The commit is acknowledged, and cannot be read back before the next coordinator loads
    it."""

    def holds_offsets(self, group: Group) -> bool:
        """Those that count."""
        return bool(group.offsets or group.open)


class RetriesAsyncCommits(ConsumerCoordinator):
    """P5: a commitAsync that failed is sent again after a while, whatever was committed meanwhile."""

    def commit_async_not_retried(self, kind: str) -> bool:
        """It is."""
        return False


class ExpiresWhatIsWritten(GroupOffsets):
    """P4-WRITTEN: an offset expires while the next one is being written. The tombstone stands behind that one
    in the log, and the next coordinator knows neither."""

    def is_being_written(self, group: Group, key: TopicPartition) -> bool:
        """Only what is written counts."""
        return False
