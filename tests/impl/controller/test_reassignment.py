"""Reassignment: what is refused, each step, and a fail-over at every ZooKeeper request of every step."""

import re

import pytest
from controller_lab import (
    assigned,
    cluster,
    delete_topic,
    fail_over_at,
    marks,
    on_disk,
    pending,
    reassign,
    refused_transitions,
    remove,
    settled,
    until_sent,
)
from impl_lab import T0, Lab

from fencepost.impl.controller.guards import ControllerGuards
from fencepost.impl.core.core_interface import TimerFired
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Delete, Multi
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode

T1 = TopicPartition("t", 1)


def moved(lab: Lab, target: tuple[int, ...], key: TopicPartition = T0) -> None:
    """The reassignment is complete in every respect."""
    assert assigned(lab)[key.partition] == target
    assert key not in pending(lab)
    state = lab.state(key)
    assert state.leader in target and set(state.isr) == set(target)
    for node, driver in lab.drivers.items():
        if driver.core is not None:
            assert (str(key) in on_disk(lab, node)) == (node in target), node
            assert (key in lab.core(node).replicas.partitions) == (node in target), node
    leader = lab.partition(state.leader, key)
    assert leader.is_leader and leader.replicas == target


# ---- the whole of it


@pytest.mark.parametrize("target", [(3, 4), (2, 4), (4, 2), (3, 2), (2, 3, 4), (2,), (3,)])
def test_replicas_move_to_the_target(target: tuple[int, ...]) -> None:
    """Rule (C12): whatever the target (disjoint, overlapping, another order, more, fewer), it ends as AR and
    ISR, with the data; old replicas are deleted. The same brokers in another order are another target, for
    the first one is preferred."""
    lab = settled({0: (2, 3)}, values=(11, 12))
    reassign(lab, {T0: target}).come_to_rest()
    moved(lab, target)
    assert lab.tree.node(znodes.REASSIGN) is None and refused_transitions(lab) == 0
    for node in target:
        assert lab.values(node) == [11, 12] and lab.high_watermark(node) == 2
    assert len(marks(lab, "reassigned")) == 1


def test_an_old_replica_is_kept_until_the_target_is_in_sync() -> None:
    """Rule (C12): while a target replica has not caught up, AR is old + target, the ISR is the old one and
    nothing is deleted."""
    lab = settled({0: (2, 3)}, values=(11,))
    reassign(lab, {T0: (4,)})
    for _ in range(40):
        lab.settle(1, 2, 3)
    assert assigned(lab)[0] == (2, 3, 4) and lab.state().isr == (2, 3)
    assert {2, 3} == {node for node in lab.drivers if "t-0" in on_disk(lab, node)}
    lab.come_to_rest()
    moved(lab, (4,))
    assert lab.values(4) == [11]


def test_an_old_replica_cannot_come_back() -> None:
    """Rule (KAFKA-1097, KAFKA-1170): a late fetch of an old replica is refused by a leader that has heard of
    AR = target, and the ISR write of one that has not meets another version."""
    lab = settled({0: (2, 3)}, values=(11,))
    before = lab.partition(2).leader_epoch
    reassign(lab, {T0: (2, 4)})
    for _ in range(3_000):
        if lab.state().isr == (2, 4):
            break
        lab.deliver() if lab.mail else lab.advance(100)
    deaf = lab.partition(2)
    assert deaf.leader_epoch == before + 1 < lab.state().leader_epoch and deaf.replicas == (2, 3, 4)
    deaf.isr = (2, 4)
    lab.core(2).replicas.isr.maybe_expand(deaf, 3)
    lab.step(2, TimerFired(("isr_notify",)))
    assert lab.state().isr == (2, 4)
    lab.come_to_rest()
    answer = lab.fetch(2, 1, epoch=lab.partition(2).leader_epoch, replica=3)
    assert answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    moved(lab, (2, 4))


# ---- checks

NOT_INTEGERS = b'{"partitions":[{"topic":"t","partition":0,"replicas":[[2]]}]}'


@pytest.mark.parametrize(
    ("key", "target", "reason"),
    [
        (T0, (2, 3), "its replicas already"),
        (T0, (2, 9), r"brokers \[9\] are not alive"),
        (T0, (), "empty"),
        (T0, (4, 4), "twice"),
        (TopicPartition("t", 7), (2, 4), "does not exist"),
        (TopicPartition("other", 0), (2, 4), "does not exist"),
    ],
)
def test_an_entry_that_cannot_be_done_is_removed(
    key: TopicPartition, target: tuple[int, ...], reason: str
) -> None:
    """Rule (C12): a failed check removes that entry and says why; nothing else changes."""
    lab = cluster({0: (2, 3)})
    before = lab.state()
    reassign(lab, {key: target}).come_to_rest()
    assert lab.tree.node(znodes.REASSIGN) is None
    assert assigned(lab) == {0: (2, 3)} and lab.state() == before
    (refused,) = marks(lab, "reassignment_refused")
    assert re.search(reason, refused.detail)


@pytest.mark.parametrize("target", [(2,), (2, 3), (2, 4)])
def test_a_dead_target_is_refused_when_asked_for(target: tuple[int, ...]) -> None:
    """Rule (C12): all target brokers are alive, also where the target needs no new replica."""
    lab = settled({0: (3, 2)})
    lab.crash(2).settle()
    reassign(lab, {T0: target}).come_to_rest()
    assert pending(lab) == {} and assigned(lab) == {0: (3, 2)}
    assert marks(lab, "reassignment_refused")[0].detail == "brokers [2] are not alive"


def test_a_topic_that_is_being_deleted_is_not_reassigned() -> None:
    """Rule (C12): the deletion wins over a later reassignment."""
    lab = cluster({0: (2, 3)})
    lab.crash(3).settle()
    delete_topic(lab)
    reassign(lab, {T0: (2, 4)}).come_to_rest()
    assert pending(lab) == {} and lab.children(znodes.DELETE_TOPICS) == ["t"]


def test_bad_content_is_refused_and_stops_nobody() -> None:
    """Rule: what is no JSON, or no reassignment, moves nothing and leaves the controller at work."""
    for data in (b"{", b"[]", b'{"partitions":[{"topic":"t"}]}', NOT_INTEGERS):
        lab = cluster({0: (2, 3)})
        lab.admin(Create(znodes.REASSIGN, data))
        lab.come_to_rest()
        assert marks(lab, "reassignment_refused") and assigned(lab) == {0: (2, 3)}
        lab.crash(2).settle()
        assert lab.state().leader == 3


# ---- several


def test_a_refused_entry_takes_no_other_with_it() -> None:
    """Rule (KAFKA-6193): the first entry is a no-op and removed; the second is pending and still stands in
    the node, so that a fail-over goes on with it."""
    lab = settled({0: (2, 3), 1: (2, 3)})
    reassign(lab, {T0: (2, 3), T1: (4,)})
    lab.settle(1, 2, 3)  # broker 4 does not catch up yet
    assert pending(lab) == {T1: (4,)}
    lab.crash(1).come_to_rest()
    moved(lab, (4,), T1)
    assert assigned(lab)[0] == (2, 3)


def test_without_the_protection_pending_work_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (KAFKA-6193): the scenario can fail: a removal that forgets what is pending loses it at the
    fail-over."""
    monkeypatch.setattr(ControllerGuards, "keep_pending", lambda guards, entries, removed: {})
    lab = settled({0: (2, 3), 1: (2, 3)})
    reassign(lab, {T0: (2, 3), T1: (4,)})
    lab.settle(1, 2, 3)
    lab.crash(1).come_to_rest()
    assert assigned(lab)[1] != (4,)


def test_several_partitions_are_reassigned_at_once() -> None:
    """Rule (C12): each goes its own way, and the node goes with the last."""
    lab = settled(dict.fromkeys(range(5), (2, 3)))
    reassign(lab, {TopicPartition("t", number): (4, 1) for number in range(5)}).come_to_rest()
    for number in range(5):
        moved(lab, (4, 1), TopicPartition("t", number))
    assert lab.tree.node(znodes.REASSIGN) is None


# ---- brokers die


def test_a_target_that_dies_holds_the_reassignment_until_it_returns(lab: Lab) -> None:
    """Rule (C9, C12): an accepted reassignment waits for a target broker, and goes on when it is back, also
    under another controller."""
    reassign(lab, {T0: (2, 4)})
    lab.settle(1, 2, 3)
    lab.crash(4).come_to_rest()
    lab.crash(1).come_to_rest()
    assert pending(lab) == {T0: (2, 4)} and assigned(lab)[0] == (2, 3, 4)
    lab.start(4).come_to_rest()
    moved(lab, (2, 4))


def test_the_old_leader_may_die_on_the_way() -> None:
    """Rule (C12): another old replica leads, and the reassignment goes on."""
    lab = settled({0: (2, 3)}, values=(11,))
    reassign(lab, {T0: (4, 1)})
    lab.settle(1, 2, 3)
    lab.crash(2).come_to_rest()
    assert assigned(lab)[0] == (4, 1) and lab.state().isr in ((1, 4), (4, 1)) and lab.values(4) == [11]


@pytest.mark.parametrize("returns", [False, True])
def test_an_old_replica_that_dies_is_not_waited_for(returns: bool, lab: Lab) -> None:
    """Rule (C12): the reassignment completes without the answer of a dead broker; one that bounced is told
    again and deletes."""
    reassign(lab, {T0: (2, 4)})
    until_sent(lab, kafka.StopReplicaRequest)
    assert lab.drop(kind=kafka.StopReplicaRequest)
    if returns:
        lab.hold_zookeeper(1)
        lab.restart(3)
        lab.release_zookeeper(1)
    else:
        lab.crash(3)
    lab.come_to_rest()
    moved(lab, (2, 4))


# ---- the controller dies


@pytest.mark.parametrize("target", [(3, 4), (4, 2), (2, 3, 4)])
@pytest.mark.parametrize("step", range(40))
def test_a_new_controller_goes_on_wherever_the_old_one_died(step: int, target: tuple[int, ...]) -> None:
    """Rule (C12): whichever of its ZooKeeper requests is the controller's last, its successor completes the
    reassignment, and no old replica is left behind."""
    lab = settled({0: (2, 3)}, values=(11,), brokers=5)
    fail_over_at(lab, lambda: reassign(lab, {T0: target}), step)
    lab.come_to_rest()
    lab.come_to_rest()
    moved(lab, target)
    assert lab.values(target[0]) == [11] and refused_transitions(lab) == 0
    assert lab.tree.node(znodes.REASSIGN) is None


def test_the_steps_above_are_all_of_them() -> None:
    """Rule: the parametrisation covers every ZooKeeper request of a whole reassignment."""
    lab = settled({0: (2, 3)}, brokers=5)
    assert not fail_over_at(lab, lambda: reassign(lab, {T0: (3, 4)}), 40)
    moved(lab, (3, 4))


def test_a_reassignment_that_was_undone_is_not_applied_again(lab: Lab) -> None:
    """Rule (KAFKA-5310): a controller that resigns forgets what it was reassigning; back in office it does
    what stands in ZooKeeper then."""
    lab.crash(4).settle()
    lab.start(4)
    reassign(lab, {T0: (4,)})
    lab.settle(1, 2, 3)  # stuck: broker 4 hears nothing
    assert T0 in lab.core(1).controller.state.context.reassigning
    lab.expire(1)
    assert lab.controllers() != [1]
    (second,) = lab.controllers()
    remove(lab, znodes.REASSIGN)
    lab.restart(second)
    while lab.controllers() != [1]:
        (other,) = lab.controllers()
        lab.expire(other)
    assert lab.core(1).controller.state.context.reassigning == {}
    lab.come_to_rest()
    assert 2 in assigned(lab)[0] and 3 in assigned(lab)[0]


def test_a_removal_that_is_sent_again_takes_no_later_request_with_it(lab: Lab) -> None:
    """Rule (ASSIGN): the node was removed and the reply lost; meanwhile an operator has asked for something
    else, in a node that begins at version 0 again."""
    lab.hold_zookeeper(1)
    reassign(lab, {T0: (2, 3)})  # these are its replicas already: refused, and taken out

    def removes() -> bool:
        request = lab.drivers[1].held[0].request
        return isinstance(request, Multi) and any(isinstance(one, Delete) for one in request.operations)

    while not (lab.drivers[1].held and removes()):
        lab.settle()
        lab.release_zookeeper(1, 1)
    lab.drivers[1].replies_to_lose = 1
    lab.release_zookeeper(1, 1)
    assert pending(lab) == {} and lab.tree.node(znodes.REASSIGN) is None
    reassign(lab, {T0: (3, 4)})
    lab.release_zookeeper(1).come_to_rest()
    moved(lab, (3, 4))


def test_a_node_that_was_emptied_is_removed_by_the_next_controller(lab: Lab) -> None:
    """Rule (C12): an empty node, left by a controller that died before it removed it, blocks no operator."""
    reassign(lab, {}).come_to_rest()
    assert lab.tree.node(znodes.REASSIGN) is None


def test_lost_replies_do_not_matter(lab: Lab) -> None:
    """Rule: each write of a reassignment may be done although its reply is lost."""
    lab.drivers[1].replies_to_lose = 50
    reassign(lab, {T0: (3, 4)}).come_to_rest()
    lab.drivers[1].replies_to_lose = 0
    lab.come_to_rest()
    moved(lab, (3, 4))
    assert lab.recorded(Name.CONTROLLER_RESIGNED) == []
