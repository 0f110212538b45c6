"""Writing groups into __consumer_offsets.

Owns the answer to "is it me?". Must not know what the records say, nor who asked.
"""

from collections.abc import Sequence
from typing import ClassVar

from attrs import define, field

from fencepost.impl.coordinator.consumer_group import Group
from fencepost.impl.coordinator.durable import Done, DurableAppends, KeyAndValue
from fencepost.impl.coordinator.group_records import GroupKey, encode_group, encode_key
from fencepost.impl.coordinator.group_table import GroupTable
from fencepost.impl.log.batch.header import NO_PRODUCER_ID
from fencepost.impl.log.producer.producer_state import NO_EPOCH
from fencepost.traces.kafka_names.outcomes import ErrorCode

__all__ = ["APPEND_TIMER", "Done", "GroupLog", "KeyAndValue", "nobody_waits"]

APPEND_TIMER = "group_append"


@define
class GroupLog(DurableAppends):
    """Of all groups of this broker."""

    TIMER: ClassVar[str] = APPEND_TIMER
    table: GroupTable = field(kw_only=True)

    def not_coordinator(self, number: int) -> ErrorCode:
        """Protection KAFKA-4362: a broker answers for a group only while it leads the group's offsets
        partition, in the epoch in which it loaded the group."""
        return self.table.not_coordinator(number)

    def append(
        self,
        number: int,
        epoch: int,
        records: Sequence[KeyAndValue],
        done: Done,
        *,
        producer: tuple[int, int] = (NO_PRODUCER_ID, NO_EPOCH),
    ) -> int:
        """Append these records as one batch, if this broker leads the offsets partition in this epoch.
        producer: id and epoch, if they are part of a transaction. Returns the base offset, -1 if nothing was
        written."""
        timeout_ms = self.table.options.offsets_commit_timeout_ms
        return self.write(self.table.key(number), epoch, records, done, timeout_ms, producer=producer)

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


def nobody_waits(error: ErrorCode, base_offset: int) -> None:
    """The callback of a clean-up append: if it fails, the next coordinator repeats it.

    Args:
        error: not used.
        base_offset: not used.
    """
