"""Controlled shutdown in five steps: leaders move first, in few round trips; what cannot move is told;
earlier incarnations are refused."""

import pytest
from controller_lab import cluster, delete_topic, marks, refused_transitions, settled, until_sent
from impl_lab import T0, Lab

from fencepost.impl.broker.controlled_shutdown import BrokerState
from fencepost.impl.broker.parts import Parts
from fencepost.impl.controller.strategies import LeaderElection
from fencepost.impl.core.core_interface import MessageArrived, StopRequested
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Multi, SetData
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode


def stop(lab: Lab, node: int) -> None:
    """SIGTERM."""
    lab.step(node, StopRequested())


def is_up(lab: Lab, node: int) -> bool:
    """Whether its process runs."""
    return lab.drivers[node].core is not None


def ask(lab: Lab, node: int, broker_epoch: int, controller: int = 1) -> kafka.ControlledShutdownResponse:
    """A broker's request, sent by hand; its answer."""
    request = kafka.ControlledShutdownRequest(correlation_id=-77, broker_id=node, broker_epoch=broker_epoch)
    lab.step(controller, MessageArrived(99, request))
    return lab.answers[-1].message


# ---- the five steps


def test_leaders_move_before_their_broker_stops() -> None:
    """Rule (C11): every partition has a live leader at every moment, nothing is lost, and the broker's log is
    whole when it returns."""
    lab = settled({0: (2, 3), 1: (3, 2), 2: (2, 4)}, values=(11,))
    stop(lab, 2)
    lab.come_to_rest()
    assert not is_up(lab, 2)
    for number, leader in ((0, 3), (1, 3), (2, 4)):
        key = TopicPartition("t", number)
        assert (lab.state(key).leader, lab.state(key).isr) == (leader, (leader,))
        assert lab.partition(leader, key).is_leader
    assert lab.values(3) == [11] and refused_transitions(lab) == 0
    lab.start(2).come_to_rest()
    assert lab.values(2) == [11] and set(lab.state().isr) == {2, 3}


def test_the_broker_stops_only_after_the_answer() -> None:
    """Rule (C11): until the controller has answered, the broker serves; then it writes its checkpoint, takes
    its registration away and halts."""
    lab = settled({0: (2, 3)}, values=(11,))
    stop(lab, 2)
    until_sent(lab, kafka.ControlledShutdownResponse)
    assert lab.state().leader == 3 and is_up(lab, 2)
    assert lab.core(2).shutdown.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    lab.deliver(1, 2, kafka.ControlledShutdownResponse)
    assert not is_up(lab, 2) and lab.tree.node(znodes.broker_path(2)) is None
    lab.start(2)
    assert lab.high_watermark(2) == 1  # from the checkpoint


def test_one_request_of_each_kind_per_broker() -> None:
    """Rule (C10, C11): however many partitions, each broker hears of them in one LeaderAndIsr, one
    UpdateMetadata and, the one that leaves, one StopReplica."""
    lab = settled({number: (2, 3, 4) if number % 2 else (3, 2, 4) for number in range(40)})
    begin = len(lab.events)
    stop(lab, 2)
    lab.settle()
    applied = [
        (event.node, event.cause)
        for event in lab.events[begin:]
        if event.name is Name.CONTROL_REQUEST_APPLIED
    ]
    shutdown = next(index for index, event in enumerate(lab.events) if event.cause == "controlled_shutdown")
    assert shutdown >= begin and not is_up(lab, 2)
    for node in (3, 4):
        kinds = [kind for broker, kind in applied if broker == node]
        assert kinds[:2] == ["LeaderAndIsrRequest", "UpdateMetadataRequest"]
        assert kinds.count("LeaderAndIsrRequest") == 1, kinds


def test_leaders_are_stored_in_few_round_trips() -> None:
    """Rule (C11): the states of all partitions are written in groups: one multi for the leaders, one for the
    ISRs."""
    lab = settled({number: (2, 3, 4) if number % 2 else (3, 2, 4) for number in range(40)})
    lab.hold_zookeeper(1)
    stop(lab, 2)
    lab.deliver(2, 1, kafka.ControlledShutdownRequest)
    groups = []
    while lab.drivers[1].held:
        request = lab.drivers[1].held[0].request
        if isinstance(request, Multi):
            groups.append(sum(isinstance(member, SetData) for member in request.operations))
        lab.release_zookeeper(1, 1).settle(1, 3, 4)
    assert groups[:2] == [20, 20]


def test_a_conflict_fails_no_other_partition() -> None:
    """Rule: the group whose write met a leader's ISR change is written one by one, and that partition is
    chosen for anew."""
    lab = settled(dict.fromkeys(range(6), (2, 3, 4)))
    lab.hold_zookeeper(1)
    stop(lab, 2)
    lab.deliver(2, 1, kafka.ControlledShutdownRequest)
    state = lab.state()
    lab.admin(SetData(znodes.state_path(T0), znodes.encode_state(state)))  # another version
    lab.release_zookeeper(1).come_to_rest()
    assert not is_up(lab, 2)
    for number in range(6):
        assert lab.state(TopicPartition("t", number)).leader == 3


def test_the_controller_may_stop_itself() -> None:
    """Rule (C11): a controller asks itself, moves its own leaders, gives /controller away and stops; another
    one is elected at once."""
    lab = cluster({0: (1, 3)}).settle()
    lab.come_to_rest()
    assert lab.state().leader == 1
    stop(lab, 1)
    lab.come_to_rest()
    assert not is_up(lab, 1) and lab.state().leader == 3 and len(lab.controllers()) == 1
    assert lab.recorded(Name.SESSION_EXPIRED) == []


# ---- what cannot move


def only_one_in_sync(**options: object) -> Lab:
    """Partition t-0 has no ISR member but broker 2."""
    lab = settled({0: (2, 3)}, values=(11,), **options)
    lab.crash(3).come_to_rest()
    assert lab.state().isr == (2,)
    return lab


def test_the_last_isr_member_keeps_its_partition() -> None:
    """Rule (KAFKA-340, COMMIT-SAFE): the leader is not moved outside the ISR; the partition is told as
    remaining."""
    lab = only_one_in_sync()
    lab.start(3)
    epoch = lab.core(2).broker_context.broker_epoch
    lab.drop()
    response = ask(lab, 2, epoch)
    assert (response.error, response.remaining) == (ErrorCode.NONE, (T0,))
    assert lab.state().leader == 2 and lab.state().isr == (2,)


class MovesAnywhere(LeaderElection):
    """KAFKA-340 planted: any live replica will do."""

    def controlled_shutdown(self, assignment, isr, electable, leader):
        return next(((replica, (replica,)) for replica in assignment if replica in electable), None)


def test_without_the_protection_a_committed_record_is_lost() -> None:
    """Rule (KAFKA-340): the scenario can fail: a replica outside the ISR leads without the record."""
    lab = only_one_in_sync(parts=Parts(leader_election=MovesAnywhere))
    lab.produce(2, 12)
    lab.start(3)
    lab.drop()
    ask(lab, 2, lab.core(2).broker_context.broker_epoch)
    assert lab.state().leader == 3 and lab.high_watermark(2) == 2 and 12 not in lab.values(3)


def test_a_broker_asks_again_and_stops_when_the_isr_has_grown() -> None:
    """Rule (C11): while partitions remain the broker serves and asks again; once another replica is in sync
    it goes."""
    lab = only_one_in_sync()
    stop(lab, 2)
    lab.advance(2_000, settle=True)
    assert is_up(lab, 2) and lab.state().leader == 2
    lab.start(3).come_to_rest(20_000)
    assert not is_up(lab, 2) and lab.state().leader == 3 and lab.values(3) == [11]


def test_a_broker_that_cannot_be_relieved_stops_at_last() -> None:
    """Rule (C11, KAFKA-999): after a bounded number of attempts it stops all the same; its partition waits
    for it without a leader."""
    lab = only_one_in_sync()
    stop(lab, 2)
    lab.come_to_rest(20_000)
    assert not is_up(lab, 2) and len(marks(lab, "controlled_shutdown")) == 3
    assert (lab.state().leader, lab.state().isr) == (-1, (2,))
    lab.start(2).come_to_rest()
    assert lab.state().leader == 2 and lab.values(2) == [11]


def test_a_broker_stops_without_a_controller_or_zookeeper(lab: Lab) -> None:
    """Rule (KAFKA-1298, LIVE): neither an absent controller nor an absent ZooKeeper keeps a process from
    stopping."""
    lab.hold_zookeeper(2)
    stop(lab, 2)
    lab.advance(20_000, nodes=(2,))
    assert not is_up(lab, 2)


@pytest.mark.parametrize("assignment", [{0: (2,)}, {0: (2,), 1: (2, 3)}])
def test_partitions_with_one_replica_go_with_their_broker(assignment: dict[int, tuple[int, ...]]) -> None:
    """Rule (C11): nobody could take them, so that they hold nobody up."""
    lab = settled(assignment)
    stop(lab, 2)
    lab.come_to_rest(3_000)
    assert not is_up(lab, 2) and len(marks(lab, "controlled_shutdown")) == 1


def test_a_topic_that_is_being_deleted_holds_nobody_up() -> None:
    """Rule (KAFKA-2937): its partitions need no leader any more."""
    lab = only_one_in_sync()
    delete_topic(lab)
    until_sent(lab, kafka.StopReplicaRequest)
    response = ask(lab, 2, lab.core(2).broker_context.broker_epoch)
    assert response.remaining == ()


# ---- fences


def test_a_request_of_an_earlier_incarnation_moves_nothing(lab: Lab) -> None:
    """Rule (KIP-380): a controlled shutdown that is retried after the broker bounced does not take leaders
    from the one that lives."""
    old = lab.core(2).broker_context.broker_epoch
    lab.restart(2).come_to_rest()
    before = lab.state()
    response = ask(lab, 2, old)
    assert response.error is ErrorCode.STALE_BROKER_EPOCH and lab.state() == before
    assert lab.core(1).controller.state.context.shutting_down == {}


def test_who_is_no_controller_refuses(lab: Lab) -> None:
    """Rule (C1): the broker asks whoever /controller names next time."""
    response = ask(lab, 2, lab.core(2).broker_context.broker_epoch, controller=3)
    assert response.error is ErrorCode.STALE_CONTROLLER_EPOCH and lab.state().leader == 2


def test_a_shutdown_ends_with_its_incarnation(lab: Lab) -> None:
    """Rule (KAFKA-1168): a broker that returns after a controlled shutdown may lead again."""
    stop(lab, 2)
    lab.come_to_rest()
    lab.start(2).come_to_rest()
    assert lab.core(1).controller.state.context.shutting_down == {}
    lab.crash(3).come_to_rest()
    assert lab.state().leader == 2


def test_a_broker_that_shuts_down_is_not_put_back_into_an_isr() -> None:
    """Rule (KAFKA-14140): its last fetch, arriving after it left the ISR, does not bring it back: leaders
    know who is about to stop."""
    lab = cluster({0: (3, 2)})
    lab.produce(3, 11)
    lab.come_to_rest()
    lab.drop()
    ask(lab, 2, lab.core(2).broker_context.broker_epoch)
    assert lab.state().isr == (3,)
    for _ in range(4):
        for mail in [mail for mail in lab.mail if mail.target == 3]:
            lab.deliver(mail.source, 3, type(mail.message))
        for mail in [mail for mail in lab.mail if mail.target == 1]:
            lab.deliver(mail.source, 1, type(mail.message))
    epoch = lab.partition(3).leader_epoch
    assert epoch == lab.state().leader_epoch
    assert lab.fetch(3, 1, epoch=epoch, replica=2).error is ErrorCode.NONE
    assert lab.state().isr == (3,)


@pytest.mark.parametrize("step", range(6))
def test_a_new_controller_is_asked_when_the_old_one_dies(step: int) -> None:
    """Rule (C11): whichever ZooKeeper request is the controller's last, the broker asks its successor and
    stops, and every partition has a leader."""
    lab = settled({0: (2, 3), 1: (3, 2)})
    lab.hold_zookeeper(1)
    stop(lab, 2)
    lab.settle()
    for _ in range(step):
        if lab.drivers[1].held:
            lab.release_zookeeper(1, 1).settle()
    lab.crash(1).come_to_rest(20_000)
    assert not is_up(lab, 2)
    for number in (0, 1):
        assert lab.state(TopicPartition("t", number)).leader == 3
    assert refused_transitions(lab) == 0


def returned_unannounced() -> Lab:
    """Leader 2 has taken follower 3 back; the controller will hear of that with the next notification."""
    lab = settled({0: (2, 3)}, values=(11,), isr_change_propagation_ms=60_000)
    lab.restart(3).come_to_rest()
    assert lab.state().isr == (2, 3)
    assert lab.core(1).controller.state.context.states[T0].isr == (2,)
    return lab


def test_a_follower_whose_return_was_not_announced_leaves_the_isr() -> None:
    """Rule (C11): the leader has taken a follower back, and the controller will hear of that with the next
    notification. The follower stops before; the controller asks ZooKeeper who is in the ISR, not its memory
    (found by the check meantime, profile chaos, seed 14)."""
    lab = returned_unannounced()
    stop(lab, 3)
    for _ in range(1_000):
        if lab.state().isr == (2,) or not is_up(lab, 3):
            break
        lab.deliver() if lab.mail else lab.advance(10)
    assert lab.state().isr == (2,) and is_up(lab, 3)


# A broker goes: what the controller does for its partitions, whatever it remembers of them.


@pytest.mark.parametrize("bounces", [False, True])
def test_a_follower_whose_return_was_not_announced_leaves_the_isr_when_it_dies(bounces: bool) -> None:
    """Rule (C9): the leader has taken a follower back, and the controller will hear of that with the next
    notification. The follower dies before; the controller asks ZooKeeper who is in the ISR, as Kafka does,
    not its memory."""
    lab = returned_unannounced()
    epoch = lab.state().leader_epoch
    lab.crash(3)
    if bounces:
        lab.start(3)
    for _ in range(1_000):
        if lab.state().leader_epoch > epoch:
            break
        lab.deliver() if lab.mail else lab.advance(10)
    assert (lab.state().isr, lab.state().leader_epoch) == ((2,), epoch + 1)
    assert refused_transitions(lab) == 0
