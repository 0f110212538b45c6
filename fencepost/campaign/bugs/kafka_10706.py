"""KAFKA-10706: a truncation that cuts no record leaves the epoch cache as it is."""

from fencepost.impl.log.segmented_log import SegmentedLog


class KeepsEpochsOfNothing(SegmentedLog):
    """Forgets epochs only together with records."""

    def truncate_to(self, offset: int) -> None:
        """Do nothing unless there is something to cut."""
        if offset < self.log_end_offset:
            super().truncate_to(offset)
