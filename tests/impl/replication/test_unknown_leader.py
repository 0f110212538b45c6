"""What a broker does with a leader of whom it has not heard that it is alive (Kafka's makeFollowers;
KAFKA-1647, KAFKA-4443)."""

from impl_lab import T0, Lab

from fencepost.bugs.controller.kafka_4443 import GivesRolesFirst
from fencepost.bugs.replication.kafka_1647 import ForgetsWhoHasNoLeader
from fencepost.impl.broker.parts import Parts
from fencepost.impl.log.checkpoint.log_checkpoints import read_offsets
from fencepost.impl.log.layout import HIGH_WATERMARKS
from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.events import Name


def unknown(lab: Lab) -> list[tuple[int, int]]:
    """(leader, leader epoch) of the roles that were not taken."""
    marks = lab.recorded(Name.MARK)
    return [(mark.leader, mark.leader_epoch) for mark in marks if mark.cause == "leader_not_alive"]


def test_nobody_follows_a_leader_that_is_not_known_to_be_alive() -> None:
    """Rule (C10, makeFollowers): the replica is made and its role stays what it was; the same request is
    obeyed once the leader is known."""
    lab = Lab().led(1, 0, live=(2, 3), to=(2,))
    assert unknown(lab) == [(1, 0)]
    partition = lab.partition(2)
    assert (partition.leader, partition.leader_epoch) == (-1, -1)
    assert lab.recorded(Name.BECAME_FOLLOWER, 2) == []
    lab.lead(1, 0, live=(1, 2, 3), to=(2,))
    assert (partition.leader, partition.leader_epoch) == (1, 0)
    assert unknown(lab) == [(1, 0)]


def test_a_leader_that_is_about_to_stop_is_followed() -> None:
    """Rule (KAFKA-14140, C11): a broker that stops may not join an ISR, but it runs: whoever is to follow it
    until it has gone does."""
    lab = Lab()
    epoch = lab.core(2).broker_context.broker_epoch
    told = {
        "correlation_id": 1_000,
        "controller_id": 99,
        "controller_epoch": 1,
        "broker_epoch": epoch,
        "partitions": (),
    }
    lab.lead(1, 0, live=(2, 3), to=(2,))
    lab.core(2).metadata.update(kafka.UpdateMetadataRequest(**told, live_brokers=(2, 3), shutting_down=(1,)))
    assert lab.core(2).metadata.runs(1) and 1 not in lab.core(2).metadata.live_brokers
    lab.core(2).metadata.latest = (-1, -1)
    state = kafka.PartitionState(
        partition=T0, controller_epoch=1, leader=1, leader_epoch=1, isr=(1, 2), zk_version=1, replicas=(1, 2)
    )
    lab.control(kafka.LeaderAndIsrRequest, 2, (state,), correlation_id=1_001)
    assert lab.partition(2).leader == 1


def test_a_partition_without_a_leader_is_no_unknown_leader() -> None:
    """Rule: that nobody leads is said by the controller, and taken."""
    lab = Lab().led(-1, 3, isr=(1,), live=(2, 3), to=(2,))
    assert unknown(lab) == [] and lab.partition(2).leader_epoch == 3


def _killed_twice(parts: Parts) -> Lab:
    """Broker 2 has checkpointed a high watermark of 1; its leader is down when it starts, and it is killed
    once more."""
    lab = Lab(parts=parts).led(1, 0).settle()
    lab.replicate(1, 11)
    lab.replicate(1, 12)
    lab.advance(5_000, nodes=(2,))
    lab.crash(1)
    lab.restart(2)
    assert lab.high_watermark(2) == 1
    lab.led(1, 0, live=(2, 3), to=(2,)).advance(5_000, nodes=(2,))
    lab.restart(2)
    return lab


def test_a_replica_whose_leader_is_down_keeps_its_high_watermark() -> None:
    """Rule (KAFKA-1647): the checkpoint holds it although the replica has no leader, through any number of
    hard restarts."""
    lab = _killed_twice(Parts())
    assert read_offsets(lab.drivers[2].disk, HIGH_WATERMARKS) == {T0: 1}
    assert lab.high_watermark(2) == 1


def test_without_the_protection_it_begins_at_0() -> None:
    """Rule: the history above can fail: a checkpoint of replicas with a leader alone forgets the others."""
    assert _killed_twice(Parts(replica_manager=ForgetsWhoHasNoLeader)).high_watermark(2) == 0


def _fails_over(parts: Parts) -> Lab:
    """Broker 2 starts and the controller dies before it has told it anything; the next one does."""
    lab = Lab(scripted=False, parts=parts)
    lab.create_topic({0: (3, 2)}).settle()
    assert lab.controllers() == [1]
    lab.crash(2).settle()
    lab.start(2)
    lab.drop(source=1)
    return lab.crash(1).settle()


def test_a_new_controller_tells_who_is_alive_before_it_gives_roles() -> None:
    """Rule (KAFKA-4443): a broker that has heard of nobody yet follows after a fail-over."""
    lab = _fails_over(Parts())
    assert unknown(lab) == []
    assert lab.partition(2).leader == 3


def test_without_the_protection_a_broker_that_has_just_started_follows_nobody() -> None:
    """Rule: the history above can fail: the role comes first and is refused, and nobody says it again."""
    lab = _fails_over(Parts(channels=GivesRolesFirst))
    assert unknown(lab) != []
    assert lab.partition(2).leader == -1
    lab.advance(60_000, settle=True)
    assert lab.partition(2).leader == -1
