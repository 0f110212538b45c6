"""The purgatory: requests that wait for something, with a deadline (R4).

Owns which request waits for which partition. Must not know what they wait for: the leader looks at those of a
partition and decides.
"""

from collections.abc import Iterable

from attrs import define, field

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.core_interface import CancelTimer, SetTimer
from fencepost.impl.messages.broker_api import FetchRequest, TopicPartition

TIMER = "purgatory"


@define
class DelayedProduce:
    """An acks=all append that waits until the high watermark reaches `required_offset`."""

    # The id in the purgatory.
    waiter_id: int
    # The sender.
    source: int
    # That of the request.
    correlation_id: int
    # The partition.
    partition: TopicPartition
    # The first offset of the batch.
    base_offset: int
    # The high watermark that completes it.
    required_offset: int
    # The epoch in which it waits.
    leader_epoch: int
    # The epoch in which the batch was written; lower than `leader_epoch` for some duplicates.
    batch_epoch: int


@define
class DelayedFetch:
    """A fetch that found nothing and waits for more."""

    waiter_id: int
    source: int
    request: FetchRequest


Delayed = DelayedProduce | DelayedFetch


@define
class Purgatory:
    """waiters: by id, in the order of arrival; by_partition: ids per partition. A request is removed when it
    is answered or its timer fires."""

    broker_context: BrokerContext
    waiters: dict[int, Delayed] = field(factory=dict)
    by_partition: dict[TopicPartition, dict[int, None]] = field(factory=dict)
    _last_id: int = 0

    def next_id(self) -> int:
        """An id for a new waiting request."""
        self._last_id += 1
        return self._last_id

    def park(self, delayed: Delayed, partitions: Iterable[TopicPartition], wait: int) -> None:
        """Add a request, for at most `wait` nanoseconds."""
        self.waiters[delayed.waiter_id] = delayed
        for key in partitions:
            waiting = self.by_partition.get(key)
            if waiting is None:
                waiting = self.by_partition[key] = {}
            waiting[delayed.waiter_id] = None
        self.broker_context.outbox.append(
            SetTimer((TIMER, delayed.waiter_id), self.broker_context.now + wait)
        )

    def waiting_for(self, key: TopicPartition) -> list[Delayed]:
        """The requests that wait for this partition, in the order of arrival."""
        return [self.waiters[waiter_id] for waiter_id in self.by_partition.get(key, ())]

    def remove(self, delayed: Delayed) -> None:
        """Remove a request that was answered."""
        self._forget(delayed.waiter_id)
        self.broker_context.outbox.append(CancelTimer((TIMER, delayed.waiter_id)))

    def expire(self, waiter_id: int) -> Delayed | None:
        """Remove a request when its time is up; None if it was answered meanwhile."""
        return self._forget(waiter_id)

    def _forget(self, waiter_id: int) -> Delayed | None:
        delayed = self.waiters.pop(waiter_id, None)
        if delayed is None:
            return None
        if isinstance(delayed, DelayedProduce):
            del self.by_partition[delayed.partition][waiter_id]
        else:
            for wanted in delayed.request.partitions:
                # a request may name a partition twice
                self.by_partition[wanted.partition].pop(waiter_id, None)
        return delayed
