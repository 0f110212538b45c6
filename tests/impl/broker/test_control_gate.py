"""The gate of control requests: controller epoch, broker epoch; leader epochs behind it."""

import pytest
from impl_lab import T0, Lab

from fencepost.bugs.controller.kafka_532 import ObeysAnyController
from fencepost.impl.broker.control_gate import ControlGate
from fencepost.impl.broker.parts import Parts
from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode


class ObeysAnyIncarnation(ControlGate):
    """KIP-380 planted."""

    def broker_epoch_fencing(self, request: kafka.ControlRequest) -> ErrorCode:
        return ErrorCode.NONE


def last_answer(lab: Lab) -> kafka.ControlResponse:
    answer = lab.answers[-1].message
    assert isinstance(answer, kafka.ControlResponse)
    return answer


def _late_zombie(parts: Parts) -> Lab:
    lab = Lab(parts=parts).led(2, 1, to=(), controller_epoch=1)
    lab.lead(1, 5, controller_epoch=3)
    lab.lead(2, 6, controller_epoch=2, to=(1,))
    return lab


def test_a_controller_whose_successor_was_obeyed_is_refused() -> None:
    """Rule (KAFKA-532, CTRL-FENCE): a lower controller epoch is STALE_CONTROLLER_EPOCH, whatever the request,
    and the answer names the higher one."""
    lab = _late_zombie(Parts())
    assert lab.partition(1).leader_epoch == 5
    assert (last_answer(lab).error, last_answer(lab).controller_epoch) == (
        ErrorCode.STALE_CONTROLLER_EPOCH,
        3,
    )
    refused = lab.recorded(Name.CONTROL_REQUEST_REFUSED, 1)
    assert [(event.cause, event.controller_epoch) for event in refused] == [
        ("UpdateMetadataRequest", 2),
        ("LeaderAndIsrRequest", 2),
    ]


def test_without_the_protection_the_zombie_is_obeyed() -> None:
    """Rule (KAFKA-532): the scenario can fail."""
    assert _late_zombie(Parts(control_gate=ObeysAnyController)).partition(1).leader_epoch == 6


def test_a_higher_controller_epoch_is_adopted() -> None:
    """Rule (C2): a broker learns of a new controller by its first request."""
    lab = Lab(brokers=1)
    for epoch in (3, 7):
        lab.control(kafka.UpdateMetadataRequest, 1, (), controller_epoch=epoch)
        assert last_answer(lab).error is ErrorCode.NONE and lab.core(1).gate.controller_epoch == epoch


def _late_for_an_earlier_process(parts: Parts) -> Lab:
    lab = Lab(parts=parts)
    old = lab.core(1).broker_context.broker_epoch
    late = lab.lead(1, 1, to=(1,))
    lab.restart(1)
    lab.control(kafka.LeaderAndIsrRequest, 1, late.partitions, broker_epoch=old)
    return lab


def test_a_request_for_an_earlier_incarnation_is_refused() -> None:
    """Rule (KIP-380): a broker that restarted does not act on what was meant for the process before it."""
    lab = _late_for_an_earlier_process(Parts())
    assert last_answer(lab).error is ErrorCode.STALE_BROKER_EPOCH
    assert not lab.partition(1).is_leader


def test_without_the_protection_a_restarted_broker_leads_in_a_finished_role() -> None:
    """Rule (KIP-380): the scenario can fail."""
    assert _late_for_an_earlier_process(Parts(control_gate=ObeysAnyIncarnation)).partition(1).is_leader


@pytest.mark.parametrize(
    ("ahead", "error"), [(0, ErrorCode.NONE), (1, ErrorCode.NONE), (-1, ErrorCode.STALE_BROKER_EPOCH)]
)
def test_only_an_older_broker_epoch_is_stale(ahead: int, error: ErrorCode) -> None:
    """Rule (KIP-380): a controller may know a newer incarnation before the broker itself does; that is no
    reason to refuse."""
    lab = Lab(brokers=1)
    epoch = lab.core(1).broker_context.broker_epoch
    lab.control(kafka.UpdateMetadataRequest, 1, (), broker_epoch=epoch + ahead)
    assert last_answer(lab).error is error


def test_a_refused_request_leaves_no_trace_of_its_epoch() -> None:
    """Rule: a request for another incarnation does not raise the controller epoch that this one obeys."""
    lab = Lab(brokers=1)
    epoch = lab.core(1).broker_context.broker_epoch
    lab.control(kafka.UpdateMetadataRequest, 1, (), controller_epoch=9, broker_epoch=epoch - 1)
    assert lab.core(1).gate.controller_epoch == -1
    lab.control(kafka.UpdateMetadataRequest, 1, (), controller_epoch=2)
    assert last_answer(lab).error is ErrorCode.NONE


@pytest.mark.parametrize(
    "kind", [kafka.LeaderAndIsrRequest, kafka.UpdateMetadataRequest, kafka.StopReplicaRequest]
)
def test_every_control_request_passes_the_gate(kind: type) -> None:
    """Rule (C2): all three kinds carry both epochs, and both are checked."""
    lab = Lab(brokers=1)
    lab.control(kafka.UpdateMetadataRequest, 1, (), controller_epoch=5)
    lab.control(kind, 1, (), controller_epoch=4)
    assert last_answer(lab).error is ErrorCode.STALE_CONTROLLER_EPOCH
    lab.control(kind, 1, (), controller_epoch=5, broker_epoch=0)
    assert last_answer(lab).error is ErrorCode.STALE_BROKER_EPOCH


def test_of_several_partitions_only_those_with_a_higher_epoch_change() -> None:
    """Rule (KAFKA-1188): the leader epoch is checked per partition; one request may be stale for one and not
    for another."""
    lab = Lab()
    other = kafka.TopicPartition("t", 1)
    first = lab.lead(1, 4)
    second = lab.lead(1, 4, key=other)
    newer = lab.lead(2, 5, key=other, to=(2,))
    lab.control(kafka.LeaderAndIsrRequest, 1, first.partitions + newer.partitions)
    assert lab.partition(1, T0).is_leader and not lab.partition(1, other).is_leader
    lab.control(kafka.LeaderAndIsrRequest, 1, second.partitions)
    assert not lab.partition(1, other).is_leader
