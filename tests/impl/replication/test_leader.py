"""What a leader answers: produce by acks, fetch, ListOffsets, and what waits in the purgatory."""

import pytest
from impl_lab import CLIENT, SCRIPT, T0, Lab

from fencepost.impl.broker.broker import make_broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.core_interface import Started
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import Partition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import TopicOptions


def led_by_1(**options: object) -> Lab:
    """Broker 1 leads, 2 and 3 follow and wait in its purgatory for more."""
    lab = Lab(**options).led(1, 0)
    return lab.settle()


# ---- produce


def test_acks_1_is_answered_when_the_leader_has_it(lab: Lab) -> None:
    """Rule (R4): acks=1 waits for the leader's append only."""
    answer = lab.produce(1, 11, 12, acks=1)
    assert (answer.error, answer.base_offset, answer.leader_epoch) == (ErrorCode.NONE, 0, 0)
    assert lab.high_watermark(1) == 0


def test_acks_0_is_never_answered(lab: Lab) -> None:
    """Rule (R4): acks=0 appends and says nothing, also when it is refused."""
    assert lab.produce(1, 11, acks=0) is None and lab.produce(2, 12, acks=0) is None
    lab.settle()
    assert lab.values(1) == lab.values(3) == [11]
    assert lab.produced(11) is None and lab.produced(12) is None


def test_acks_all_waits_for_every_isr_member(lab: Lab) -> None:
    """Rule (R4): acks=all is answered when the high watermark has passed the batch, that is, when the last
    ISR member has asked for what follows."""
    assert lab.produce(1, 11, 12, acks=-1) is None
    lab.settle(1, 2)
    assert lab.produced(11) is None and lab.high_watermark(1) == 0
    lab.settle()
    assert (lab.produced(11).error, lab.produced(11).base_offset) == (ErrorCode.NONE, 0)
    assert lab.high_watermark(1) == 2


def test_too_small_an_isr_refuses_before_the_append() -> None:
    """Rule (R4): acks=all below min.insync.replicas is NOT_ENOUGH_REPLICAS and writes nothing; acks=1 does
    not care."""
    lab = Lab(topic=TopicOptions(min_insync_replicas=2))
    lab.lead(1, 0, isr=(1,))
    answer = lab.produce(1, 11, acks=-1)
    assert (answer.error, answer.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    assert lab.values(1) == []
    assert lab.produce(1, 12, acks=1).error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("isr", "minimum", "error"), [((1, 2, 3), 4, ErrorCode.NONE), ((1, 2), 4, ErrorCode.NOT_ENOUGH_REPLICAS)]
)
def test_min_insync_replicas_is_bounded_by_the_replicas(isr, minimum, error) -> None:
    """Rule (R4): of three replicas four cannot be in sync: three are enough, as 3.9 and 4.x of Apache Kafka
    take it; two are not."""
    lab = Lab(topic=TopicOptions(min_insync_replicas=minimum))
    lab.lead(1, 0, isr=isr)
    lab.replicate(1, 11, acks=-1)
    assert lab.produced(11).error is error


def test_an_isr_that_shrank_after_the_append_says_so_and_names_the_offset() -> None:
    """Rule (R4): if the ISR falls below min.insync.replicas before the batch is committed the answer is
    NOT_ENOUGH_REPLICAS_AFTER_APPEND, with its offset."""
    lab = led_by_1(topic=TopicOptions(min_insync_replicas=2), replica_lag_time_max_ms=1_000)
    assert lab.produce(1, 11, acks=-1, timeout_ms=60_000) is None
    lab.advance(2_500, nodes=(1,))
    assert lab.state().isr == (1,)
    answer = lab.produced(11)
    assert (answer.error, answer.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)


def test_a_time_out_keeps_the_base_offset(lab: Lab) -> None:
    """Rule: an append that waited too long is REQUEST_TIMED_OUT beside its offset, and is answered once only,
    even if it commits later."""
    lab.produce(1, 11, acks=-1, timeout_ms=700)
    lab.advance(699, nodes=(1,))
    assert lab.produced(11) is None
    lab.advance(1, nodes=(1,))
    assert (lab.produced(11).error, lab.produced(11).base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    lab.settle()
    assert lab.high_watermark(1) == 1 and lab.produced(11).error is ErrorCode.REQUEST_TIMED_OUT


def test_a_deposed_leader_answers_those_who_wait_with_their_offset(lab: Lab) -> None:
    """Rule: an append whose leader is deposed is NOT_LEADER beside its offset, so that its client does not
    take it for never done."""
    lab.produce(1, 11, acks=-1)
    lab.lead(2, 1)
    assert (lab.produced(11).error, lab.produced(11).base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
    assert lab.produce(1, 12, acks=-1).base_offset == -1


def test_a_waiting_append_does_not_reach_into_the_next_epoch(lab: Lab) -> None:
    """Rule: an append that waits when its leader is elected again may have been cut and replaced meanwhile,
    so its offset proves nothing: it ends."""
    lab.produce(1, 11, acks=-1)
    lab.lead(1, 1)
    assert lab.produced(11).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_nobody_waits_in_the_purgatory_for_ever(lab: Lab) -> None:
    """Rule: every waiter leaves the purgatory with its answer or its deadline; nothing stays behind."""
    for value in range(20, 30):
        lab.produce(1, value, acks=-1, timeout_ms=300)
    lab.settle(1, 2)
    lab.fetch(1, 0, max_wait_ms=200)
    lab.drop()
    lab.advance(2_000, nodes=(1,))
    purgatory = lab.core(1).replicas.leader.purgatory
    assert purgatory.waiters == {} and not any(purgatory.by_partition.values())
    assert len([mail for mail in lab.answers if mail.target == CLIENT]) == 11


# ---- fetch


def test_a_client_sees_nothing_above_the_high_watermark(lab: Lab) -> None:
    """Rule (R3): a consumer reads committed records only; a follower reads to the log end."""
    lab.produce(1, 11)
    seen = lab.fetch(1, 0)
    assert (seen.records, seen.high_watermark) == (b"", 0)
    lab.settle()
    assert lab.fetch(1, 0).records != b""


def test_a_waiting_fetch_is_answered_when_the_high_watermark_moves(lab: Lab) -> None:
    """Rule (R4): a consumer's fetch that waits is completed by what commits, in the same step."""
    lab.fetch(1, 0, max_wait_ms=5_000)
    lab.produce(1, 11)
    waiting = [mail for mail in lab.answers if isinstance(mail.message, kafka.FetchResponse)]
    assert waiting == []
    lab.settle()
    (answer,) = [mail.message for mail in lab.answers if isinstance(mail.message, kafka.FetchResponse)]
    assert answer.partitions[0].high_watermark == 1 and answer.partitions[0].records


def test_what_is_not_here_is_refused_by_its_reason(lab: Lab) -> None:
    """Rule: an unknown partition, a follower, an offset out of range: each has its own error."""
    assert lab.fetch(2, 0).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert lab.fetch(1, 5).error is ErrorCode.OFFSET_OUT_OF_RANGE
    answer = lab.ask(
        1, kafka.ListOffsetsRequest(correlation_id=5, partition=TopicPartition("other", 0), leader_epoch=-1)
    )
    assert answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_replica_that_is_not_assigned_may_not_fetch() -> None:
    """Rule (KAFKA-1097): a replica outside the assignment gets nothing and never joins the ISR."""
    lab = Lab().led(1, 0, isr=(1, 2), replicas=(1, 2), to=(1, 2))
    assert lab.fetch(1, 0, replica=3, epoch=0).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert lab.state().isr == (1, 2)


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
    ],
)
def test_the_askers_epoch_is_fenced(epoch: int, error: ErrorCode) -> None:
    """Rule (R6): Fetch, ListOffsets and OffsetsForLeaderEpoch of an older epoch are FENCED, of a newer one
    UNKNOWN; -1 does not say."""
    lab = Lab().led(1, 2).settle()
    assert lab.fetch(1, 0, epoch=epoch).error is error
    assert lab.list_offsets(1, epoch).error is error
    query = kafka.EpochQuery(partition=T0, current_leader_epoch=epoch, asked_epoch=2)
    request = kafka.OffsetsForLeaderEpochRequest(correlation_id=9, replica_id=-1, queries=(query,))
    assert lab.ask(1, request).ends[0].error is error


def test_a_fetch_that_is_fenced_teaches_the_leader_nothing(lab: Lab) -> None:
    """Rule (KIP-320): the offset in a refused fetch is not a follower's log end."""
    lab.produce(1, 11, acks=-1)
    lab.drop()
    for replica in (2, 3):
        assert lab.fetch(1, 1, replica=replica, epoch=7).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert lab.high_watermark(1) == 0 and lab.produced(11) is None


# ---- ListOffsets


class ListsAnyOffset(LeaderRole):
    """KIP-207 planted."""

    def offset_not_available(self, partition: Partition) -> ErrorCode:
        return ErrorCode.NONE


def _lists_after_election(parts: Parts) -> tuple[int, kafka.ListOffsetsResponse, Lab]:
    lab = led_by_1(parts=parts)
    lab.replicate(1, 11, acks=-1)
    lab.produce(1, 12, acks=-1)
    for follower in (2, 3):
        lab.deliver(1, follower, kafka.FetchResponse)
        lab.deliver(follower, 1, kafka.FetchRequest)
    before = lab.list_offsets(1).offset
    lab.drop()
    lab.lead(2, 1)
    return before, lab.list_offsets(2), lab


def test_a_new_leader_lists_no_offset_before_its_high_watermark_caught_up() -> None:
    """Rule (KIP-207, R7): a new leader's lagging high watermark is OFFSET_NOT_AVAILABLE, and a right answer
    once its epoch's start is committed."""
    before, listed, lab = _lists_after_election(Parts())
    assert (before, listed.error) == (2, ErrorCode.OFFSET_NOT_AVAILABLE)
    lab.settle()
    assert lab.list_offsets(2).offset == 2


def test_without_the_protection_listed_offsets_go_back() -> None:
    """Rule (KIP-207): the scenario can fail: without offset_not_available the end that was shown goes
    back."""
    before, listed, _ = _lists_after_election(Parts(leader=ListsAnyOffset))
    assert (listed.error, listed.offset) == (ErrorCode.NONE, 1) and listed.offset < before


# ---- the high watermark


def test_the_high_watermark_is_never_lowered_within_an_epoch(lab: Lab) -> None:
    """Rule (R3, HW-MONO): a follower's fetch from further back, late or repeated, does not take the leader's
    high watermark with it."""
    lab.replicate(1, 11)
    assert lab.high_watermark(1) == 1
    assert lab.fetch(1, 0, replica=2, epoch=0).error is ErrorCode.NONE
    lab.produce(1, 12)
    assert lab.high_watermark(1) == 1


def test_a_pending_expansion_counts_at_once() -> None:
    """Rule (KIP-497): from the moment it proposes a replica for the ISR the leader waits for it, since
    ZooKeeper may hold the larger ISR already."""
    lab = Lab().led(1, 0, isr=(1, 2), live=(1, 2)).settle()
    lab.led(1, 1, isr=(1, 2)).settle(1, 2)
    lab.hold_zookeeper(1)
    lab.settle(1, 3)
    assert lab.partition(1).pending_isr == (1, 2, 3)
    lab.produce(1, 11, acks=-1)
    lab.settle(1, 2)
    assert lab.high_watermark(1) == 0
    lab.settle(1, 3)
    assert lab.high_watermark(1) == 1


def test_a_pending_removal_does_not_count_yet() -> None:
    """Rule (KIP-497): until ZooKeeper has answered, a replica whose removal is proposed still holds the high
    watermark back."""
    lab = led_by_1(replica_lag_time_max_ms=1_000)
    lab.hold_zookeeper(1)
    lab.produce(1, 11, acks=-1, timeout_ms=60_000)
    lab.settle(1, 2)
    lab.advance(2_500, nodes=(1, 2))
    lab.settle(1, 2)
    assert lab.partition(1).pending_isr == (1, 2)
    assert lab.high_watermark(1) == 0
    lab.release_zookeeper(1)
    assert lab.state().isr == (1, 2)
    assert lab.high_watermark(1) == 1 and lab.produced(11).error is ErrorCode.NONE


def test_a_broker_serves_nobody_before_it_is_registered() -> None:
    """Rule (KIP-380): an incarnation without a broker epoch cannot tell which requests are meant for it, so
    it answers none."""
    lab = Lab(brokers=1, start=False)
    driver = lab.drivers[1]
    driver.core = make_broker(1, lab.options, driver.disk, lab.parts)
    lab.step(1, Started())
    lab.control(kafka.UpdateMetadataRequest, 1, ())
    assert lab.answers == [] and lab.core(1).gate.controller_epoch == -1
    lab.connect(1)
    lab.control(kafka.UpdateMetadataRequest, 1, ())
    assert [mail.target for mail in lab.answers] == [SCRIPT]
