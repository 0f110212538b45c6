"""The documented histories of lost and diverging records (docs/spec/bugs.md), step by step, each with its
protection and without it.

A history returns the lab after its last step. Its first test holds with the protections; the second plants
the bug and sees the bad thing happen, so that the first one can fail.
"""

from collections.abc import Callable

import pytest
from impl_lab import Lab
from impl_moves import TWO, ask_anew, replicate, take_over, two

from fencepost.bugs.replication.kafka_7128 import JoinsAtTheHighWatermark
from fencepost.bugs.replication.kafka_7415 import EntersItsEpochWithItsFirstRecord
from fencepost.bugs.replication.kafka_7786 import AppliesLateAnswers
from fencepost.bugs.replication.kip_101 import TruncateToHighWatermark
from fencepost.bugs.replication.kip_279 import TrustsTheEndOffset
from fencepost.bugs.replication.kip_320 import ServesAnyEpoch
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import EpochEnd, LeaderAndIsrRequest, PartitionState
from fencepost.impl.replication.manager import ReplicaManager
from fencepost.impl.replication.partition import Partition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode

# ---- KIP-101


def kip_101_first(parts: Parts) -> Lab:
    """A follower restarts while its high watermark lags, and is elected before it has fetched again."""
    lab = two(2, 11, 12, parts=parts)
    assert (lab.high_watermark(2), lab.high_watermark(1)) == (2, 1)  # m2 is committed
    lab.restart(1)
    take_over(lab, 2, 1, to=(1, 2))
    lab.crash(2)
    take_over(lab, 1, 2, to=(1,), isr=(1,))
    return lab


def test_kip_101_a_restarted_follower_keeps_what_may_be_committed() -> None:
    """Rule (KIP-101, COMMIT-SAFE): a follower does not cut at its own high watermark, which lags behind its
    leader's by a fetch."""
    assert kip_101_first(Parts()).values(1) == [11, 12]


def kip_101_second(parts: Parts) -> Lab:
    """Both brokers fail and one loses its unflushed tail; it is elected and writes other records there; the
    other one returns."""
    lab = two(2, 11, 12, parts=parts)
    lab.advance(5_000, nodes=(2,))  # its high watermark, 2, is on its disk
    lab.crash(2)
    lab.partition(1).log.truncate_to(1)  # what the power loss took
    lab.restart(1)
    lab.lead(1, 1, isr=(1,), replicas=(1, 2), live=(1,), to=(1,))
    lab.produce(1, 21)
    lab.start(2)
    take_over(lab, 1, 2, to=(1, 2), isr=(1,))
    return lab.settle()


def test_kip_101_a_fork_below_the_high_watermark_is_cut() -> None:
    """Rule (KIP-101, LOG-MATCH): where two logs part, the epochs of their records tell, whatever the high
    watermarks say."""
    lab = kip_101_second(Parts())
    assert lab.values(1) == lab.values(2) == [11, 21]


# ---- KIP-279


def kip_279(parts: Parts) -> Lab:
    """Three quick elections, one unreplicated record each; the follower's latest epoch is one that its leader
    never had."""
    lab = two(1, 11, parts=parts)
    take_over(lab, 2, 1, to=(2,))
    lab.produce(2, 21)
    take_over(lab, 1, 2, to=(1,))
    lab.produce(1, 31)
    take_over(lab, 2, 3, to=(1, 2))
    assert (lab.epochs(1), lab.epochs(2)) == ([(0, 0), (2, 1)], [(0, 0), (1, 1), (3, 2)])
    return lab.settle()


def test_kip_279_the_follower_asks_until_the_epochs_agree() -> None:
    """Rule (KIP-279, LOG-MATCH): an answer about an epoch that the follower never had means: cut below it and
    ask again."""
    lab = kip_279(Parts())
    assert lab.values(1) == lab.values(2) == [11, 21]
    assert [event.offset for event in lab.recorded(Name.TRUNCATED, 1)] == [1]


# ---- KAFKA-7415


def kafka_7415(parts: Parts) -> Lab:
    """A leader of epoch 2 that has written nothing is asked about epoch 1 by a follower whose high watermark
    lags."""
    lab = two(1, 11, 12, parts=parts)
    assert lab.high_watermark(1) == 2
    take_over(lab, 2, 1, to=(2,))
    lab.produce(2, 21)
    take_over(lab, 1, 2, to=(1, 2))
    ask_anew(lab, 2)
    lab.deliver(2, 1, kafka.OffsetsForLeaderEpochRequest)
    lab.deliver(1, 2, kafka.OffsetsForLeaderEpochResponse)
    return lab


def test_kafka_7415_a_leader_knows_its_epoch_before_it_writes() -> None:
    """Rule (KAFKA-7415): a new leader's epoch is in its cache at once, so that questions about epochs in
    between have an answer."""
    lab = kafka_7415(Parts())
    assert lab.values(2) == [11, 12]


# ---- KIP-320


def kip_320(parts: Parts) -> Lab:
    """KAFKA-6880's run, a record for ten: b1 and b2 at 5, b3 at 4, high watermark 4; b2 hears of no election
    any more, but fetches on."""
    lab = Lab(parts=parts).led(1, 0).settle()
    lab.replicate(1, 1, 2, 3, 4)
    replicate(lab, 1, 2, 5)
    lab.drop(target=3)
    assert [lab.partition(node).log.log_end_offset for node in (1, 2, 3)] == [5, 5, 4]
    assert lab.high_watermark(1) == 4
    lab.lead(3, 1, isr=(1, 3), live=(1, 3), to=(1, 3))
    lab.settle(1, 3)  # b1 cuts to 4
    for value in (21, 22):
        lab.produce(3, value)
        lab.settle(1, 3)
    lab.lead(1, 2, isr=(1, 3), live=(1, 3), to=(1, 3))
    lab.advance(4_000, settle=True, nodes=(2,))  # b2 fetches from offset 5 on, and knows epoch 0 only
    return lab


def test_kip_320_a_fetch_of_an_older_epoch_is_fenced() -> None:
    """Rule (KIP-320): a follower that missed an election appends nothing of the new leader's, until it has
    heard and cut its log."""
    lab = kip_320(Parts())
    assert lab.values(1) == [1, 2, 3, 4, 21, 22]
    assert lab.values(2) == [1, 2, 3, 4, 5]
    assert lab.recorded(Name.FETCH_REFUSED, 1)[-1].detail == "FENCED_LEADER_EPOCH"
    lab.led(1, 3, isr=(1, 3)).advance(4_000, settle=True)
    assert lab.values(2) == lab.values(1)


# ---- KAFKA-7128


def kafka_7128(parts: Parts) -> Lab:
    """The old leader's high watermark is 4, the new one's still 2; a follower outside the ISR is at 3."""
    lab = Lab(parts=parts).led(1, 0, isr=(1, 2), live=(1, 2)).settle()
    lab.replicate(1, 1, 2)
    replicate(lab, 1, 2, 3)
    lab.settle(1, 3)
    lab.drop(source=3)
    replicate(lab, 1, 2, 4)
    assert [lab.partition(node).log.log_end_offset for node in (1, 2, 3)] == [4, 4, 3]
    assert (lab.high_watermark(1), lab.high_watermark(2)) == (4, 3)
    lab.drop()
    lab.lead(2, 1, isr=(1, 2))
    lab.deliver(3, 2, kafka.OffsetsForLeaderEpochRequest)
    lab.deliver(2, 3, kafka.OffsetsForLeaderEpochResponse)
    lab.deliver(3, 2, kafka.FetchRequest)
    return lab


def test_kafka_7128_a_follower_joins_only_at_the_start_of_the_epoch() -> None:
    """Rule (KAFKA-7128): reaching a new leader's lagging high watermark is not enough to join its ISR; the
    start of its epoch is."""
    lab = kafka_7128(Parts())
    assert lab.state().isr == (1, 2)
    lab.settle()
    assert lab.state().isr == (1, 2, 3)


def test_kafka_7128_without_the_protection_a_replica_without_committed_records_joins() -> None:
    """Rule: the history above can fail."""
    lab = kafka_7128(Parts(in_sync_replicas=JoinsAtTheHighWatermark))
    assert lab.state().isr == (1, 2, 3) and len(lab.values(3)) == 3 < 4


# ---- KAFKA-1188


class ObeysAnyLeaderEpoch(ReplicaManager):
    """KAFKA-1188 planted."""

    def leader_epoch_fencing(self, partition: Partition, state: PartitionState) -> bool:
        return True


def kafka_1188(parts: Parts) -> Lab:
    """LeaderAndIsr of epoch 1 is delivered after that of epoch 2, by the same controller."""
    lab = Lab(parts=parts)
    late = lab.lead(1, 1, to=(2,))
    lab.lead(2, 2)
    lab.control(LeaderAndIsrRequest, 1, late.partitions, correlation_id=1_000)
    return lab


def test_kafka_1188_an_older_leader_epoch_changes_nothing() -> None:
    """Rule (KAFKA-1188, EPOCH-MONO): a broker never goes back to an older leader epoch, nor takes the same
    one again."""
    lab = kafka_1188(Parts())
    assert (lab.partition(1).leader, lab.partition(1).leader_epoch) == (2, 2)
    before = lab.epochs(2)
    lab.control(LeaderAndIsrRequest, 2, lab.lead(2, 2, to=(1,)).partitions)
    assert lab.epochs(2) == before and len(lab.recorded(Name.BECAME_LEADER, 2)) == 1


def test_kafka_1188_without_the_protection_two_brokers_lead() -> None:
    """Rule: the history above can fail."""
    lab = kafka_1188(Parts(replica_manager=ObeysAnyLeaderEpoch))
    assert lab.partition(1).is_leader and lab.partition(2).is_leader


# ---- KAFKA-7786


def kafka_7786(parts: Parts) -> Lab:
    """Two elections of the same leader while a question is in flight: the answer of the first comes after the
    second, about another log."""
    lab = two(1, 11, 12, parts=parts)
    lab.drop()
    lab.lead(1, 1, to=(1, 2), **TWO)
    ask_anew(lab, 2)
    lab.lead(1, 2, to=(2,), **TWO)
    request = lab.deliver(2, 1, kafka.OffsetsForLeaderEpochRequest)
    lab.drop(source=1)
    answer = EpochEnd(partition=request.queries[0].partition, error=ErrorCode.NONE, epoch=0, end_offset=0)
    response = kafka.OffsetsForLeaderEpochResponse(correlation_id=request.correlation_id, ends=(answer,))
    lab.step(2, MessageArrived(1, response))
    return lab


def test_kafka_7786_an_answer_of_an_earlier_epoch_is_dropped() -> None:
    """Rule (KAFKA-7786): an answer counts only in the leader epoch in which it was asked; the question is
    asked again."""
    lab = kafka_7786(Parts())
    assert lab.values(2) == [11, 12]
    question = lab.drop(2, 1, kafka.OffsetsForLeaderEpochRequest)[-1]
    assert question.queries[0].current_leader_epoch == 2


@pytest.mark.parametrize(
    ("history", "parts", "values"),
    [
        (kip_101_first, Parts(truncation=TruncateToHighWatermark), {1: []}),
        (kip_101_second, Parts(truncation=TruncateToHighWatermark), {1: [11, 21], 2: [11, 12]}),
        (kip_279, Parts(truncation=TrustsTheEndOffset), {1: [11, 31], 2: [11, 21]}),
        (kafka_7415, Parts(replica_manager=EntersItsEpochWithItsFirstRecord), {2: [11]}),
        (kip_320, Parts(leader=ServesAnyEpoch), {2: [1, 2, 3, 4, 5, 22]}),
        (kafka_7786, Parts(fetcher=AppliesLateAnswers), {2: []}),
    ],
)
def test_without_its_protection_a_history_ends_badly(
    history: Callable[[Parts], Lab], parts: Parts, values: dict[int, list[int]]
) -> None:
    """Rule: the histories above can fail: a committed record is lost or cut, or logs diverge."""
    lab = history(parts)
    assert {node: lab.values(node) for node in values} == values
