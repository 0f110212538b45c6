"""The ISR: who may join, who must leave, and how the leader writes it to ZooKeeper."""

import pytest
from impl_lab import T0, Lab

from fencepost.impl.broker.parts import Parts
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages.broker_api import TopicPartition, UpdateMetadataRequest
from fencepost.impl.replication.isr import InSyncReplicas
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import SetData
from fencepost.impl.zookeeper.znodes import LeaderAndIsr
from fencepost.traces.events import Name


def in_sync(lag_ms: int = 1_000, **options: object) -> Lab:
    """Broker 1 leads, 2 and 3 are in sync and wait for more."""
    lab = Lab(replica_lag_time_max_ms=lag_ms, **options).led(1, 0)
    return lab.settle()


@pytest.fixture
def lab() -> Lab:
    """The same, where a follower may lag for a second."""
    return in_sync()


# ---- shrink


def test_a_follower_that_lags_for_too_long_leaves(lab: Lab) -> None:
    """Rule (R2): a member that has not caught up for replica.lag.time.max.ms leaves the ISR; ZooKeeper and
    the leader's copy agree."""
    lab.produce(1, 11)
    lab.settle(1, 2)
    lab.advance(900, nodes=(1,))
    assert lab.state().isr == (1, 2, 3)
    lab.settle(1, 2)
    lab.advance(700, nodes=(1,))
    assert lab.state().isr == lab.partition(1).isr == (1, 2)
    assert lab.state().zk_version == lab.partition(1).zk_version
    assert lab.high_watermark(1) == 1
    assert [event.cause for event in lab.recorded(Name.ISR_UPDATED)] == ["shrink"]


def test_an_idle_follower_with_everything_stays(lab: Lab) -> None:
    """Rule (R2): a silent follower whose log end is the leader's own is in sync for as long as nothing is
    written."""
    lab.replicate(1, 11)
    lab.drop()
    lab.advance(20_000, nodes=(1,))
    assert lab.state().isr == (1, 2, 3)


def test_a_follower_that_keeps_pace_one_fetch_behind_stays(lab: Lab) -> None:
    """Rule (R2): under steady writes a follower is caught up if each fetch has what the leader had at the one
    before."""
    for value in range(100, 140):
        lab.produce(1, value)
        for follower in (2, 3):
            lab.fetch(1, value - 100, replica=follower, epoch=0)
        lab.advance(200, nodes=(1,))
    assert lab.state().isr == (1, 2, 3)


def test_a_follower_that_falls_further_behind_leaves(lab: Lab) -> None:
    """Rule (R2): fetching is not enough: one whose fetches never reach what the leader had at the one before
    is out of sync."""
    for value in range(100, 140):
        lab.produce(1, value)
        lab.fetch(1, value - 100, replica=2, epoch=0)
        lab.fetch(1, (value - 100) // 2, replica=3, epoch=0)
        lab.advance(200, nodes=(1,))
    assert lab.state().isr == (1, 2)


def test_the_isr_never_loses_its_leader(lab: Lab) -> None:
    """Rule (ISR-NONEMPTY): a leader alone stays in the ISR, whatever time passes."""
    lab.produce(1, 11)
    lab.drop()
    lab.advance(10_000, nodes=(1,))
    assert lab.state().isr == (1,)


# ---- expand


def test_a_follower_that_has_caught_up_joins() -> None:
    """Rule (R2): reaching the high watermark and the start of the epoch is what it takes."""
    lab = Lab().led(1, 0, isr=(1,))
    lab.replicate(1, 11)
    assert lab.state().isr == lab.partition(1).isr == (1, 2, 3)
    assert [event.cause for event in lab.recorded(Name.ISR_UPDATED)] == ["expand", "expand"]


def test_a_replica_that_is_not_alive_does_not_join() -> None:
    """Rule (KAFKA-14140): a last fetch of a broker that the controller knows to be gone does not bring it
    back."""
    lab = Lab().led(1, 0, isr=(1, 2), live=(1, 2)).settle()
    assert lab.state().isr == (1, 2)


def test_a_late_copy_of_older_metadata_does_not_bury_the_living() -> None:
    """Rule (C10): metadata moves in the order in which it was sent; an overtaken request, late or repeated,
    changes nothing, or a follower that is alive could never join."""
    lab = Lab().led(1, 0, isr=(1, 2), live=(1, 2), to=(1, 2))
    lab.control(UpdateMetadataRequest, 1, (), live=(1, 2), correlation_id=50)
    lab.control(UpdateMetadataRequest, 1, (), live=(1, 2, 3), correlation_id=51)
    lab.control(UpdateMetadataRequest, 1, (), live=(1, 2), correlation_id=50)
    assert lab.core(1).metadata.live_brokers == (1, 2, 3)
    lab.control(UpdateMetadataRequest, 1, (), live=(1, 2), controller_epoch=2, correlation_id=3)
    assert lab.core(1).metadata.live_brokers == (1, 2)


# ---- the write


def test_after_a_conflict_whoever_was_or_was_proposed_counts(lab: Lab) -> None:
    """Rule (R8): what somebody else wrote stands. An earlier attempt may have been written before that (its
    reply lost), so that until LeaderAndIsr says what holds the leader commits only what its ISR and the one
    that it proposed have."""
    lab.hold_zookeeper(1)
    lab.produce(1, 11)
    lab.settle(1, 2)
    lab.advance(2_000, nodes=(1,))
    other = LeaderAndIsr(leader=1, leader_epoch=1, controller_epoch=2, isr=(1, 2))
    lab.admin(SetData(znodes.state_path(T0), znodes.encode_state(other)))
    lab.release_zookeeper(1)
    assert lab.partition(1).isr == (1, 2, 3) and lab.partition(1).pending_isr == (1, 2)
    assert lab.partition(1).maximal_isr == {1, 2, 3}
    assert lab.high_watermark(1) == 0
    assert lab.recorded(Name.ISR_REFUSED)[-1].isr == (1, 2)
    assert lab.state().leader_epoch == 1


class RefusesItsOwnWrite(InSyncReplicas):
    """KAFKA-1382 planted."""

    def accept_own_isr_write(self, current: object, state: LeaderAndIsr) -> int | None:
        return None


def _lost_reply(parts: Parts) -> Lab:
    lab = in_sync(parts=parts)
    lab.drivers[1].replies_to_lose = 1
    lab.produce(1, 11, acks=-1, timeout_ms=60_000)
    lab.settle(1, 2)
    lab.advance(2_000, nodes=(1,))
    return lab.advance(10_000, settle=True)


def test_a_lost_reply_is_recognised_as_its_own_write() -> None:
    """Rule (KAFKA-1382): a bad version after a lost reply is no conflict if what stands there is what was
    written; ISR changes go on."""
    lab = _lost_reply(Parts())
    assert lab.partition(1).isr == lab.state().isr == (1, 2, 3)
    assert [event.cause for event in lab.recorded(Name.ISR_UPDATED)] == ["shrink", "expand"]


def test_without_the_protection_the_isr_can_never_change_again() -> None:
    """Rule (KAFKA-1382, LIVE): the scenario can fail."""
    lab = _lost_reply(Parts(in_sync_replicas=RefusesItsOwnWrite))
    assert lab.state().isr == (1, 2) and lab.recorded(Name.ISR_UPDATED) == []


def test_a_proposal_of_an_earlier_epoch_settles_nothing_in_the_next(lab: Lab) -> None:
    """Rule: LeaderAndIsr says what holds; the answer to a proposal made before it is dropped."""
    lab.hold_zookeeper(1)
    lab.produce(1, 11)
    lab.settle(1, 2)
    lab.advance(2_000, nodes=(1,))
    assert lab.partition(1).pending_isr == (1, 2)
    lab.lead(1, 1)
    assert lab.partition(1).pending_isr is None and lab.partition(1).isr == (1, 2, 3)
    lab.release_zookeeper(1)
    assert lab.partition(1).isr == lab.state().isr == (1, 2, 3)
    assert lab.partition(1).zk_version == lab.state().zk_version
    assert lab.recorded(Name.ISR_UPDATED) == lab.recorded(Name.ISR_REFUSED) == []


def test_a_proposal_that_meets_the_end_of_its_session_is_settled_in_the_next(lab: Lab) -> None:
    """Rule: procedures outlive sessions and are guarded by versions: the write is sent again, and nothing
    stays pending."""
    lab.hold_zookeeper(1)
    lab.produce(1, 11)
    lab.settle(1, 2)
    lab.advance(2_000, nodes=(1,))
    lab.expire(1)
    assert lab.state().isr == lab.partition(1).isr == (1, 2)
    assert lab.partition(1).pending_isr is None


# ---- the notification


def test_changes_are_announced_to_the_controller_together(lab: Lab) -> None:
    """Rule (C5): one notification names all partitions whose ISR changed since the last one."""
    other = TopicPartition("t", 1)
    lab.led(1, 0, key=other).settle()
    for key in (T0, other):
        lab.partition(1, key).log.append_as_leader(batch_of((1,)), 0)
    lab.drop()
    lab.advance(2_000, nodes=(1,))
    assert lab.children(znodes.ISR_CHANGES) == []
    lab.advance(2_500, nodes=(1,))
    (name,) = lab.children(znodes.ISR_CHANGES)
    node = lab.tree.node(f"{znodes.ISR_CHANGES}/{name}")
    assert node is not None and znodes.decode_partitions(node.data) == [T0, other]


def test_a_follower_below_the_high_watermark_does_not_join() -> None:
    """Rule (R2): the start of the epoch is not enough either: who lacks a committed record stays out, also
    one who says he is ahead of the leader."""
    lab = Lab().led(1, 0, isr=(1, 2))
    lab.produce(1, 11)
    lab.produce(1, 12)
    lab.settle(1, 2)
    assert lab.high_watermark(1) == 2
    for offset in (0, 1, 7):
        lab.fetch(1, offset, replica=3, epoch=0)
        assert lab.state().isr == (1, 2)
    lab.fetch(1, 2, replica=3, epoch=0)
    assert lab.state().isr == (1, 2, 3)


def test_a_fetch_at_the_log_end_is_caught_up_now(lab: Lab) -> None:
    """Rule (R2): who asks for the log end has everything at that moment; the lag is counted from there, not
    from the fetch before."""
    lab.drop()
    lab.advance(100, nodes=(1,))
    for wait in (900, 50):
        for follower in (2, 3):
            lab.fetch(1, 0, replica=follower, epoch=0)
        lab.advance(wait, nodes=(1,))
    lab.produce(1, 11)
    lab.advance(750, nodes=(1,))
    assert lab.state().isr == (1, 2, 3)
    lab.advance(1_000, nodes=(1,))
    assert lab.state().isr == (1,)
