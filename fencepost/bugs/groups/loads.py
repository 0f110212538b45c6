"""Bugs of becoming and ceasing to be a coordinator."""

from collections.abc import Sequence

from fencepost.impl.coordinator.consumer_group import Group
from fencepost.impl.coordinator.group_loading import GroupLoading
from fencepost.impl.coordinator.group_log import Done, GroupLog
from fencepost.impl.coordinator.group_table import NOT_OWNED, GroupLoad, Place
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.traces.kafka_names.outcomes import ErrorCode


class RunsTasksInAnyOrder(GroupLoading):
    """KAFKA-10614: a load or an unload runs whenever its turn comes, though one of a later leader epoch has
    run."""

    def coordinator_epoch_order(self, place: Place, order: int) -> bool:
        """Always."""
        return True


class AppliesTheLastBatch(GroupLoading):
    """KAFKA-5600: of a read that holds several batches only the last one is applied."""

    def apply_whole_load(self, load: GroupLoad, data: bytes, headers: Sequence[BatchHeader]) -> None:
        """The loop ends before the work begins."""
        for header in headers[-1:]:
            self.apply_batch(load, data, header)


class LoadsMembersOnly(GroupLoading):
    """P5-LOADED: a load keeps the offsets of groups that had members, and no others."""

    def group_of_offsets(self, group_id: str) -> Group | None:
        """Only one with a record of its own."""
        return self.table.groups.get(group_id)


class AnswersForWhatItLeft(GroupLog):
    """KAFKA-4362: a coordinator whose offsets partition has moved goes on from memory until it forgets the
    groups."""

    def not_coordinator(self, number: int) -> ErrorCode:
        """It is, as long as it has them."""
        owned = self.table.place(number).owned_epoch != NOT_OWNED
        return ErrorCode.NONE if owned else super().not_coordinator(number)

    def not_leading(self, done: Done) -> None:
        """Nothing to write into is no error."""
        done(ErrorCode.NONE, self.leader.broker_context.now)
