"""Preferred leader election by request: what is elected, what is not, and that the request goes."""

import pytest
from controller_lab import delete_topic, fail_over_at, marks, reassign, settled
from impl_lab import T0, Lab

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Delete, Multi

T1 = TopicPartition("t", 1)


def elect(lab: Lab, *keys: TopicPartition) -> None:
    """As the admin tool does."""
    lab.admin(Create(znodes.PREFERRED_ELECTION, znodes.encode_partitions(list(keys))))


def moved_away() -> Lab:
    """Broker 3 leads both partitions, although broker 2 is preferred and in sync."""
    lab = settled({0: (2, 3), 1: (2, 3)})
    lab.crash(2).come_to_rest()
    lab.start(2).come_to_rest()
    assert lab.state(T0).leader == lab.state(T1).leader == 3 and set(lab.state().isr) == {2, 3}
    return lab


def test_the_preferred_replica_is_elected_by_request() -> None:
    """Rule (C15): what is asked for is elected in a new epoch, the rest stays, and the request is removed."""
    lab = moved_away()
    before = lab.state(T0).leader_epoch
    elect(lab, T0)
    lab.come_to_rest()
    assert (lab.state(T0).leader, lab.state(T0).leader_epoch) == (2, before + 1)
    assert lab.partition(2, T0).is_leader and lab.state(T1).leader == 3
    assert lab.tree.node(znodes.PREFERRED_ELECTION) is None
    elect(lab, T0, T1)
    lab.come_to_rest()
    assert lab.state(T1).leader == 2 and lab.state(T0).leader_epoch == before + 1
    assert lab.tree.node(znodes.PREFERRED_ELECTION) is None


def test_a_preferred_replica_out_of_sync_is_not_elected() -> None:
    """Rule (C8): a preferred replica that is dead or not in the ISR does not lead, and the request goes all
    the same."""
    lab = moved_away()
    lab.crash(2).settle()
    elect(lab, T0, TopicPartition("nobody", 0))
    lab.come_to_rest()
    assert lab.state().leader == 3 and lab.tree.node(znodes.PREFERRED_ELECTION) is None


def test_what_moves_or_goes_is_left_alone() -> None:
    """Rule (C15): a partition under reassignment, or of a topic that is being deleted, is not elected."""
    lab = moved_away()
    reassign(lab, {T0: (2, 4)})
    lab.settle(1, 2, 3)
    epoch = lab.state().leader_epoch
    elect(lab, T0)
    lab.settle(1, 2, 3)
    assert (lab.state().leader, lab.state().leader_epoch) == (3, epoch)
    lab = moved_away()
    lab.crash(3).come_to_rest()
    delete_topic(lab).come_to_rest()
    state = lab.state()
    elect(lab, T0)
    lab.come_to_rest()
    assert lab.state() == state and lab.tree.node(znodes.PREFERRED_ELECTION) is None


def test_bad_content_is_removed() -> None:
    """Rule: a request that cannot be read is removed with a mark, and the controller goes on."""
    lab = moved_away()
    lab.admin(Create(znodes.PREFERRED_ELECTION, b"{}"))
    lab.come_to_rest()
    assert marks(lab, "preferred_election_refused") and lab.tree.node(znodes.PREFERRED_ELECTION) is None
    assert lab.controllers() == [1]


@pytest.mark.parametrize("step", range(10))
def test_a_new_controller_finds_the_request(step: int) -> None:
    """Rule (C6): whichever ZooKeeper request is the controller's last, its successor does what was asked
    for."""
    lab = moved_away()
    fail_over_at(lab, lambda: elect(lab, T0, T1), step)
    lab.come_to_rest()
    assert lab.state(T0).leader == lab.state(T1).leader == 2
    assert lab.tree.node(znodes.PREFERRED_ELECTION) is None


def test_the_steps_above_are_all_of_them() -> None:
    """Rule: the parametrisation covers every ZooKeeper request of a whole election."""
    assert not fail_over_at(lab := moved_away(), lambda: elect(lab, T0, T1), 10)


def test_a_removal_that_is_sent_again_takes_no_later_request_with_it() -> None:
    """Rule (C15): the node was removed and the reply lost; meanwhile an operator has asked again, in a node
    that begins at version 0 again."""
    lab = moved_away()
    (controller,) = lab.controllers()
    lab.hold_zookeeper(controller)
    elect(lab, T0)

    def removes() -> bool:
        request = lab.drivers[controller].held[0].request
        return isinstance(request, Multi) and any(isinstance(one, Delete) for one in request.operations)

    while not (lab.drivers[controller].held and removes()):
        lab.settle()
        lab.release_zookeeper(controller, 1)
    lab.drivers[controller].replies_to_lose = 1
    lab.release_zookeeper(controller, 1)
    assert lab.state(T0).leader == 2 and lab.tree.node(znodes.PREFERRED_ELECTION) is None
    elect(lab, T1)
    lab.release_zookeeper(controller).come_to_rest()
    assert lab.state(T1).leader == 2 and lab.tree.node(znodes.PREFERRED_ELECTION) is None
