"""The purgatory: requests that wait for something, with a deadline (R4).

Owns who waits for which partition. Must not know what they wait for: the leader asks for those of a partition
and decides.
"""

from collections.abc import Iterable

from attrs import define, field

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.core_interface import CancelTimer, SetTimer
from fencepost.impl.messages.broker_api import FetchRequest, TopicPartition

TIMER = "purgatory"


@define
class DelayedProduce:
    """An acks=all append that waits until the high watermark reaches `required_offset`. leader_epoch: in
    which it waits; batch_epoch: in which the batch was written, earlier if it is a duplicate."""

    waiter_id: int
    source: int
    correlation_id: int
    partition: TopicPartition
    base_offset: int
    required_offset: int
    leader_epoch: int
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
    """waiters: by id, in order of arrival; by_partition: ids per partition. A waiter leaves when it is
    answered or its timer fires."""

    broker_context: BrokerContext
    waiters: dict[int, Delayed] = field(factory=dict)
    by_partition: dict[TopicPartition, dict[int, None]] = field(factory=dict)
    _last_id: int = 0

    def next_id(self) -> int:
        """An id for a new waiter."""
        self._last_id += 1
        return self._last_id

    def park(self, delayed: Delayed, partitions: Iterable[TopicPartition], wait: int) -> None:
        """Let it wait for at most `wait` nanoseconds."""
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
        """Those that wait for this partition, in order of arrival."""
        return [self.waiters[waiter_id] for waiter_id in self.by_partition.get(key, ())]

    def remove(self, delayed: Delayed) -> None:
        """It was answered."""
        self._forget(delayed.waiter_id)
        self.broker_context.outbox.append(CancelTimer((TIMER, delayed.waiter_id)))

    def expire(self, waiter_id: int) -> Delayed | None:
        """Its time is up; None if it was answered meanwhile."""
        return self._forget(waiter_id)

    def _forget(self, waiter_id: int) -> Delayed | None:
        delayed = self.waiters.pop(waiter_id, None)
        if delayed is None:
            return None
        if isinstance(delayed, DelayedProduce):
            del self.by_partition[delayed.partition][waiter_id]
        else:
            for wanted in delayed.request.partitions:
                self.by_partition[wanted.partition].pop(waiter_id, None)  # it may be asked for twice
        return delayed
