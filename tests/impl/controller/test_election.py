"""Who is the controller: the race for /controller, lost replies, sessions, zombies and their fences."""

import pytest
from impl_lab import T0, Lab

from fencepost.bugs.controller.kafka_6082 import WritesUnfenced
from fencepost.impl.broker.parts import Parts
from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.controller.elector import ControllerElector
from fencepost.impl.core.broker_states import BrokerState
from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import ControlResponse
from fencepost.impl.zookeeper import interface as zk
from fencepost.impl.zookeeper import znodes
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode


def elected(**options: object) -> Lab:
    """Three brokers; broker 1 is the controller, and t-0 is led by broker 2."""
    lab = Lab(scripted=False, **options)
    lab.create_topic({0: (2, 3, 1)}).settle()
    assert lab.controllers() == [1] and lab.state().leader == 2
    return lab


@pytest.fixture
def lab() -> Lab:
    """Such a cluster."""
    return elected()


def controller_epoch(lab: Lab) -> int:
    """As ZooKeeper has it."""
    node = lab.tree.node(znodes.CONTROLLER_EPOCH)
    assert node is not None
    return int(node.data)


def until_multi(lab: Lab, node: int) -> None:
    """Carry out what this broker asks, up to its next multi."""
    for _ in range(100):
        if isinstance(lab.drivers[node].held[0].request, zk.Multi):
            return
        lab.release_zookeeper(node, 1)
    raise AssertionError("it never wrote")


# ---- the race


def test_the_first_controller_has_epoch_1(lab: Lab) -> None:
    """Rule (C1): one multi creates /controller and raises /controller_epoch; the others stay brokers."""
    assert controller_epoch(lab) == 1
    assert [(event.node, event.controller_epoch) for event in lab.recorded(Name.CONTROLLER_ELECTED)] == [
        (1, 1)
    ]


def test_two_that_saw_no_controller_do_not_both_win() -> None:
    """Rule (C1): the multi decides the race, whatever both have read before."""
    lab = Lab(scripted=False, brokers=2, start=False)
    for node in (1, 2):
        lab.hold_zookeeper(node)
        lab.start(node)
    for node in (2, 1):
        for _ in range(100):
            request = lab.drivers[node].held[0].request
            if isinstance(request, zk.Multi):
                break
            lab.release_zookeeper(node, 1)
    lab.release_zookeeper(1)
    lab.release_zookeeper(2)
    assert lab.controllers() == [1] and controller_epoch(lab) == 1
    lab.crash(1)
    assert lab.controllers() == [2] and controller_epoch(lab) == 2


def test_an_epoch_is_given_out_once() -> None:
    """Rule (C1): the multi expects the version of /controller_epoch that was read: a controller that came and
    went meanwhile keeps its epoch to itself."""
    lab = Lab(scripted=False, brokers=2, start=False)
    lab.hold_zookeeper(1)
    lab.start(1)
    until_multi(lab, 1)
    lab.start(2)
    assert lab.controllers() == [2]
    lab.crash(2)
    lab.release_zookeeper(1)
    assert [(event.node, event.controller_epoch) for event in lab.recorded(Name.CONTROLLER_ELECTED)] == [
        (2, 1),
        (1, 2),
    ]


class ReturnsEarly(ControllerElector):
    """KAFKA-13407 planted."""

    def names_me(self, controller: zk.Data) -> bool:
        return False


def _lost_reply(parts: Parts) -> Lab:
    lab = Lab(scripted=False, brokers=1, start=False, parts=parts)
    lab.hold_zookeeper(1)
    lab.start(1)
    until_multi(lab, 1)
    lab.drivers[1].replies_to_lose = 1
    lab.release_zookeeper(1)
    return lab.create_topic({0: (1,)}).settle()


def test_whoever_won_but_was_not_told_finds_out() -> None:
    """Rule (KAFKA-13407): after a lost reply, /controller that names me and my session means that I won;
    fail-over runs."""
    lab = _lost_reply(Parts())
    assert lab.controllers() == [1] and controller_epoch(lab) == 1
    assert lab.state().leader == 1


def test_without_the_protection_nobody_controls() -> None:
    """Rule (KAFKA-13407, LIVE): the scenario can fail."""
    lab = _lost_reply(Parts(controller_elector=ReturnsEarly))
    assert lab.controllers() == [] and lab.tree.node(znodes.CONTROLLER) is not None


def test_a_node_of_another_session_is_not_mine() -> None:
    """Rule: /controller that names this broker's id but belongs to an earlier process's session makes no
    controller."""
    lab = Lab(scripted=False, brokers=1, start=False)
    lab.admin(zk.Create(znodes.CONTROLLER, znodes.encode_controller(1, 0)))
    lab.start(1)
    assert lab.controllers() == []
    lab.admin(zk.Delete(znodes.CONTROLLER))
    assert lab.controllers() == [1]


# ---- sessions


def test_a_controller_whose_session_expires_resigns_and_may_come_back_with_a_higher_epoch(lab: Lab) -> None:
    """Rule (C1, KAFKA-4229): after an expiry there is exactly one active controller, the one that /controller
    names, each time in a new epoch."""
    for epoch in range(2, 6):
        (before,) = lab.controllers()
        lab.expire(before).settle()
        (after,) = lab.controllers()
        node = lab.tree.node(znodes.CONTROLLER)
        assert node is not None and znodes.decode_controller(node.data) == after != before
        assert controller_epoch(lab) == epoch == lab.core(after).controller.state.context.epoch
    assert len(lab.recorded(Name.CONTROLLER_RESIGNED)) == 4


def test_losing_the_connection_only_changes_nothing(lab: Lab) -> None:
    """Rule: a connection that comes back in the same session costs no election."""
    lab.hold_zookeeper(1)
    lab.crash(3)
    lab.reconnect(1).settle()
    assert lab.controllers() == [1] and lab.state().isr == (2, 1)
    assert lab.recorded(Name.CONTROLLER_RESIGNED) == []


def test_resignation_forgets_everything() -> None:
    """Rule (KAFKA-5310): nothing of one reign is left in the next: context, phases, channels, batch,
    timer."""
    lab = elected(leader_imbalance_check_ms=5_000)
    state = lab.core(1).controller.state
    lab.expire(1)
    assert state.context == ControllerContext() and state.phases == {} and not state.active
    assert not (state.channels.channels or state.channels.leader_and_isr or state.channels.metadata)
    assert not any(key[0] in ("control_request", "leader_balance") for key in lab.drivers[1].timers)


# ---- zombies


def zombie(parts: Parts) -> Lab:
    """Broker 1 pauses in the middle of a procedure; broker 2 becomes controller but has written no
    partition's state yet; broker 1 goes on."""
    lab = elected(parts=parts)
    lab.hold_zookeeper(1)
    lab.crash(3)  # broker 1 will want to take it out of the ISR
    lab.hold_zookeeper(2)
    lab.end_session(1)
    until_multi(lab, 2)
    lab.release_zookeeper(2, 1)
    assert controller_epoch(lab) == 2 and lab.state().controller_epoch == 1
    lab.notice_expiry(1)
    return lab


def test_a_deposed_controllers_write_is_refused_and_it_resigns() -> None:
    """Rule (KAFKA-6082, CTRL-FENCE): each controller write checks /controller_epoch in the same transaction;
    a refusal means moved: resign."""
    lab = zombie(Parts())
    assert (lab.state().leader_epoch, lab.state().isr) == (0, (2, 3, 1))
    assert [event.controller_epoch for event in lab.recorded(Name.CONTROLLER_WRITE_REFUSED, 1)] == [1]
    assert [event.controller_epoch for event in lab.recorded(Name.CONTROLLER_RESIGNED, 1)] == [1]
    lab.release_zookeeper(2).settle()
    assert lab.controllers() == [2]
    assert (lab.state().leader, lab.state().controller_epoch) == (2, 2) and 3 not in lab.state().isr


def test_without_the_fence_a_deposed_controller_writes() -> None:
    """Rule (KAFKA-6082): the scenario can fail."""
    lab = zombie(Parts(controller_writer=WritesUnfenced))
    assert (lab.state().leader_epoch, lab.state().controller_epoch) == (1, 1)


def test_a_controller_that_learns_of_a_later_one_from_a_broker_resigns(lab: Lab) -> None:
    """Rule (C2): an answer with a higher controller epoch deposes whoever gets it, and it sends nothing
    more."""
    lab.drop()
    lab.hold_zookeeper(1)
    lab.step(
        1,
        MessageArrived(
            2,
            ControlResponse(
                correlation_id=-1,
                kind="UpdateMetadataRequest",
                error=ErrorCode.STALE_CONTROLLER_EPOCH,
                controller_epoch=9,
            ),
        ),
    )
    assert lab.controllers() == []
    assert lab.recorded(Name.CONTROLLER_RESIGNED, 1)[-1].cause.startswith("broker 2 has obeyed")


def test_a_procedure_that_outlives_its_controllers_reign_sends_nothing(lab: Lab) -> None:
    """Rule (KAFKA-4447): a controller that resigns in the middle of a procedure opens no channel and sends no
    request when the procedure goes on."""
    lab.crash(3).settle()
    lab.drop()
    lab.hold_zookeeper(1)
    lab.start(3)  # broker 1 begins to read the brokers
    answer = ControlResponse(
        correlation_id=-1,
        kind="UpdateMetadataRequest",
        error=ErrorCode.STALE_CONTROLLER_EPOCH,
        controller_epoch=9,
    )
    lab.step(1, MessageArrived(2, answer))
    until_election(lab)
    sent = [
        mail.message
        for mail in lab.mail
        if mail.source == 1
        and isinstance(mail.message, kafka.UpdateMetadataRequest | kafka.LeaderAndIsrRequest)
    ]
    assert sent == []
    assert lab.core(1).controller.state.channels.channels == {}


def until_election(lab: Lab) -> None:
    """Let broker 1's procedure end; the election that follows it begins by looking at /controller."""
    for _ in range(200):
        held = lab.drivers[1].held
        if not held or held[0].request.path == znodes.CONTROLLER:
            return
        lab.release_zookeeper(1, 1)


def test_a_zombies_requests_are_refused_by_whoever_heard_of_its_successor(lab: Lab) -> None:
    """Rule (KAFKA-532): after an election each broker that obeyed the new controller refuses the old one's
    requests, which then resigns."""
    lab.drop()
    lab.hold_zookeeper(1)
    lab.end_session(1).settle(2, 3)
    assert lab.core(3).gate.controller_epoch == 2
    state = lab.core(1).controller.state
    state.channels.add_metadata((T0,))
    state.channels.flush(state.context)  # outside a step: what it sends is not released
    request = state.channels.channels[3].queue[-1]
    before = len(lab.recorded(Name.CONTROL_REQUEST_APPLIED, 3))
    lab.step(3, MessageArrived(1, request))
    assert len(lab.recorded(Name.CONTROL_REQUEST_APPLIED, 3)) == before
    refused = lab.deliver(3, 1, ControlResponse)
    assert (refused.error, refused.controller_epoch) == (ErrorCode.STALE_CONTROLLER_EPOCH, 2)
    assert 1 not in lab.controllers()


def test_the_epoch_is_read_in_the_election_only(lab: Lab) -> None:
    """Rule (KAFKA-1096): a controller whose epoch was overtaken does not adopt the newer one, whatever it
    reads afterwards."""
    lab.hold_zookeeper(1)
    lab.end_session(1).settle(2, 3)
    assert controller_epoch(lab) == 2
    assert lab.core(1).controller.state.context.epoch == 1
    lab.notice_expiry(1)
    assert lab.controllers() == [2]


def test_a_controller_that_reads_its_successors_writing_resigns(lab: Lab) -> None:
    """Rule (C3): a state of a higher controller epoch is never taken into the context of an older controller,
    even before any write is refused."""
    notification = zk.Create(znodes.ISR_CHANGE_PREFIX, znodes.encode_isr_changes([T0]), sequential=True)
    lab.hold_zookeeper(1)
    lab.admin(notification)  # broker 1 begins to read what changed
    lab.crash(3)
    lab.end_session(1).settle(2)
    assert lab.controllers() == [1, 2] and lab.state().controller_epoch == 2
    lab.hold_zookeeper(2)
    lab.admin(notification)
    lab.notice_expiry(1)
    (resigned,) = lab.recorded(Name.CONTROLLER_RESIGNED, 1)
    assert resigned.cause == "controller epoch 2 wrote a partition's state"
    assert lab.recorded(Name.CONTROLLER_WRITE_REFUSED, 1) == []


def test_a_successors_epoch_is_not_adopted() -> None:
    """Rule (KAFKA-1096, found by the profile elections, seed 111): a broker that stood still between reading
    /controller and /controller_epoch takes the epoch for its own only if the node still names it; here its
    session ended and broker 2 was elected in between."""
    lab = Lab(scripted=False, brokers=1).settle()
    elector = lab.core(1).controller.elector
    mine = zk.Stat(1, 1, 0, 0, elector.broker_context.session_id, 0)
    others = zk.Stat(9, 9, 0, 0, elector.broker_context.session_id + 1, 0)
    race = elector.run()
    assert next(race) == zk.GetData(znodes.CONTROLLER, watch=True)
    race.send(zk.Data(znodes.encode_controller(1, 0), mine))
    assert race.send(zk.Data(b"5", others)) == zk.GetData(znodes.CONTROLLER, watch=True)
    race.send(zk.Data(znodes.encode_controller(2, 0), others))
    with pytest.raises(StopIteration) as ended:
        race.send(zk.Data(znodes.encode_controller(2, 0), others))
    assert ended.value.value is None


@pytest.mark.parametrize("late", [False, True])
def test_a_broker_that_stops_is_not_elected(late: bool) -> None:
    """Rule (C1, C11, found by the profile everything, seed 900467): the watch on its own /controller fires
    before its process ends. It does not run for it; if it has closed its logs since it sent the request that
    wins (late), it gives /controller away. Else nobody is the controller until its session ends."""
    lab = Lab(scripted=False, brokers=1).settle()
    elector = lab.core(1).controller.elector
    stat = zk.Stat(1, 1, 0, 0, 0, 0)
    race = elector.run()
    next(race)
    race.send(zk.Failed(zk.ZooKeeperError.NO_NODE))
    if late:
        assert isinstance(race.send(zk.Data(b"5", stat)), zk.Multi)
    elector.broker_context.broker_state = BrokerState.SHUTTING_DOWN
    if late:
        assert race.send(zk.MultiDone((zk.Created(znodes.CONTROLLER, 9), zk.Done(stat)))) == zk.Delete(
            znodes.CONTROLLER
        )
    with pytest.raises(StopIteration) as ended:
        race.send(zk.Done() if late else zk.Data(b"5", stat))
    assert ended.value.value is None
