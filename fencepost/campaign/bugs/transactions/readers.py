"""Bugs of logs: what readers of committed records are shown, and which markers are taken."""

from typing import Any, Self

from fencepost.impl.log.index.transaction_index import AbortedTransaction
from fencepost.impl.log.producer.state import Producer, ProducerState
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


class ForgetsCoordinators(ProducerState):
    """Looks at no coordinator epoch."""

    def coordinator_fencing(self, known: Producer, coordinator_epoch: int, where: str) -> None:
        """A marker is a marker."""


class TakesMarkersOfOldCoordinators(SegmentedLog):
    """T16: a marker of a coordinator that was replaced ends the transaction that is open now."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """With a state that checks no coordinator."""
        return super().open(*arguments, **(options | {"producer_state": ForgetsCoordinators}))
