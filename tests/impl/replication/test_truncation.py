"""The truncation protocol beyond its famous histories (R5)."""

import pytest
from impl_lab import Lab
from impl_moves import TWO, ask_anew, replicate, take_over, two

from fencepost.impl.broker.parts import Parts
from fencepost.impl.log.checkpoint.leader_epoch_cache import LeaderEpochCache
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.events import Name


def test_truncation_ends_where_the_leaders_epoch_ends(lab: Lab) -> None:
    """Rule (R5): a deposed leader cuts its unreplicated tail where its epoch ended on the new leader, and
    fetches what stands there now."""
    lab.replicate(1, 1)
    lab.drop()
    for value in (2, 3):
        lab.produce(1, value)
    lab.drop()
    lab.lead(2, 1)
    lab.replicate(2, 21)
    assert lab.values(1) == lab.values(2) == lab.values(3) == [1, 21]
    (cut,) = lab.recorded(Name.TRUNCATED)
    assert (cut.node, cut.offset, cut.end_offset, cut.cause) == (1, 1, 3, "leader_epoch")


def test_truncation_ends_where_the_followers_own_epoch_ends_if_that_is_earlier() -> None:
    """Rule (R5): the leader may have more of the common epoch than the follower; what the follower has of
    later epochs is cut all the same."""
    lab = two(1, 11)
    lab.drop()
    lab.produce(1, 12)
    lab.produce(1, 13)
    take_over(lab, 2, 2, to=(2,))
    lab.produce(2, 21)
    take_over(lab, 1, 3, to=(1, 2))
    ask_anew(lab, 2)
    lab.deliver(2, 1, kafka.OffsetsForLeaderEpochRequest)
    answer = lab.deliver(1, 2, kafka.OffsetsForLeaderEpochResponse)
    assert (answer.ends[0].epoch, answer.ends[0].end_offset) == (0, 3)
    assert lab.values(2) == [11]
    lab.settle()
    assert lab.values(1) == lab.values(2) == [11, 12, 13]


class HasNoEpochs(LeaderEpochCache):
    """A log whose epochs are unknown, as one written before KIP-101."""

    def assign(self, epoch: int, start_offset: int) -> None:
        return

    def rebuild(self, entries: list[tuple[int, int]]) -> None:
        return


def test_only_a_leader_without_any_epoch_makes_a_follower_cut_to_its_high_watermark() -> None:
    """Rule (R5, KAFKA-6857): a leader that knows no epoch answers undefined, not its log end, and the
    follower falls back to its high watermark."""
    lab = Lab(brokers=2, start=False)
    lab.start(1, Parts(epoch_cache=HasNoEpochs))
    lab.start(2)
    lab.led(1, 0, **TWO).settle()
    replicate(lab, 1, 2, 11)
    replicate(lab, 1, 2, 12)
    take_over(lab, 1, 1, to=(1, 2))
    ask_anew(lab, 2)
    lab.deliver(2, 1, kafka.OffsetsForLeaderEpochRequest)
    answer = lab.deliver(1, 2, kafka.OffsetsForLeaderEpochResponse)
    assert (answer.ends[0].epoch, answer.ends[0].end_offset) == (-1, -1)
    assert lab.values(2) == [11]
    assert lab.recorded(Name.TRUNCATED, 2)[-1].cause == "high_watermark"


class KeepsEpochsAtTheEnd(LeaderEpochCache):
    """KAFKA-10706 planted: nothing is cut from the log, so nothing from the cache."""

    def truncate_from_end(self, end_offset: int) -> None:
        if any(start > end_offset for _, start in self.entries):
            super().truncate_from_end(end_offset)


def kafka_10706(parts: Parts) -> int:
    """A follower's last epoch holds no record, and its leader never had it. Returns how often it asked before
    it fetched."""
    lab = two(1, 11, parts=parts)
    take_over(lab, 1, 3, to=(1,))
    lab.produce(1, 31)
    take_over(lab, 2, 5, to=(2,))
    take_over(lab, 1, 6, to=(1, 2))
    ask_anew(lab, 2)
    assert lab.epochs(1) == [(0, 0), (3, 1), (6, 2)] and lab.epochs(2) == [(0, 0), (5, 1)]
    for asked in range(20):
        if lab.drop(2, 1, kafka.FetchRequest):
            return asked
        lab.deliver(2, 1, kafka.OffsetsForLeaderEpochRequest)
        lab.deliver(1, 2, kafka.OffsetsForLeaderEpochResponse)
    return 20


def test_kafka_10706_elections_without_writes_do_not_make_truncation_loop() -> None:
    """Rule (KAFKA-10706): a follower whose last epochs hold no record drops them although it cuts nothing,
    and gets to fetching in few rounds."""
    assert kafka_10706(Parts()) == 2


def test_kafka_10706_without_the_protection_it_asks_for_ever() -> None:
    """Rule: the history above can fail."""
    assert kafka_10706(Parts(epoch_cache=KeepsEpochsAtTheEnd)) == 20


@pytest.mark.parametrize("loss", range(3))
def test_logs_that_part_inside_a_batch_fail_alone(loss: int) -> None:
    """Rule: a follower whose log ends inside a batch of its leader stops fetching that partition, and says
    so, instead of corrupting its log."""
    lab = two(1)
    lab.drop()
    lab.produce(1, 1, 2, 3)
    lab.partition(2).log.append_as_leader(batch_of(tuple(range(50, 51 + loss))), 0)
    lab.advance(2_000, nodes=(2,))
    lab.settle()
    if loss < 2:
        assert lab.recorded(Name.FOLLOWER_FAILED, 2)[-1].leader == 1
        assert lab.partition(2).key not in lab.core(2).replicas.fetcher.conversations[1].followings
    assert lab.values(2) == list(range(50, 51 + loss))
