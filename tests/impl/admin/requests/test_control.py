"""AlterPartitionReassignments, ListPartitionReassignments, ElectLeaders and DescribeLogDirs, asked of a
broker."""

from typing import Any

import pytest
from admin_lab import AdminLab, Asked
from controller_lab import fail_over_at, refused_transitions

from fencepost.impl.admin.requests.control_requests import ControlRequests
from fencepost.impl.messages import admin_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.record.observed_state import ObservedState
from fencepost.traces.kafka_names.outcomes import ErrorCode

E = ErrorCode
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def reassign(lab: AdminLab, *moves: tuple[TopicPartition, Any], node: int = 1) -> Asked:
    """AlterPartitionReassignments."""
    request = kafka.AlterPartitionReassignmentsRequest(
        correlation_id=lab.number(),
        partitions=tuple(kafka.Reassigned(partition=key, replicas=replicas) for key, replicas in moves),
        timeout_ms=10_000,
    )
    return lab.send(request, node)


def ongoing(lab: AdminLab, *keys: TopicPartition, node: int = 1) -> Any:
    """ListPartitionReassignments: the error, or what there is."""
    request = kafka.ListPartitionReassignmentsRequest(
        correlation_id=lab.number(), partitions=keys or None, timeout_ms=10_000
    )
    answer = lab.send(request, node).answer
    return answer.error if answer.error is not E.NONE else answer.reassignments


def elect(
    lab: AdminLab, *keys: TopicPartition, unclean: bool = False, node: int = 1, timeout_ms: int = 10_000
) -> Asked:
    """ElectLeaders; without partitions of all."""
    request = kafka.ElectLeadersRequest(
        correlation_id=lab.number(), partitions=keys or None, unclean=unclean, timeout_ms=timeout_ms
    )
    return lab.send(request, node)


def topic(lab: AdminLab, *replicas: tuple[int, ...]) -> None:
    """Topic t with these replicas."""
    assignment = tuple(kafka.ReplicasOf(partition=n, replicas=ids) for n, ids in enumerate(replicas))
    asked = lab.create(kafka.NewTopic(name="t", assignment=assignment))
    lab.rest()
    assert asked.errors == {"t": E.NONE}


def stuck(**options: Any) -> AdminLab:
    """Topic t on 1, 2 is moved to 2, 3, and nothing is fetched yet."""
    lab = AdminLab(4, **options)
    topic(lab, (1, 2), (2, 3))
    asked = reassign(lab, (T0, (2, 3)))
    assert asked.errors == {T0: E.NONE}
    return lab


def finished(lab: AdminLab, target: tuple[int, ...]) -> None:
    """It comes to its end."""
    lab.advance(12_000, settle=True)
    assert lab.assignment("t")[0] == target and set(lab.state(T0).isr) == set(target)
    assert ongoing(lab) == () and lab.tree.node(znodes.REASSIGN) is None
    assert not lab.core(lab.controllers()[0]).controller.state.context.origins


# ---- reassign


def test_a_reassignment_is_under_way_when_it_is_answered():
    """Rule (KIP-455): the answer does not wait for the end; the list shows what comes and what goes; it ends
    as any other."""
    lab = stuck()
    (one,) = ongoing(lab)
    assert (one.partition, one.replicas, one.adding, one.removing) == (T0, (1, 2, 3), (3,), (1,))
    assert ongoing(lab, T1) == () and ongoing(lab, T1, T0) == (one,)
    finished(lab, (2, 3))


def test_reassignments_join_those_under_way():
    """Rule (KIP-455): further partitions may be reassigned at any time, each for itself."""
    lab = stuck()
    assert reassign(lab, (T1, (1, 4))).errors == {T1: E.NONE}
    assert [one.partition for one in ongoing(lab)] == [T0, T1]
    finished(lab, (2, 3))
    assert lab.assignment("t")[1] == (1, 4)


def test_a_reassignment_may_change_its_mind():
    """Rule (KIP-455): another target for a partition under way goes on from where it is; replicas that are
    wanted no more go."""
    lab = stuck()
    assert reassign(lab, (T0, (4, 2))).errors == {T0: E.NONE}
    (one,) = ongoing(lab)
    assert (one.adding, set(one.removing)) == ((4,), {1, 3})
    finished(lab, (4, 2))
    assert T0 not in lab.core(3).replicas.partitions


def test_a_reassignment_is_cancelled():
    """Rule (KIP-455): null replicas bring back what it began with, in its order."""
    lab = stuck()
    assert reassign(lab, (T0, None)).errors == {T0: E.NONE}
    finished(lab, (1, 2))
    assert lab.state(T0).leader in (1, 2) and T0 not in lab.core(3).replicas.partitions


def test_a_reassignment_is_cancelled_under_the_next_controller():
    """Rule (KIP-455): what it began with stands beside its target in ZooKeeper, so that any controller can
    bring it back."""
    lab = stuck()
    lab.drop()
    lab.expire(1).settle()
    (controller,) = lab.controllers()
    if ongoing(lab, node=controller):
        asked = reassign(lab, (T0, None), node=controller)
        lab.settle()
        assert asked.errors == {T0: E.NONE}
        lab.advance(12_000, settle=True)
        assert lab.assignment("t")[0] == (1, 2)
    else:
        raise AssertionError("the reassignment was over before it could be cancelled")


def test_one_begun_by_a_tool_under_an_earlier_controller_cannot_be_cancelled():
    """Rule: without what it began with, the broker says so instead of guessing; its replicas named, it is
    brought back."""
    lab = AdminLab(4)
    topic(lab, (1, 2))
    lab.admin(Create(znodes.REASSIGN, znodes.encode_reassignments({T0: (2, 3)})))
    lab.drop()
    lab.expire(1).settle(1, 2, 4)
    (controller,) = lab.controllers()
    asked = reassign(lab, (T0, None), node=controller)
    assert asked.errors == {T0: E.INVALID_REQUEST} and "name them" in asked.messages
    assert reassign(lab, (T0, (1, 2)), node=controller).errors == {T0: E.NONE}
    lab.advance(12_000, settle=True)
    assert lab.assignment("t")[0] == (1, 2)


def test_reassignments_that_are_refused():
    """Rule (KIP-455): Kafka's error for each partition; the others of the request go on."""
    lab = AdminLab(4)
    topic(lab, (1, 2), (2, 3))
    none = TopicPartition("none", 0)
    for key, replicas, error in (
        (none, (1, 2), E.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("t", 9), (1, 2), E.UNKNOWN_TOPIC_OR_PARTITION),
        (T0, (), E.INVALID_REPLICA_ASSIGNMENT),
        (T0, (1, 1), E.INVALID_REPLICA_ASSIGNMENT),
        (T0, (1, 9), E.INVALID_REPLICA_ASSIGNMENT),
        (T0, (-1,), E.INVALID_REPLICA_ASSIGNMENT),
        (T0, None, E.NO_REASSIGNMENT_IN_PROGRESS),
        (none, None, E.NO_REASSIGNMENT_IN_PROGRESS),
        (T0, (1, 2), E.NONE),
    ):
        assert reassign(lab, (key, replicas)).errors == {key: error}, (key, replicas)
    assert ongoing(lab) == () and lab.tree.node(znodes.REASSIGN) is None
    asked = reassign(lab, (none, (1,)), (T1, (4, 3)))
    assert asked.errors == {none: E.UNKNOWN_TOPIC_OR_PARTITION, T1: E.NONE}
    assert [one.partition for one in ongoing(lab)] == [T1]


def test_a_topic_that_goes_is_not_reassigned():
    """Rule (KIP-455): to a client it is gone already."""
    lab = AdminLab(4)
    topic(lab, (1, 2))
    lab.delete("t")
    assert reassign(lab, (T0, (3, 4))).errors == {T0: E.UNKNOWN_TOPIC_OR_PARTITION}


def test_only_the_controller_reassigns():
    """Rule (KafkaController): another broker sends the client away; so does one that was it when it was
    asked."""
    lab = stuck()
    assert reassign(lab, (T0, None), node=2).answer.error is E.NOT_CONTROLLER
    assert ongoing(lab, node=2) is E.NOT_CONTROLLER
    lab.hold_zookeeper(1)
    asked = reassign(lab, (T0, None))
    assert asked.answer is None
    lab.end_session(1).settle(2, 3, 4)
    lab.notice_expiry(1).rest()
    assert asked.answer.error is E.NOT_CONTROLLER


def test_what_was_dropped_from_the_queue_is_answered_in_the_end():
    """Rule: a request that the controller's queue lost with its session is answered that its time is up, and
    forgotten."""
    lab = stuck()
    lab.hold_zookeeper(1)
    first, second = reassign(lab, (T0, None)), reassign(lab, (T1, (1, 4)))
    lab.expire(1).advance(10_000, nodes=(1,))
    assert first.answer.error is E.NOT_CONTROLLER and second.answer.error is E.REQUEST_TIMED_OUT
    assert not lab.core(1).administration.desk.open


def test_too_many_for_one_node():
    """Rule: what ZooKeeper would not take is refused with a sentence, and nothing is written."""
    lab = AdminLab(4).created("x" * 200, partitions=6_000, factor=1)
    moves = [(TopicPartition("x" * 200, number), (1, 2, 3, 4)) for number in range(6_000)]
    asked = reassign(lab, *moves)
    lab.settle()
    assert set(asked.errors.values()) == {E.INVALID_REQUEST} and "ask for fewer" in asked.messages
    assert lab.tree.node(znodes.REASSIGN) is None


# ---- elect


def moved_away(brokers: int = 3) -> AdminLab:
    """Partitions that 1 and 2 should lead, and 2 leads both: 1 was away for a moment."""
    lab = AdminLab(brokers, leader_imbalance_check_ms=0)
    topic(lab, (2, 3), (3, 2))
    lab.crash(2).rest()
    lab.start(2).advance(12_000, settle=True)
    assert lab.state(T0).leader == 3 and set(lab.state(T0).isr) == {2, 3}
    return lab


def test_the_preferred_replica_is_elected():
    """Rule (KIP-460): answered when metadata shows it; a partition that its preferred replica leads needs no
    election."""
    lab = moved_away()
    asked = elect(lab, T0, T1, TopicPartition("none", 0))
    assert asked.answer is None and lab.state(T0).leader == 2
    lab.settle()
    assert asked.answer.error is E.NONE
    assert asked.errors == {
        T0: E.NONE,
        T1: E.ELECTION_NOT_NEEDED,
        TopicPartition("none", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_of_all_partitions_those_are_told_that_needed_an_election():
    """Rule (KafkaApis): without a list of partitions the answer leaves out those that were led rightly."""
    lab = moved_away()
    asked = elect(lab)
    lab.settle()
    assert asked.errors == {T0: E.NONE}
    assert elect(lab).errors == {}


def test_a_preferred_replica_that_cannot_lead():
    """Rule (KIP-460): it is dead, or out of sync; its topic goes."""
    lab = moved_away()
    lab.crash(2).rest()
    assert elect(lab, T0).errors == {T0: E.PREFERRED_LEADER_NOT_AVAILABLE}
    lab.delete("t")
    assert elect(lab, T0).errors == {T0: E.INVALID_TOPIC_EXCEPTION}


def test_metadata_that_does_not_show_the_leader_in_time():
    """Rule (DelayedElectLeader): the election stands, the answer says that it is not known to have
    arrived."""
    lab = moved_away()
    asked = elect(lab, T0, timeout_ms=700)
    lab.drop()
    lab.advance(700, nodes=(1,))
    assert asked.errors == {T0: E.REQUEST_TIMED_OUT} and lab.state(T0).leader == 2


@pytest.mark.parametrize("unclean", [False, True])
def test_an_unclean_election_lets_any_live_replica_lead(unclean):
    """Rule (KIP-460): asked for by name it may lose data, whatever the topic allows, and says so in the
    record; a preferred one never does."""
    lab = AdminLab(3)
    topic(lab, (2, 3))
    lab.crash(3).advance(12_000, settle=True)
    lab.crash(2)
    lab.start(3).advance(2_000, settle=True)
    assert (lab.state(T0).leader, lab.state(T0).isr) == (-1, (2,))
    asked = elect(lab, T0, unclean=unclean)
    lab.settle()
    if unclean:
        assert asked.errors == {T0: E.NONE}
        assert (lab.state(T0).leader, lab.state(T0).isr) == (3, (3,))
        assert elect(lab, T0, unclean=True).errors == {T0: E.ELECTION_NOT_NEEDED}
    else:
        assert asked.errors == {T0: E.PREFERRED_LEADER_NOT_AVAILABLE}
    facts = ObservedState()
    for event in lab.events:
        facts.learn(event)
    assert facts.unclean_topics == ({"t"} if unclean else set())


def test_an_unclean_election_needs_somebody():
    """Rule (KIP-460): no replica lives."""
    lab = AdminLab(3)
    topic(lab, (2, 3))
    lab.crash(2)
    lab.crash(3).rest()
    assert elect(lab, T0, unclean=True).errors == {T0: E.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_only_the_controller_elects():
    """Rule (KafkaController): NOT_CONTROLLER for the request, and for each partition, since version 0 has no
    other place."""
    lab = moved_away()
    asked = elect(lab, T0, node=2)
    assert asked.answer.error is E.NOT_CONTROLLER and asked.errors == {T0: E.NOT_CONTROLLER}


def test_the_list_is_taken_from_what_the_controller_knows(monkeypatch):
    """Planted: a list that did not look at the origin would show no replica as added; the test above would
    not notice less."""
    lab = stuck()
    monkeypatch.setattr(ControlRequests, "_list", lambda self, request, ticket, controller: iter(()))
    request = kafka.ListPartitionReassignmentsRequest(
        correlation_id=lab.number(), partitions=None, timeout_ms=2_000
    )
    asked = lab.send(request)
    assert asked.answer is None
    lab.advance(2_000, nodes=(1,))
    assert asked.answer.error is E.REQUEST_TIMED_OUT


# ---- log directories


def test_log_directories_tell_sizes():
    """Rule (KIP-113): each broker of its own replicas, all or those asked for; what it does not have is left
    out."""
    lab = AdminLab(3)
    topic(lab, (2, 3), (1, 2))
    lab.produce(2, 11, 12, acks=-1)
    lab.rest()

    def logs(node: int, *keys: TopicPartition) -> dict[TopicPartition, tuple[int, int]]:
        request = kafka.DescribeLogDirsRequest(correlation_id=lab.number(), partitions=keys or None)
        answer = lab.send(request, node).answer
        assert answer.error is E.NONE
        return {one.partition: (one.size, one.offset_lag) for one in answer.logs}

    assert logs(1) == {T1: (0, 0)}
    size = lab.partition(2, T0).log.segments.active.size
    assert size > 0 and logs(2) == {T0: (size, 0), T1: (0, 0)} and logs(3) == {T0: (size, 0)}
    assert logs(2, T1, TopicPartition("none", 0)) == {T1: (0, 0)}


# ---- a controller that dies meanwhile


def survives(begin: Any, allowed: set[tuple[int, ...]]) -> int:
    """Ask with `begin`; the controller dies after each number of its ZooKeeper requests, and returns. Returns
    how many there are.

    Whatever it died at: the reassignment ends in one of the allowed assignments, its replicas are where they
    should be, and no state machine was asked for what it does not know."""
    for request in range(60):
        lab = stuck()
        if not fail_over_at(lab, lambda lab=lab: begin(lab), request):
            return request
        lab.start(1).come_to_rest().come_to_rest()
        target = lab.assignment("t")[0]
        assert target in allowed, (request, target)
        assert lab.tree.node(znodes.REASSIGN) is None, request
        assert set(lab.state(T0).isr) == set(target) and lab.state(T0).leader in target, request
        holders = {node for node in lab.drivers if T0 in lab.core(node).replicas.partitions}
        assert holders == set(target), (request, holders)
        assert refused_transitions(lab) == 0, request
    raise AssertionError("the requests never end")


def test_a_cancellation_survives_the_controller_at_every_request():
    """Rule (KIP-455, C12): after a fail-over it is cancelled or complete, and in either case wholly."""
    assert survives(lambda lab: reassign(lab, (T0, None)), {(1, 2), (2, 3)}) > 5


def test_another_target_survives_the_controller_at_every_request():
    """Rule (KIP-455, C12): after a fail-over it goes on to the target that stands in ZooKeeper, the old one
    or the new one."""
    assert survives(lambda lab: reassign(lab, (T0, (4, 1))), {(2, 3), (4, 1)}) > 5
