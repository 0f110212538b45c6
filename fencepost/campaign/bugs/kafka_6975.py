"""KAFKA-6975: a follower that begins at a log start offset inside a batch cannot append that batch."""

from fencepost.impl.log.batch_header import BatchHeader
from fencepost.impl.log.segmented_log import SegmentedLog


class RefusesToBeginInsideABatch(SegmentedLog):
    """Takes a batch at its log end only."""

    def log_start_inside_batch(self, header: BatchHeader) -> bool:
        """It never is."""
        return False
