"""Topic deletion: replicas, then nodes; brokers and controllers that die on the way; partitions that are
added."""

from pathlib import Path
from typing import Any

import pytest
from controller_lab import (
    cluster,
    delete_topic,
    fail_over_at,
    marks,
    on_disk,
    pending,
    reassign,
    refused_transitions,
    settled,
    until_sent,
)
from impl_lab import T0, Lab

from fencepost.impl.controller.legal_transitions import ReplicaPhase
from fencepost.impl.controller.listeners import replicas_stopped
from fencepost.impl.core.core_interface import StopRequested
from fencepost.impl.log.layout import DOOMED
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import EPOCH_DURING_DELETE, StopReplicaRequest, TopicPartition
from fencepost.impl.runtime.real_file_system import RealFiles
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Delete, SetData
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode


def gone(lab: Lab, topic: str = "t") -> None:
    """Nothing of the topic is left in ZooKeeper, at the controller, or at any broker that is up."""
    assert not [path for path in lab.tree.paths() if f"/{topic}/" in f"{path}/"]
    state = lab.core(lab.controllers()[0]).controller.state
    known = [*state.context.assignments, *state.context.states, *state.phases]
    assert not [key for key in known if key.topic == topic]
    assert not [key for keys in state.replicas.values() for key in keys if key.topic == topic]
    assert topic not in state.context.deleting and topic not in state.context.out_of_service
    for node, driver in lab.drivers.items():
        if driver.core is not None:
            assert not [name for name in on_disk(lab, node) if name.startswith(f"{topic}-")]
            assert not [key for key in lab.core(node).replicas.partitions if key.topic == topic]
            assert not [key for key in lab.core(node).metadata.leaders if key.topic == topic]


def test_a_topic_is_deleted_everywhere() -> None:
    """Rule (C14, DEL-COMPLETE): logs, nodes, metadata and what the controller knew are gone; other topics
    stay."""
    lab = cluster({0: (2, 3), 1: (3, 4)})
    lab.create_topic({0: (2, 3)}, "u")
    lab.produce(2, 11)
    lab.come_to_rest()
    delete_topic(lab).come_to_rest()
    gone(lab)
    assert lab.partition(2, TopicPartition("u", 0)).is_leader and "u-0" in on_disk(lab, 2)
    assert lab.children(znodes.DELETE_TOPICS) == [] and refused_transitions(lab) == 0
    assert len(marks(lab, "topic_deleted")) == 1 and len(marks(lab, "replica_deleted")) == 4


def names_below(directory: Path) -> list[str]:
    """Every name below a directory."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_nothing_stays_of_a_deleted_replica_on_a_real_disk(tmp_path: Path) -> None:
    """Rule (C14; Kafka's LogManager.asyncDelete): the directory of a deleted replica goes, and not only the
    files in it; so does what a broker left that died while it deleted one, at its next start. A name of
    Kafka's greatest length is cut, not refused."""
    longest = "x" * 249
    lab = Lab(2, start=False, scripted=False)
    for node, driver in lab.drivers.items():
        driver.disk = RealFiles(tmp_path / str(node))
        (tmp_path / str(node)).mkdir()
        lab.start(node)
    for topic in ("t", longest):
        lab.create_topic({0: (1, 2), 1: (2, 1)}, topic)
    lab.come_to_rest()
    lab.produce(1, 11)
    lab.come_to_rest()
    for topic in ("t", longest):
        assert any(name.startswith(f"{topic}-0/") for name in names_below(tmp_path / "1"))
        delete_topic(lab, topic)
    lab.come_to_rest()
    for node in (1, 2):
        assert not [name for name in names_below(tmp_path / str(node)) if name[:1] in "tx"]
    half = tmp_path / "2" / f"t-0.0{DOOMED}"
    half.mkdir()
    (half / "00000000000000000000.log").write_bytes(b"left")
    lab.restart(2)
    assert not half.exists()


def test_a_topic_may_come_again_under_its_old_name() -> None:
    """Rule: what is created after a deletion is new: epoch 0, an empty log, nothing of the old checkpoints,
    also after a restart."""
    lab = cluster({0: (2, 3)})
    for value in (11, 12, 13):
        lab.produce(2, value)
        lab.come_to_rest()
        assert lab.values(3) == [value] and lab.state().leader_epoch == 0
        delete_topic(lab).come_to_rest()
        gone(lab)
        lab.restart(3).come_to_rest()
        lab.create_topic({0: (2, 3)}).come_to_rest()
    assert lab.values(2) == [] and lab.high_watermark(2) == 0


def test_a_request_for_a_topic_that_does_not_exist_is_removed() -> None:
    """Rule: nothing waits for ever below /admin/delete_topics."""
    lab = cluster({0: (2, 3)})
    delete_topic(lab, "nobody").come_to_rest()
    assert lab.children(znodes.DELETE_TOPICS) == [] and lab.partition(2).is_leader


def test_waiting_clients_are_answered(lab: Lab) -> None:
    """Rule: an append that waits for its acknowledgement when the replica is deleted is refused, not
    forgotten."""
    assert lab.produce(2, 11, acks=-1, timeout_ms=60_000) is None
    delete_topic(lab)
    lab.deliver(1, 2)
    lab.deliver(2, 1)
    lab.drop(kind=kafka.FetchResponse)
    lab.deliver(1, 2, kafka.StopReplicaRequest)
    assert lab.produced(11).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


# ---- a broker is down


def _one_down() -> Lab:
    lab = settled({0: (2, 3)}, values=(11,))
    lab.crash(3).come_to_rest()
    delete_topic(lab).come_to_rest()
    return lab


def test_a_replica_of_a_dead_broker_is_deleted_when_it_returns() -> None:
    """Rule (C14): the replica is ineligible while its broker is down, the topic's nodes stay, and the
    deletion goes on when it is back."""
    lab = _one_down()
    state = lab.core(1).controller.state
    assert state.replica_phase(T0, 3) is ReplicaPhase.DELETION_INELIGIBLE
    assert state.replica_phase(T0, 2) is ReplicaPhase.DELETION_SUCCESSFUL
    assert lab.children(znodes.DELETE_TOPICS) == ["t"] and lab.tree.node(znodes.state_path(T0)) is not None
    assert on_disk(lab, 2) == []
    lab.start(3).come_to_rest()
    gone(lab)
    assert refused_transitions(lab) == 0


def test_no_leader_is_elected_for_a_topic_that_goes() -> None:
    """Rule (C14): while the deletion waits for a broker, no state of the topic is written, whoever comes and
    goes, also under a new controller."""
    lab = _one_down()
    before = lab.state()
    for node in (2, 4, 1):
        lab.restart(node).come_to_rest()
    assert lab.state() == before
    assert all(on_disk(lab, node) == [] for node in (1, 2, 4))


def test_a_broker_that_dies_while_it_deletes_is_asked_again(lab: Lab) -> None:
    """Rule (C14): DeletionStarted becomes DeletionIneligible when the broker goes, and begins again when it
    returns."""
    delete_topic(lab)
    until_sent(lab, kafka.StopReplicaRequest)
    lab.drop(kind=kafka.StopReplicaRequest, target=3)
    lab.crash(3).come_to_rest()
    assert lab.core(1).controller.state.replica_phase(T0, 3) is ReplicaPhase.DELETION_INELIGIBLE
    lab.start(3).come_to_rest()
    gone(lab)


def test_a_replica_whose_power_fails_while_it_is_deleted_is_whole_or_gone() -> None:
    """Rule: wherever the power fails inside a deletion, the broker comes back with a log or without one, and
    the deletion completes."""
    for calls in range(1, 9):
        lab = settled({0: (2, 3)}, values=(11,))
        delete_topic(lab)
        until_sent(lab, kafka.StopReplicaRequest)
        lab.drivers[3].disk.arm_power_loss(calls)
        lab.come_to_rest()
        if lab.drivers[3].core is None:
            lab.start(3)
        lab.drivers[3].disk.disarm_power_loss()
        lab.come_to_rest()
        gone(lab)


# ---- the controller dies


@pytest.mark.parametrize("step", range(25))
def test_a_new_controller_resumes_the_deletion(step: int) -> None:
    """Rule (KAFKA-1681): whichever ZooKeeper request is the controller's last, its successor completes the
    deletion."""
    lab = cluster({0: (2, 3), 1: (3, 2)})
    lab.produce(2, 11)
    lab.admin(Create(znodes.config_path("t"), znodes.encode_configuration({"retention.bytes": "300"})))
    lab.come_to_rest()
    fail_over_at(lab, lambda: delete_topic(lab), step)
    lab.come_to_rest()
    gone(lab)
    assert refused_transitions(lab) == 0


def test_the_steps_above_are_all_of_them() -> None:
    """Rule: the parametrisation covers every ZooKeeper request of a whole deletion."""
    lab = settled({0: (2, 3), 1: (3, 2)})
    assert not fail_over_at(lab, lambda: delete_topic(lab), 25)
    gone(lab)


@pytest.mark.parametrize("left", [("0",), ("1",), ("0", "1"), ()])
def test_partitions_without_a_state_are_deleted_too(left: tuple[str, ...]) -> None:
    """Rule (KAFKA-6650): a controller died between the removals of nodes: replicas go offline although their
    partition has no state any more."""
    lab = settled({0: (2, 3), 1: (3, 2)})
    lab.hold_zookeeper(1)
    delete_topic(lab)
    for number in {"0", "1"} - set(left):
        for path in reversed(znodes.partition_paths(TopicPartition("t", int(number)))[1:]):
            lab.admin(Delete(path))
    lab.crash(1).come_to_rest()
    gone(lab)
    assert refused_transitions(lab) == 0


# ---- what comes in between


@pytest.mark.parametrize("target", [(2, 4), (2, 3, 4)])
def test_a_topic_under_reassignment_is_deleted_after_it(target: tuple[int, ...], lab: Lab) -> None:
    """Rule (C12): the topic cannot be deleted while one of its partitions moves; then it is, whether or not
    old replicas had to stop first."""
    reassign(lab, {T0: target})
    delete_topic(lab)
    lab.settle(1, 2, 3)
    assert T0 in pending(lab) and lab.partition(2).is_leader
    assert lab.core(1).controller.state.context.in_service(T0)
    lab.come_to_rest()
    gone(lab)
    assert len(marks(lab, "reassigned")) == 1
    # what the end of the reassignment said of leaders is still true (found by the swarm, while operators in
    # haste were drawn in the profile reassignment)
    assert -2 not in {event.leader for event in lab.recorded(Name.BECAME_FOLLOWER)}


def test_partitions_added_to_a_topic_that_goes_are_refused() -> None:
    """Rule (KAFKA-6612): the topic's node gets its old assignment back, and the deletion completes."""
    lab = _one_down()
    lab.admin(SetData(znodes.topic_path("t"), znodes.encode_topic({0: (2, 3), 1: (2, 4)})))
    lab.come_to_rest()
    node = lab.tree.node(znodes.topic_path("t"))
    assert node is not None and znodes.decode_topic(node.data) == {0: (2, 3)}
    assert marks(lab, "partitions_refused")
    lab.start(3).come_to_rest()
    gone(lab)


def test_partitions_can_be_added(lab: Lab) -> None:
    """Rule (C14): a partition that an admin adds to the topic's node gets a leader; those that stood are not
    touched."""
    before = lab.state()
    lab.admin(SetData(znodes.topic_path("t"), znodes.encode_topic({0: (2, 3), 1: (3, 4)})))
    lab.come_to_rest()
    assert lab.state() == before and lab.partition(3, TopicPartition("t", 1)).is_leader
    lab.admin(SetData(znodes.topic_path("t"), znodes.encode_topic({0: (2, 3), 1: (3, 4), 2: (4, 2)})))
    lab.come_to_rest()
    assert lab.partition(4, TopicPartition("t", 2)).is_leader


# ---- StopReplica at the broker


def stop(lab: Lab, epoch: int, *, delete: bool = True, correlation_id: int | None = None) -> ErrorCode:
    """One StopReplica to broker 1; its answer."""
    lab.answers.clear()
    lab.control(kafka.StopReplicaRequest, 1, ((T0, epoch, delete),), correlation_id=correlation_id)
    return lab.answers[-1].message.partition_errors[0][1]


def test_a_stop_of_an_earlier_epoch_is_refused() -> None:
    """Rule (KIP-570): reordered behind the LeaderAndIsr that brought the replica back, it neither stops nor
    deletes."""
    lab = Lab().led(1, 5)
    assert stop(lab, 4) is ErrorCode.FENCED_LEADER_EPOCH
    assert lab.partition(1).is_leader and on_disk(lab, 1) == ["t-0"]
    assert stop(lab, 5) is ErrorCode.NONE and on_disk(lab, 1) == []


def test_a_deletion_has_no_epoch() -> None:
    """Rule (KIP-570): the sentinel of a topic's deletion is obeyed in any epoch, and a replica that is gone
    is stopped."""
    lab = Lab().led(1, 5)
    assert stop(lab, EPOCH_DURING_DELETE) is ErrorCode.NONE and on_disk(lab, 1) == []
    assert stop(lab, EPOCH_DURING_DELETE) is ErrorCode.NONE


def test_a_late_copy_of_a_stop_deletes_nothing() -> None:
    """Rule: a StopReplica that was sent again and overtaken by the topic's re-creation does not delete the
    new replica."""
    lab = Lab().led(1, 0)
    assert stop(lab, EPOCH_DURING_DELETE, correlation_id=500) is ErrorCode.NONE
    lab._correlation_id = 600
    lab.lead(1, 0)
    assert stop(lab, EPOCH_DURING_DELETE, correlation_id=501) is ErrorCode.FENCED_LEADER_EPOCH
    assert lab.partition(1).is_leader and on_disk(lab, 1) == ["t-0"]


def test_a_late_copy_of_a_leader_and_isr_makes_nothing_again() -> None:
    """Rule (DEL-COMPLETE): a LeaderAndIsr that was sent again and overtaken by the StopReplica that deleted
    the replica does not make it anew; one that was sent later does."""
    lab = Lab()
    lab._correlation_id = 500
    lab.lead(1, 0)
    assert stop(lab, EPOCH_DURING_DELETE, correlation_id=600) is ErrorCode.NONE
    assert on_disk(lab, 1) == []
    lab.lead(1, 0)  # numbered 502: a copy of what was sent before the stop
    assert on_disk(lab, 1) == [] and T0 not in lab.core(1).replicas.partitions
    lab._correlation_id = 700
    lab.lead(1, 0)
    assert lab.partition(1).is_leader and on_disk(lab, 1) == ["t-0"]


def test_a_stop_without_deletion_keeps_the_log() -> None:
    """Rule (C11): a replica that only stops still has its records."""
    lab = Lab().led(1, 0)
    lab.produce(1, 11)
    assert stop(lab, 0, delete=False) is ErrorCode.NONE
    assert lab.values(1) == [11] and not lab.partition(1).is_leader


# An answer counts for the request that it answers: not for another of its kind, of another incarnation,
# or of another reign.


def under_way(lab: Lab, kind: type) -> list[Any]:
    """The messages of this kind that nobody delivered yet."""
    return [mail.message for mail in lab.mail if isinstance(mail.message, kind)]


def stopping_with_a_stop_under_way() -> Lab:
    """Broker 3, a follower of t-0 on (2, 3), stops cleanly; the StopReplica of it, which deletes nothing, is
    under way and not delivered. The controller's answer to the broker is lost, so that the broker runs on for
    a while."""
    lab = settled({0: (2, 3)}, values=(11,))
    lab.step(3, StopRequested())
    for _ in range(1_000):
        lab.drop(1, 3, kafka.ControlledShutdownResponse)
        if stops := under_way(lab, kafka.StopReplicaRequest):
            assert [delete for stop in stops for *_, delete in stop.partitions] == [False]
            return lab
        if lab.mail:
            lab.deliver()
        else:
            lab.advance(10)
    raise AssertionError("the controller sent no StopReplica")


def let_the_controller_hear(lab: Lab) -> None:
    """The StopReplica that deletes nothing is obeyed and answered; brokers 1 and 2 go on between
    themselves."""
    lab.deliver(1, 3, kafka.StopReplicaRequest)
    lab.deliver(3, 1, kafka.ControlResponse)
    lab.settle(1, 2)


def test_an_answer_to_a_stop_that_deletes_nothing_is_no_deletion() -> None:
    """Rule (KAFKA-9946, DEL-COMPLETE): a topic is deleted while the StopReplica of a controlled shutdown is
    under way; its answer says nothing of the deletion, which waits for the broker that dies before it hears
    of it."""
    lab = stopping_with_a_stop_under_way()
    delete_topic(lab)
    lab.settle(1, 2)
    controller = lab.core(1).controller.state
    assert controller.replica_phase(T0, 3) is ReplicaPhase.DELETION_STARTED
    let_the_controller_hear(lab)
    assert controller.replica_phase(T0, 3) is ReplicaPhase.DELETION_STARTED
    lab.crash(3).come_to_rest()
    assert lab.children(znodes.DELETE_TOPICS) == ["t"] and on_disk(lab, 3) == ["t-0"]
    lab.start(3).come_to_rest()
    assert on_disk(lab, 3) == [] and lab.children(znodes.DELETE_TOPICS) == []
    assert len(marks(lab, "topic_deleted")) == 1 and refused_transitions(lab) == 0


def test_an_answer_to_a_stop_that_deletes_nothing_ends_no_reassignment() -> None:
    """Rule (KAFKA-9946, C12): the same while a reassignment waits for its old replica to be deleted."""
    lab = stopping_with_a_stop_under_way()
    reassign(lab, {T0: (2, 4)})
    for _ in range(1_000):
        if T0 in lab.core(1).controller.state.context.stopping:
            break
        lab.settle(1, 2, 4)
        lab.advance(100, nodes=(1, 2, 4))
    controller = lab.core(1).controller.state
    assert list(controller.context.stopping[T0]) == [3]
    lab.deliver(1, 3, kafka.StopReplicaRequest)
    lab.deliver(3, 1, kafka.ControlResponse)
    lab.settle(1, 2, 4)
    assert list(controller.context.stopping[T0]) == [3] and marks(lab, "reassigned") == []
    lab.come_to_rest()
    assert len(marks(lab, "reassigned")) == 1 and on_disk(lab, 3) == []


def _late_answer(lab: Lab, request: StopReplicaRequest) -> None:
    """An answer to `request` that waited in the controller's queue is looked at now."""
    controller = lab.core(1).controller
    results = tuple((key, ErrorCode.NONE) for key, *_ in request.partitions)
    controller.queue.append(lambda: replicas_stopped(controller.state, 3, request, results))
    controller.pump()


def test_an_answer_of_an_earlier_incarnation_or_reign_is_no_deletion(lab: Lab) -> None:
    """Rule (KAFKA-9946): an answer waits in the controller's queue behind the bounce of its broker, or behind
    another election of this controller. What it says is of a request that is not the one that is waited for
    now."""
    delete_topic(lab)
    until_sent(lab, kafka.StopReplicaRequest)
    state = lab.core(1).controller.state
    epoch, broker_epoch = state.context.epoch, state.context.live_brokers[3]
    for controller_epoch, incarnation in ((epoch, broker_epoch - 1), (epoch - 1, broker_epoch)):
        late = StopReplicaRequest(
            correlation_id=1,
            controller_id=1,
            controller_epoch=controller_epoch,
            broker_epoch=incarnation,
            partitions=((T0, kafka.EPOCH_DURING_DELETE, True),),
        )
        _late_answer(lab, late)
        assert state.replica_phase(T0, 3) is ReplicaPhase.DELETION_STARTED
    lab.come_to_rest()
    assert on_disk(lab, 3) == [] and lab.children(znodes.DELETE_TOPICS) == []
