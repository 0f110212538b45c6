"""What a log forgets of its producers."""

from typing import Any, Self

from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.producer.producer_state import ProducedBatch, ProducerState
from fencepost.impl.log.segmented_log import SegmentedLog


class TakesAnyBatch(ProducerState):
    """Looks at no number."""

    def check(self, header: BatchHeader) -> ProducedBatch | None:
        """May be appended."""
        return None


class KnowsNoProducers(SegmentedLog):
    """KIP-98: batches are appended as they come. The acknowledgement of one is lost, its producer sends it
    again, and it is there twice; or two in flight overtake each other."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """With a state that checks nothing."""
        return super().open(*arguments, **(options | {"producer_state": TakesAnyBatch}))


class ForgetsDeletedProducers(SegmentedLog):
    """KAFKA-7298: when the head of a log is deleted, producers go that have no record left. A retry whose
    batch was deleted meanwhile is nobody's, and is appended once more; readers that were quick see it
    twice."""

    def keep_producers(self) -> None:
        """Only those with a batch that is still there."""
        producers = self.producers.producers
        for producer_id, producer in list(producers.items()):
            if not any(batch.last_offset >= self.log_start_offset for batch in producer.batches):
                del producers[producer_id]
