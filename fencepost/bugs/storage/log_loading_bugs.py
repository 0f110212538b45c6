"""Bugs of starting: what a log believes of the files that it finds."""

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.checkpoint.checkpoint_file import format_lines
from fencepost.impl.log.checkpoint.log_checkpoints import take_clean_shutdown_marker
from fencepost.impl.log.layout import CLEAN_SHUTDOWN, HIGH_WATERMARKS, LOG, SWAP, segment_path
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.producer.snapshot_files import remove_snapshots
from fencepost.impl.log.recovery import LogRecovery
from fencepost.impl.log.segment.segment import Segment
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.replication.manager import ReplicaManager


class MarkerGoesLast(LogDirectory):
    """KAFKA-10471: the clean-shutdown marker is removed when all logs are loaded, so that a crash while they
    are is taken for a clean stop."""

    def take_marker_first(self) -> None:
        """Look at it only."""
        self.clean = self.files.exists(CLEAN_SHUTDOWN)

    def loaded(self) -> None:
        """Take it now."""
        take_clean_shutdown_marker(self.files)


class SnapshotsGo(SegmentedLog):
    """KAFKA-5829: recovery deletes every producer snapshot, so that producers whose batches were deleted by
    retention are forgotten."""

    @classmethod
    def remove_snapshots_beyond(cls, files: FileSystem, directory: str, end_offset: int) -> None:
        """All of them."""
        if remove_snapshots(files, directory, above=-1):
            files.sync_directory(directory)


class RecoversWithoutSync(LogRecovery):
    """KAFKA-10101: what was read in recovery is below the recovery point, and nobody synced it."""

    def make_durable(self, segment: Segment) -> None:
        """Believe it."""


class KeepsWhatWasCompacted(LogRecovery):
    """KAFKA-2118: a start puts a compacted segment in place, and leaves the others that it was made of, whose
    offsets it has, too."""

    def put_in_place(self, base_offset: int) -> None:
        """Only rename it."""
        swap = segment_path(self.directory, base_offset, LOG, SWAP)
        self.files.rename(swap, segment_path(self.directory, base_offset, LOG))
        self.files.sync_directory(self.directory)


class WritesCheckpointsInPlace(ReplicaManager):
    """R9: the high watermarks are written over those that were there."""

    def replace_checkpoint(self, current: dict[TopicPartition, int]) -> None:
        """Make room, and then write."""
        written = self.broker_context.files.open(HIGH_WATERMARKS)
        written.truncate(0)
        lines = [f"{key.topic} {key.partition} {offset}" for key, offset in sorted(current.items())]
        written.append(format_lines(lines))
        written.sync()


class NoChecksums(LogRecovery):
    """Recovery reads the lengths of the batches and believes what lies between."""

    def recover_segment(self, segment: Segment) -> bool:
        """Compare nothing."""
        expected = None if self.options.has_gaps else segment.base_offset
        return segment.recover(expected, self._see, check_crc=False)


class TrustsThePageCache(LogRecovery):
    """Fsyncgate: what can be read is taken for written, though a failed fsync gave it up and left its pages
    clean."""

    def make_durable(self, segment: Segment) -> None:
        """Sync once more, which writes nothing."""
        segment.sync(indexes=True)


class TakesGapsForDamage(LogDirectory):
    """Z-GAPS: a log whose topic is not compacted by plan ends at its first gap when it is opened."""

    def may_have_gaps(self, key: TopicPartition) -> bool:
        """Never."""
        return False
