"""Who a producer is, and what it numbers."""

from typing import Any

from fencepost.impl.broker.producer_ids import ProducerIds
from fencepost.impl.client.producer.accumulator import ProducerBatch
from fencepost.impl.client.producer.sequences import Sequences
from fencepost.impl.zookeeper.interface import Create, Data, SetData


class SendsAgainUnderANewEpoch(Sequences):
    """KIP-360 as Kafka has it: a producer whose batch the log refuses begins a new epoch and sends it again,
    although an earlier attempt may have been written. 1. A batch is written, its acknowledgement lost. 2. The
    log forgets all but the producer's last batch (a restart reads a snapshot), or a batch before it is given
    up. 3. The retry is out of order. 4. Under the new epoch it is written once more."""

    def may_be_written(self, batch: ProducerBatch) -> bool:
        """Nobody asks."""
        return False


class NumbersAgainOutOfOrder(Sequences):
    """KAFKA-8484: batches that get new numbers are taken from a queue as it happens to lie in memory, not in
    their order."""

    def in_order(self, batches: list[ProducerBatch]) -> list[ProducerBatch]:
        """The last one first."""
        return list(reversed(super().in_order(batches)))


class NumbersHalvesAlike(Sequences):
    """KIP-126: both halves of a batch that was too large keep its number, so that the second is taken for a
    retry of the first."""

    def number_half(self, first: ProducerBatch, later: ProducerBatch) -> None:
        """That of the first."""
        super().number_half(first, later)
        later.sequence = first.sequence


class ClaimsAnyBlock(ProducerIds):
    """R10: a block of ids is written over whatever is in ZooKeeper. Two brokers that read the same last
    block give the same ids: to a log, one producer's batches are retries of the other's."""

    def fenced_claim(self, mine: Any, current: Any) -> Create | SetData:
        """Unconditional."""
        written = super().fenced_claim(mine, current)
        return SetData(written.path, written.data) if isinstance(current, Data) else written
