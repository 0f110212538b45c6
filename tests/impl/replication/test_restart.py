"""What a broker knows after a restart, and how its fetcher deals with silence."""

import pytest
from impl_counterparts import SCRIPT
from impl_lab import T0, Lab
from impl_moves import two

from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.log.checkpoint.log_checkpoints import read_offsets, write_offsets
from fencepost.impl.log.layout import HIGH_WATERMARKS
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.events import Name
from fencepost.traces.plan import TopicOptions


def test_the_high_watermark_survives_a_restart_through_its_checkpoint(lab: Lab) -> None:
    """Rule (R9): a restarted replica begins with its checkpointed high watermark, clamped into its log."""
    lab.replicate(1, 11, 12)
    lab.advance(5_000, nodes=(1,))
    lab.restart(1)
    assert lab.high_watermark(1) == 2
    lab.crash(1)
    lab.drivers[1].disk.open("t-0/00000000000000000000.log").truncate(0)
    lab.start(1)
    assert lab.high_watermark(1) == 0  # KAFKA-3978: never outside the log


def test_a_power_loss_costs_at_most_what_was_not_synced() -> None:
    """Rule: with flush.messages=1 a restarted leader has every record that it ever acknowledged."""
    lab = Lab(topic=TopicOptions(flush_messages=1))
    lab.led(1, 0).settle()
    for value in range(11, 16):
        lab.produce(1, value)
    lab.power_loss(1)
    lab.start(1)
    assert lab.values(1) == [11, 12, 13, 14, 15]


def test_a_partition_whose_leader_is_down_keeps_its_checkpoint(lab: Lab) -> None:
    """Rule (KAFKA-1647): the checkpoint goes on holding partitions that have no role yet, through any number
    of hard restarts."""
    lab.replicate(1, 11)
    lab.replicate(1, 12)
    lab.advance(5_000, nodes=(2,))
    assert read_offsets(lab.drivers[2].disk, HIGH_WATERMARKS) == {T0: 1}
    lab.crash(1)
    for _ in range(2):
        lab.restart(2)
        lab.led(-1, 1, isr=(1,), to=(2,), key=TopicPartition("t", 1)).advance(10_000, nodes=(2,))
        assert read_offsets(lab.drivers[2].disk, HIGH_WATERMARKS)[T0] == 1
    assert lab.high_watermark(2) == 1


def test_a_restarted_leader_leads_nothing_until_it_is_told(lab: Lab) -> None:
    """Rule: roles live in memory only; what is on the disk makes no broker a leader."""
    lab.restart(1)
    assert not lab.partition(1).is_leader
    assert lab.produce(1, 11).base_offset == -1


def test_a_lost_fetch_is_repeated_after_its_time_out() -> None:
    """Rule (LIVE): one fetch is in flight per leader; silence ends it, and the late answer is not taken."""
    lab = two(1)
    lab.produce(1, 11)
    (late,) = [mail for mail in lab.mail if isinstance(mail.message, kafka.FetchResponse)]
    lab.mail.remove(late)
    lab.advance(1_499, nodes=(2,))
    assert lab.mail == []
    lab.advance(1, nodes=(2,))
    lab.settle()
    assert lab.values(2) == [11]
    lab.mail.append(late)
    lab.settle()
    assert lab.values(2) == [11] and lab.recorded(Name.FOLLOWER_FAILED) == []


def test_a_repeated_answer_is_taken_once() -> None:
    """Rule: a duplicate of an answer does nothing."""
    lab = two(1)
    lab.produce(1, 11)
    lab.deliver(1, 2, kafka.FetchResponse, keep=True)
    lab.settle()
    assert lab.values(2) == [11]


def test_a_refused_follower_rests_then_asks_again() -> None:
    """Rule: an error delays the partition by replica.fetch.backoff.ms, and nothing else: it goes on by
    itself."""
    lab = Lab(brokers=2).led(1, 0, isr=(1,), replicas=(1, 2), live=(1, 2), to=(2,))
    lab.deliver(2, 1, kafka.FetchRequest)  # the leader has not heard yet
    lab.deliver(1, 2, kafka.FetchResponse)
    lab.lead(1, 0, isr=(1,), replicas=(1, 2), live=(1, 2), to=(1,))
    lab.produce(1, 11)
    lab.advance(999, nodes=(2,))
    assert lab.mail == []
    lab.advance(1, nodes=(2,))
    lab.settle()
    assert lab.values(2) == [11]


def test_a_follower_ahead_of_its_leader_asks_where_to_cut() -> None:
    """Rule: OFFSET_OUT_OF_RANGE sends a follower back to truncation (KAFKA-2143: it neither halts nor wipes
    its log)."""
    lab = two(1)
    lab.replicate(1, 11)
    lab.partition(2).log.append_as_leader(batch_of((12,)), 0)
    lab.advance(5_000, settle=True)
    assert lab.values(2) == [11]


def test_stop_replica_of_an_older_epoch_stops_nothing() -> None:
    """Rule (KIP-570): StopReplica carries the partition's leader epoch, so that one that was overtaken by a
    LeaderAndIsr does nothing."""
    lab = Lab().led(1, 3)
    lab.control(kafka.StopReplicaRequest, 1, ((T0, 2, False),))
    assert lab.partition(1).is_leader
    lab.control(kafka.StopReplicaRequest, 1, ((T0, 3, False),))
    assert not lab.partition(1).is_leader


def test_a_late_role_is_not_for_a_topic_that_was_made_since() -> None:
    """Rule (KIP-516): a LeaderAndIsr that comes when its topic is gone, and another has its name, gives that
    one no role, whatever its epoch; a late one for the same topic may."""
    lab = Lab()
    late = lab.lead(1, 3)
    lab.control(kafka.StopReplicaRequest, 3, ((T0, kafka.EPOCH_DURING_DELETE, True),))
    lab.lead(2, 0)
    again = lab.lead(2, 1, to=(2,))
    lab.control(kafka.StopReplicaRequest, 3, ((TopicPartition("t", 1), 0, False),))
    lab.step(3, MessageArrived(SCRIPT, late))
    assert (lab.partition(3).leader, lab.partition(3).leader_epoch) == (2, 0)
    number = again.correlation_id
    lab.control(kafka.LeaderAndIsrRequest, 3, again.partitions, correlation_id=number)
    assert lab.partition(3).leader_epoch == 1


def test_a_replica_is_gone_once_its_directory_is_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (found by the profile everything, seed 900337): a disk that fails while the files of a deleted
    replica are removed halts the broker; the record says that the replica is gone."""
    lab = Lab(brokers=1).led(1, 0, isr=(1,), replicas=(1,), live=(1,))
    lab.produce(1, 11)

    def fails(disk: object, path: str) -> None:
        raise OSError(5, f"Input/output error: {path}")

    monkeypatch.setattr(type(lab.drivers[1].disk), "remove", fails)
    lab.control(kafka.StopReplicaRequest, 1, ((T0, 1, True),))
    assert [event.topic for event in lab.recorded(Name.MARK, 1) if event.cause == "replica_deleted"] == ["t"]
    assert lab.recorded(Name.LOG_DIRECTORY_FAILED, 1)


def test_a_checkpoint_keeps_partitions_without_a_directory() -> None:
    """Rule (KAFKA-1647): a high watermark that was read is written again although no replica has taken it
    over."""
    lab = Lab(brokers=1, start=False)
    other = TopicPartition("u", 3)
    write_offsets(lab.drivers[1].disk, HIGH_WATERMARKS, {other: 7})
    lab.start(1)
    lab.lead(1, 0, isr=(1,), replicas=(1,), live=(1,))
    lab.produce(1, 11)
    lab.advance(5_000)
    assert read_offsets(lab.drivers[1].disk, HIGH_WATERMARKS) == {T0: 1, other: 7}


def test_a_leader_alone_in_the_isr_commits_what_it_has() -> None:
    """Rule (R3): becoming leader moves the high watermark if the ISR allows it, without waiting for a
    request."""
    lab = Lab().led(1, 0)
    lab.produce(1, 11)
    assert lab.high_watermark(1) == 0
    lab.lead(1, 1, isr=(1,))
    assert lab.high_watermark(1) == 1


def test_a_new_leader_appends_nothing_of_the_old_one(lab: Lab) -> None:
    """Rule: a follower that becomes leader has stopped fetching; an answer under way from the leader before
    it is dropped."""
    lab.produce(1, 11)
    lab.lead(2, 1, to=(2,))
    lab.deliver(1, 2, kafka.FetchResponse)
    assert lab.values(2) == [] and lab.partition(2).is_leader
    assert lab.drop(2, 1) == []
