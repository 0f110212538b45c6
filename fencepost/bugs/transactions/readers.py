"""Bugs of what readers of committed records are shown."""

from fencepost.impl.log.index.transaction_index import AbortedTransaction
from fencepost.impl.log.segmented_log import SegmentedLog


class ShowsOpenTransactions(SegmentedLog):
    """T5: readers of committed records get to the high watermark."""

    def last_stable_offset(self, high_watermark: int) -> int:
        """Whatever is open."""
        return high_watermark


class ForgetsAborted(SegmentedLog):
    """T6: the leader names no aborted transaction."""

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """None."""
        return []
