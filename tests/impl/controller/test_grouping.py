"""ZooKeeper requests in groups: how many there are, exactly, and that a conflict, a lost reply or a fence
does to a group what it does to a single write."""

from math import ceil

import pytest
from controller_lab import assigned, pending, reassign, settled
from impl_lab import Lab

from fencepost.impl.broker.parts import Parts
from fencepost.impl.controller.writer import ControllerWriter
from fencepost.impl.core.core_interface import AskZooKeeper, StopRequested
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.grouping import ONE_AT_A_TIME, PIPELINED, Grouping
from fencepost.impl.zookeeper.interface import GetData, Multi, MultiRead, SetData, SetWatches
from fencepost.traces.events import Name

TOPICS = 200
GROUP = 30
GROUPED = Grouping(members=GROUP)
STRATEGIES = {"one at a time": ONE_AT_A_TIME, "pipelined": PIPELINED, "grouped": GROUPED}
by_strategy = pytest.mark.parametrize("grouping", STRATEGIES.values(), ids=STRATEGIES)


def many_topics(grouping: Grouping, topics: int = TOPICS, brokers: int = 5) -> Lab:
    """Broker 1 is the controller; topics of one partition with two replicas, those of broker 2 led by it or
    followed, in turn."""
    lab = Lab(brokers, scripted=False)
    for driver in lab.drivers.values():
        driver.core.broker_context.grouping = grouping
    for number in range(topics):
        first = number % brokers + 1
        lab.create_topic({0: (first, first % brokers + 1)}, f"topic-{number:04d}")
    return lab.settle()


def in_rounds(lab: Lab, node: int) -> tuple[int, list[AskZooKeeper]]:
    """Answer all that waits at ZooKeeper, again and again: (round trips, requests)."""
    rounds, asked = 0, []
    while lab.drivers[node].held:
        rounds += 1
        asked += lab.drivers[node].held
        lab.release_zookeeper(node, len(lab.drivers[node].held))
    return rounds, asked


def written(asked: list[AskZooKeeper]) -> list[Multi]:
    """The writes among the requests."""
    return [ask.request for ask in asked if isinstance(ask.request, Multi)]


def tree(lab: Lab) -> dict[str, tuple[bytes, int]]:
    """What ZooKeeper holds of the topics: data and version."""
    nodes = {path: lab.tree.node(path) for path in lab.tree.paths() if path.startswith(znodes.TOPICS)}
    return {path: (node.data, node.version) for path, node in nodes.items() if node is not None}


def calls(count: int, grouping: Grouping) -> tuple[int, int]:
    """(round trips, requests) for so many independent members."""
    requests = ceil(count / grouping.members)
    return ceil(requests / grouping.window), requests


# ---- how many


@by_strategy
def test_a_controlled_shutdown_takes_as_many_requests_as_the_formula_says(grouping: Grouping) -> None:
    """Rule (C11, S1): with L leaders to move and F ISRs to shrink, groups of G and a window of W: ceil(L/G) +
    ceil(F/G) requests, each kind in ceil(its requests / W) round trips; each broker hears of it in one
    request of each kind."""
    lab = many_topics(grouping)
    leads = followed = TOPICS // 5
    lab.hold_zookeeper(1)
    lab.mail.clear()
    lab.step(2, StopRequested())
    lab.deliver(2, 1, kafka.ControlledShutdownRequest)
    rounds, asked = in_rounds(lab, 1)
    of_leaders, of_isrs = calls(leads, grouping), calls(followed, grouping)
    assert (rounds, len(asked)) == (of_leaders[0] + of_isrs[0], of_leaders[1] + of_isrs[1])
    assert len(written(asked)) == len(asked)
    control = (kafka.LeaderAndIsrRequest, kafka.UpdateMetadataRequest, kafka.StopReplicaRequest)
    kinds = {
        broker: [type(request) for request in channel.queue]
        for broker, channel in lab.core(1).controller.state.channels.channels.items()
    }
    both, metadata = list(control[:2]), [kafka.UpdateMetadataRequest]
    assert kinds == {1: both, 2: list(control), 3: both, 4: metadata, 5: metadata}


@by_strategy
def test_a_fail_over_takes_as_many_requests_as_the_formula_says(grouping: Grouping) -> None:
    """Rule (C6, S2): besides a fixed number of requests, B registrations, T topics and P states in groups,
    and one request more for the watches of each group of topics; then the writes for what the dead controller
    had led and followed."""
    lab = many_topics(grouping)
    for node in (3, 4, 5):
        lab.drivers[node].holds_zookeeper = True  # broker 2 is to win
    lab.hold_zookeeper(2)
    lab.crash(1)
    rounds, asked = in_rounds(lab, 2)
    assert lab.controllers() == [2]
    brokers, topics, states = calls(4, grouping), calls(TOPICS, grouping), calls(TOPICS, grouping)
    watches = (0, 0) if grouping.members == 1 else topics
    led, followed = calls(TOPICS // 5, grouping), calls(TOPICS // 5, grouping)
    parts = (brokers, topics, watches, states, led, followed)
    race = [GetData, GetData, Multi, object, object, object, object]  # C1 and what read_admin asks beside
    lists = 3  # of brokers, topics and notifications
    assert len(asked) == sum(requests for _, requests in parts) + lists + len(race)
    assert rounds == sum(some for some, _ in parts) + lists + 4
    for kind in (MultiRead, SetWatches):
        assert any(isinstance(ask.request, kind) for ask in asked) == (grouping.members > 1)


@pytest.mark.parametrize(("partitions", "watches"), [(1, 0), (45, 2)])
def test_a_reassignment_of_many_partitions_begins_in_few_requests(partitions: int, watches: int) -> None:
    """Rule (C12): two requests read what is asked for, two read and write the topic; with S groups of states,
    and a request more for the watches of each group of several, S read them, S raise their epochs; the
    watches of these own writes cost one read of the topic and S of the states, not one each."""
    lab = settled(dict.fromkeys(range(partitions), (2, 3)))
    lab.core(1).broker_context.grouping = GROUPED
    lab.hold_zookeeper(1)
    reassign(lab, {TopicPartition("t", number): (3, 4) for number in range(partitions)})
    rounds, asked = in_rounds(lab, 1)
    states = ceil(partitions / GROUP)
    assert len(asked) == 2 + 2 + 1 + 3 * states + 2 * watches
    assert rounds == 8 + 2 * (watches > 0)
    lab.release_zookeeper(1)
    for _ in range(3):
        lab.come_to_rest()
    assert pending(lab) == {} and assigned(lab) == dict.fromkeys(range(partitions), (3, 4))
    assert {lab.state(TopicPartition("t", number)).isr for number in range(partitions)} == {(3, 4)}


def test_all_strategies_end_in_the_same_state() -> None:
    """Rule (S): grouping changes how many requests there are, never what is written: data and versions of
    every node agree, and so do watches."""
    trees = []
    for grouping in STRATEGIES.values():
        lab = many_topics(grouping, 40)
        lab.step(2, StopRequested())
        lab.settle()
        lab.crash(1).settle()
        lab.start(2).settle()
        lab.create_topic({0: (3, 4)}, "later")
        lab.admin(
            SetData(znodes.topic_path("topic-0000"), znodes.encode_topic({0: (1, 2), 1: (3, 4)}))
        )  # somebody adds a partition: the watch that was set at fail-over says so
        lab.settle()
        assert lab.state(TopicPartition("topic-0000", 1)).leader == 3
        trees.append(tree(lab))
    assert trees[0] == trees[1] == trees[2] and len(trees[0]) > 40


# ---- what a group must not change


def six(**options: object) -> Lab:
    """Six partitions led by broker 2, which is about to be asked to stop; the controller's requests wait."""
    lab = settled(dict.fromkeys(range(6), (2, 3, 4)), **options)
    lab.hold_zookeeper(1)
    lab.step(2, StopRequested())
    lab.deliver(2, 1, kafka.ControlledShutdownRequest)
    return lab


def write_again(lab: Lab, number: int) -> None:
    """The leader writes its partition's state meanwhile: another version."""
    key = TopicPartition("t", number)
    lab.admin(SetData(znodes.state_path(key), znodes.encode_state(lab.state(key))))


def leaders(lab: Lab) -> list[int]:
    """Of the six partitions."""
    return [lab.state(TopicPartition("t", number)).leader for number in range(6)]


def test_a_conflict_costs_its_group_one_write_per_member() -> None:
    """Rule (C3, C8): the refused group is written member by member, the conflicting states are read, chosen
    for anew, and written."""
    lab = six()
    for number in (1, 4):
        write_again(lab, number)
    rounds, asked = in_rounds(lab, 1)
    assert leaders(lab) == [3] * 6
    members = [len(multi.operations) - 1 for multi in written(asked)]
    assert members == [6] + [1] * 6 + [2]
    assert [ask.request.paths for ask in asked if isinstance(ask.request, MultiRead)] == [
        tuple(znodes.state_path(TopicPartition("t", number)) for number in (1, 4))
    ]
    assert rounds == 4
    assert [lab.state(TopicPartition("t", number)).leader_epoch for number in range(6)] == [1] * 6


class NoFallback(ControllerWriter):
    """Planted: a group that is refused is given up whole."""

    def written_alone(self, group):
        return []


def test_without_the_fallback_one_conflict_fails_the_rest() -> None:
    """Rule: the scenario can fail: five partitions that nobody else wrote are as they were when the conflict
    is read."""
    moved = {}
    for writer in (ControllerWriter, NoFallback):
        lab = six(parts=Parts(controller_writer=writer))
        write_again(lab, 1)
        while not isinstance(lab.drivers[1].held[0].request, GetData | MultiRead):
            lab.release_zookeeper(1, 1)
        moved[writer] = leaders(lab)
    assert moved == {ControllerWriter: [3, 2, 3, 3, 3, 3], NoFallback: [2] * 6}


def test_a_group_whose_reply_was_lost_is_not_written_twice() -> None:
    """Rule (C8): the retry meets the versions of its own first attempt; what stands is recognised, no epoch
    is raised again."""
    lab = six()
    lab.drivers[1].replies_to_lose = 1
    lab.release_zookeeper(1).come_to_rest()
    assert leaders(lab) == [3] * 6
    assert [lab.state(TopicPartition("t", number)).leader_epoch for number in range(6)] == [1] * 6
    context = lab.core(1).controller.state.context
    for number in range(6):
        key = TopicPartition("t", number)
        assert context.states[key].zk_version == lab.state(key).zk_version


def test_the_fence_holds_for_each_group() -> None:
    """Rule (KAFKA-6082, C3): a controller that was deposed writes no member of any group, alone neither, and
    resigns."""
    lab = many_topics(Grouping(members=7))
    lab.hold_zookeeper(1)
    lab.mail.clear()
    lab.step(2, StopRequested())
    lab.deliver(2, 1, kafka.ControlledShutdownRequest)
    lab.release_zookeeper(1, 2)
    stood = tree(lab)
    lab.admin(SetData(znodes.CONTROLLER_EPOCH, b"9"))
    _, asked = in_rounds(lab, 1)
    assert len(written(asked)) >= 4 and tree(lab) == stood
    assert len(lab.recorded(Name.CONTROLLER_WRITE_REFUSED, 1)) == 1
    assert len(lab.recorded(Name.CONTROLLER_RESIGNED, 1)) == 1


def test_a_lost_connection_in_the_middle_of_a_window() -> None:
    """Rule: requests of a window that were not answered are sent again, those that had not been sent yet
    follow; none is lost or doubled."""
    lab = many_topics(Grouping(members=3, window=4))
    lab.mail.clear()
    lab.drivers[1].replies_to_lose = 1
    lab.hold_zookeeper(1)
    lab.step(2, StopRequested())
    lab.deliver(2, 1, kafka.ControlledShutdownRequest)
    assert len(lab.drivers[1].held) == 4
    in_rounds(lab, 1)
    for number in range(0, TOPICS, 5):
        for topic, leader in ((number, 1), (number + 1, 3)):
            state = lab.state(TopicPartition(f"topic-{topic:04d}", 0))
            assert (state.leader, state.leader_epoch, state.isr) == (leader, 1, (leader,))


def test_a_bound_of_bytes_cuts_groups() -> None:
    """Rule: a group never exceeds jute.maxbuffer, in members' bytes, whatever number of members it may
    have."""
    small = Grouping(maximum_bytes=2_000)
    lab = many_topics(small)
    lab.hold_zookeeper(1)
    lab.mail.clear()
    lab.step(2, StopRequested())
    lab.deliver(2, 1, kafka.ControlledShutdownRequest)
    _, asked = in_rounds(lab, 1)
    members = [len(multi.operations) - 1 for multi in written(asked)]
    assert sum(members) == 2 * TOPICS // 5 and 2 < max(members) < 20
