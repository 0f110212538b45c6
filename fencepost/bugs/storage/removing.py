"""Bugs of truncation, retention and compaction: what goes too early, and what never goes."""

from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.retention import Retention
from fencepost.impl.log.segmented_log import SegmentedLog


class DeletesWhatIsNotCommitted(Retention):
    """KAFKA-5634: retention removes segments above the high watermark, which a follower may still have to
    fetch."""

    def below_high_watermark(self, end_offset: int, high_watermark: int) -> bool:
        """Everything is."""
        return True


class KeepsWhatNobodyMayRead(Retention):
    """KAFKA-7400: on a topic that is only compacted, segments below the log start are never deleted."""

    def below_log_start(self, end_offset: int) -> bool:
        """Only where the policy says delete."""
        return self.log.options.delete and super().below_log_start(end_offset)


class CutsEpochsWithRecords(SegmentedLog):
    """KAFKA-10706: a truncation that cuts no record leaves the epoch cache alone; a deposed leader that wrote
    nothing asks for its own epoch again and again."""

    def truncate_to(self, offset: int) -> None:
        """Nothing to do at the end or beyond."""
        if offset < self.log_end_offset:
            super().truncate_to(offset)


class CompactsWhatIsNotCommitted(Cleaner):
    """KAFKA-13194: the cleaner goes up to the active segment; an uncommitted record displaces a committed one
    and is then cut."""

    def clean_below(self, high_watermark: int) -> int:
        """Whatever is not active."""
        return self.log.segments.active.base_offset


class TombstonesGoAtOnce(Cleaner):
    """KAFKA-4529: the age of a tombstone is asked of the wrong segment, and it goes before
    delete.retention.ms; who reads along never learns that the key is gone."""

    def tombstone_may_go(self, header: BatchHeader) -> bool:
        """At the first pass."""
        return True


class ForgetsProducers(Cleaner):
    """KAFKA-5490: the last batch of a producer goes with its last record; after a restart its retry is
    appended once more."""

    def last_of_producer(self, header: BatchHeader) -> bool:
        """Whoever has no record is nobody."""
        return False


class EndsWithTheLastRecord(Cleaner):
    """KAFKA-17076: the last batch of a pass goes with its last record. A replica that copies the log ends
    below the high watermark, and no record that it could fetch brings it there."""

    def last_of_pass(self, header: BatchHeader) -> bool:
        """Whatever has no record may go."""
        return False
