"""An answer counts for the request that it answers: not for another of its kind, of another incarnation, or
of another reign."""

from typing import Any

from controller_lab import (
    cluster,
    delete_topic,
    marks,
    on_disk,
    reassign,
    refused_transitions,
    settle_all,
    until_sent,
)
from impl_lab import T0, Lab

from fencepost.impl.controller.legal_transitions import ReplicaPhase
from fencepost.impl.controller.listeners import replicas_stopped
from fencepost.impl.core.core_interface import StopRequested
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import StopReplicaRequest
from fencepost.impl.zookeeper import znodes
from fencepost.traces.kafka_names.outcomes import ErrorCode


def under_way(lab: Lab, kind: type) -> list[Any]:
    """The messages of this kind that nobody delivered yet."""
    return [mail.message for mail in lab.mail if isinstance(mail.message, kind)]


def stopping_with_a_stop_under_way() -> Lab:
    """Broker 3, a follower of t-0 on (2, 3), stops cleanly; the StopReplica of it, which deletes nothing, is
    under way and not delivered. The controller's answer to the broker is lost, so that the broker runs on for
    a while."""
    lab = cluster({0: (2, 3)})
    lab.produce(2, 11)
    settle_all(lab)
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
    lab.crash(3)
    settle_all(lab)
    assert lab.children(znodes.DELETE_TOPICS) == ["t"] and on_disk(lab, 3) == ["t-0"]
    lab.start(3)
    settle_all(lab)
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
    settle_all(lab)
    assert len(marks(lab, "reassigned")) == 1 and on_disk(lab, 3) == []


def _late_answer(lab: Lab, request: StopReplicaRequest) -> None:
    """An answer to `request` that waited in the controller's queue is looked at now."""
    controller = lab.core(1).controller
    results = tuple((key, ErrorCode.NONE) for key, *_ in request.partitions)
    controller.queue.append(lambda: replicas_stopped(controller.state, 3, request, results))
    controller.pump()


def test_an_answer_of_an_earlier_incarnation_or_reign_is_no_deletion() -> None:
    """Rule (KAFKA-9946): an answer waits in the controller's queue behind the bounce of its broker, or behind
    another election of this controller. What it says is of a request that is not the one that is waited for
    now."""
    lab = cluster({0: (2, 3)})
    settle_all(lab)
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
    settle_all(lab)
    assert on_disk(lab, 3) == [] and lab.children(znodes.DELETE_TOPICS) == []
