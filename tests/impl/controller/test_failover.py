"""Fail-over and what the controller does as brokers, topics and ISRs change."""

from collections.abc import Collection

from impl_lab import MILLISECOND, T0, Lab

from fencepost.impl.broker.parts import Parts
from fencepost.impl.controller.legal_transitions import PartitionPhase
from fencepost.impl.controller.strategies import LeaderElection
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Delete, Multi
from fencepost.traces.events import Name
from fencepost.traces.plan import TopicOptions

CONTROL = (kafka.LeaderAndIsrRequest, kafka.UpdateMetadataRequest)


def cluster(assignment: dict[int, tuple[int, ...]], **options: object) -> Lab:
    """Broker 1 is the controller of three."""
    lab = Lab(scripted=False, **options)
    lab.create_topic(assignment).settle()
    assert lab.controllers() == [1]
    return lab


def applied(lab: Lab, node: int, begin: int = 0) -> list[str]:
    """The kinds of control requests that a broker acted on."""
    return [event.cause for event in lab.recorded(Name.CONTROL_REQUEST_APPLIED, node)[begin:]]


# ---- order


def test_brokers_hear_of_the_living_before_they_hear_of_leaders() -> None:
    """Rule (KAFKA-4443, C6): a new controller sends UpdateMetadata to everybody before any LeaderAndIsr."""
    lab = cluster({0: (2, 3)})
    before = {node: len(applied(lab, node)) for node in (2, 3)}
    lab.crash(1).settle()
    for node in (2, 3):
        kinds = applied(lab, node, before[node])
        assert kinds[0] == "UpdateMetadataRequest" and "LeaderAndIsrRequest" in kinds


def test_a_returning_broker_hears_of_the_living_first() -> None:
    """Rule (KAFKA-4443): so does a broker that comes online under a controller in office; one LeaderAndIsr
    then names all its partitions (KIP-380)."""
    lab = cluster({0: (2, 3), 1: (3, 2), 2: (1, 3)})
    lab.crash(3).settle()
    lab.start(3).settle()
    begin = next(
        index
        for index, event in enumerate(lab.recorded(Name.CONTROL_REQUEST_APPLIED, 3))
        if event.broker_epoch == lab.core(3).broker_context.broker_epoch
    )
    kinds = applied(lab, 3, begin)
    assert kinds[0] == "UpdateMetadataRequest" and kinds[1] == "LeaderAndIsrRequest"
    followed = {event.partition for event in lab.recorded(Name.BECAME_FOLLOWER, 3)[-3:]}
    assert followed == {0, 1, 2}


# ---- brokers go


def test_a_dead_leader_is_replaced_from_the_isr() -> None:
    """Rule (C8): the next replica in assignment order that is alive and in sync leads, in the next epoch, and
    the dead one leaves the ISR."""
    lab = cluster({0: (2, 3, 1)})
    lab.crash(2).settle()
    state = lab.state()
    assert (state.leader, state.leader_epoch, state.isr) == (3, 1, (3, 1))
    assert lab.partition(3).is_leader and lab.partition(1).leader == 3


def test_a_dead_follower_leaves_the_isr_in_a_new_epoch() -> None:
    """Rule (C8): the controller takes a dead follower out of the ISR by raising the epoch, so that its late
    fetches are fenced."""
    lab = cluster({0: (2, 3, 1)})
    lab.crash(3).settle()
    assert (lab.state().leader, lab.state().leader_epoch, lab.state().isr) == (2, 1, (2, 1))


def test_brokers_that_died_while_nobody_watched_leave_the_isrs() -> None:
    """Rule (KAFKA-3143): a new controller puts the replicas of dead brokers offline, of whose death no watch
    tells."""
    lab = cluster({0: (2, 3, 1)})
    lab.hold_zookeeper(2)
    lab.crash(3)
    lab.crash(1)
    lab.release_zookeeper(2).settle()
    assert lab.controllers() == [2]
    assert (lab.state().leader, lab.state().isr) == (2, (2,))


def test_the_last_isr_member_stays_when_it_dies() -> None:
    """Rule (KAFKA-708, ISR-NONEMPTY): without a live ISR member there is no leader, and the ISR keeps its
    last member, the only one that may lead later."""
    lab = _last_member_dies()
    assert (lab.state().leader, lab.state().isr) == (-1, (2,))
    lab.start(2).rest(3_000)
    assert lab.state().leader == 2 and lab.state().isr == (2, 3)


def _last_member_dies(**options: object) -> Lab:
    lab = cluster({0: (2, 3)}, **options)
    for node in (3, 2):
        lab.crash(node).settle()
    return lab.start(3).settle()


class EmptiesTheIsr(LeaderElection):
    """Removes every dead member."""

    def keep_last_isr_member(self, isr: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
        return tuple(member for member in isr if member not in gone)


def test_without_the_protection_the_isr_is_empty() -> None:
    """Rule (KAFKA-708): the scenario can fail."""
    assert _last_member_dies(parts=Parts(leader_election=EmptiesTheIsr)).state().isr == ()


def test_an_unclean_leader_only_where_the_topic_allows_it() -> None:
    """Rule (C8): outside the ISR nobody leads, unless the topic says so; then the ISR is the new leader
    alone."""
    lab = cluster({0: (2, 3)}, topic=TopicOptions(unclean_leader_election=True))
    for node in (3, 2):
        lab.crash(node).settle()
    lab.start(3).settle()
    assert (lab.state().leader, lab.state().isr) == (3, (3,))


# ---- brokers come


def test_a_bounce_is_a_failure_then_a_start() -> None:
    """Rule (C9): the same id with a larger czxid has lost its leaderships and its place in the ISRs, and gets
    all its partitions again."""
    lab = cluster({0: (2, 3), 1: (3, 2)})
    lab.hold_zookeeper(1)
    lab.restart(2)
    lab.release_zookeeper(1).rest(3_000)
    assert [lab.state(TopicPartition("t", number)).leader for number in (0, 1)] == [3, 3]
    assert [lab.state(TopicPartition("t", number)).leader_epoch for number in (0, 1)] == [1, 1]
    assert lab.partition(2, T0).leader == 3
    assert lab.state().isr == (2, 3)


def test_a_broker_that_changed_its_session_only_is_bounced_too() -> None:
    """Rule (C9): an expired session costs the leadership although the process lives on, and the old leader
    follows."""
    lab = cluster({0: (2, 3)})
    lab.expire(2).settle()
    assert (lab.state().leader, lab.state().leader_epoch) == (3, 1)
    assert not lab.partition(2).is_leader


def _both_restart(*, leader_too: bool) -> Lab:
    lab = cluster({0: (2, 3)})
    lab.replicate(2, 11)
    lab.hold_zookeeper(3)
    lab.crash(1)
    if leader_too:
        lab.restart(2)
    return lab.release_zookeeper(3).rest(3_000)


def test_a_leader_that_restarted_while_nobody_watched_leads_in_a_new_epoch() -> None:
    """Rule (docs/decisions/0001): told to lead again by a new controller it does so in the next epoch, since
    its high watermark may be an older one."""
    lab = _both_restart(leader_too=True)
    assert (lab.state().leader, lab.state().leader_epoch) == (2, 1)
    assert lab.partition(2).is_leader and lab.high_watermark(2) == 1


def test_a_leader_that_did_not_restart_keeps_its_epoch() -> None:
    """Rule: a controller fail-over alone costs no leader epoch."""
    lab = _both_restart(leader_too=False)
    assert (lab.state().leader, lab.state().leader_epoch) == (2, 0)


# ---- leaders change ISRs, topics come, leaders are balanced


def test_an_isr_change_reaches_every_brokers_controller_and_the_notification_goes() -> None:
    """Rule (C5): the controller reads the ISRs that a notification names, tells everybody, and removes it."""
    lab = cluster({0: (2, 3, 1)}, replica_lag_time_max_ms=1_000)
    lab.produce(2, 11)
    lab.settle(1, 2)
    lab.advance(4_600, nodes=(2,))
    lab.settle(1, 2)
    assert lab.state().isr == (2, 1)
    assert lab.core(1).controller.state.context.states[T0].isr == (2, 1)
    assert lab.children(znodes.ISR_CHANGES) == []


def test_a_controller_acts_on_the_isr_that_stands_not_on_the_one_it_remembers() -> None:
    """Rule (C8): a leader's ISR change meanwhile is a version conflict; the controller reads again and
    decides anew."""
    lab = cluster({0: (2, 3, 1)}, replica_lag_time_max_ms=1_000, isr_change_propagation_ms=900_000)
    lab.produce(2, 11)
    lab.settle(1, 2)
    lab.advance(2_000, nodes=(2,))
    assert lab.state().isr == (2, 1)  # and the controller has not heard
    lab.crash(2)
    assert (lab.state().leader, lab.state().isr) == (1, (1,))


def test_stale_notifications_are_deleted_at_fail_over() -> None:
    """Rule (C6): a new controller loads all states anyway, so what was announced to its predecessor goes."""
    lab = cluster({0: (2, 3, 1)}, replica_lag_time_max_ms=1_000)
    lab.hold_zookeeper(1)
    lab.produce(2, 11)
    lab.settle(2, 3)
    lab.advance(4_600, nodes=(2,))
    assert len(lab.children(znodes.ISR_CHANGES)) == 1
    lab.crash(1).settle()
    assert lab.children(znodes.ISR_CHANGES) == []


def test_leadership_returns_to_the_preferred_replica() -> None:
    """Rule (C15): the balance task gives leadership back to the first replica once it is alive and in sync,
    and not before."""
    lab = cluster({0: (2, 3)}, leader_imbalance_check_ms=5_000, leader_imbalance_interval_ms=5_000)
    lab.crash(2).advance(6_000, settle=True)
    assert lab.state().leader == 3
    lab.start(2).advance(12_000, settle=True)
    assert lab.state().leader == 2 and lab.partition(2).is_leader


def test_the_balance_task_never_piles_up() -> None:
    """Rule (bounds): while ZooKeeper is away at most one balance task waits, and the task goes on once it is
    back."""
    lab = cluster({0: (2, 3)}, leader_imbalance_check_ms=5_000, leader_imbalance_interval_ms=10)
    lab.hold_zookeeper(1)
    lab.create_topic({0: (2, 3)}, "u").advance(60_000, nodes=(1,))
    assert len(lab.core(1).controller.queue) <= 1
    lab.release_zookeeper(1)
    assert ("leader_balance",) in lab.drivers[1].timers and not lab.core(1).controller.queue


def test_a_topic_that_is_gone_again_gets_no_leader() -> None:
    """Rule (C7): a partition whose first state cannot be written, because its topic was deleted meanwhile, is
    not online."""
    lab = Lab(scripted=False).settle()
    lab.hold_zookeeper(1)
    lab.create_topic({0: (2, 3)})
    while not isinstance(lab.drivers[1].held[0].request, Multi):
        lab.release_zookeeper(1, 1)
    lab.admin(Delete(znodes.topic_path("t")))
    lab.release_zookeeper(1).settle()
    state = lab.core(1).controller.state
    assert state.phases[T0] is PartitionPhase.NEW and T0 not in state.context.states
    assert T0 not in lab.core(2).replicas.partitions


def test_a_topic_gets_leaders_as_its_brokers_come() -> None:
    """Rule (C14): a new partition is led by its first live replica; one without a live replica waits for
    one."""
    lab = Lab(scripted=False, start=False)
    lab.start(1)
    lab.create_topic({0: (1, 2), 1: (2, 3)}).settle()
    assert lab.state().leader == 1 and lab.tree.node(znodes.state_path(TopicPartition("t", 1))) is None
    lab.start(2).settle()
    assert lab.state(TopicPartition("t", 1)).leader == 2


def test_a_first_state_whose_reply_was_lost_is_recognised() -> None:
    """Rule: a retried creation that meets its own node goes on as if it had been answered."""
    lab = Lab(scripted=False).settle()
    lab.drivers[1].replies_to_lose = 2
    lab.create_topic({0: (2, 3)}).settle()
    assert lab.partition(2).is_leader and lab.partition(2).zk_version == lab.state().zk_version


def test_an_election_whose_reply_was_lost_is_told_all_the_same() -> None:
    """Rule (C8): a bad version on the retry of a write that was done is recognised by its content, and the
    leader hears of its epoch."""
    lab = cluster({0: (2, 3)})
    lab.hold_zookeeper(1)
    lab.crash(2)
    lab.drivers[1].replies_to_lose = 1
    lab.release_zookeeper(1).settle()
    assert (lab.state().leader, lab.state().leader_epoch) == (3, 1)
    assert lab.partition(3).is_leader and lab.partition(3).zk_version == lab.state().zk_version


# ---- channels


def in_flight(lab: Lab, target: int) -> list[object]:
    """Control requests under way to a broker."""
    return [mail.message for mail in lab.mail if mail.target == target and isinstance(mail.message, CONTROL)]


def test_one_request_is_in_flight_and_the_rest_wait_in_order() -> None:
    """Rule (C10): a broker gets one control request at a time, in the order in which the controller
    decided."""
    lab = cluster({0: (2, 3)})
    for topic in ("u", "v"):
        lab.create_topic({0: (2, 3)}, topic)
        assert len(in_flight(lab, 2)) == 1
    order = []
    while in_flight(lab, 2):
        request = lab.deliver(1, 2)
        order += [(type(request), state.partition.topic) for state in request.partitions]
        lab.settle(1, 3)
        lab.deliver(2, 1, kafka.ControlResponse)
    assert order == [(kind, topic) for topic in ("u", "v") for kind in CONTROL]


def test_a_request_is_repeated_until_it_is_answered() -> None:
    """Rule (C10): silence means: send it again, each controller_request_timeout."""
    lab = cluster({0: (2, 3)})
    lab.create_topic({0: (2, 3)}, "u")
    first = in_flight(lab, 2)
    for _ in range(3):
        lab.drop(1, 2)
        lab.advance(1_000, nodes=(1,))
        (again,) = in_flight(lab, 2)
        assert again.partitions == first[0].partitions
    lab.settle()
    assert lab.partition(2, TopicPartition("u", 0)).is_leader


def test_nothing_is_sent_to_a_broker_that_is_gone_or_to_its_earlier_incarnation() -> None:
    """Rule (C10, KIP-380): what waited for an incarnation goes with it."""
    lab = cluster({0: (2, 3)})
    lab.create_topic({0: (2, 3)}, "u")
    old = lab.core(2).broker_context.broker_epoch
    lab.drop()
    lab.crash(2).advance(5_000, nodes=(1,))
    assert in_flight(lab, 2) == []
    lab.start(2).settle()
    refused = lab.recorded(Name.CONTROL_REQUEST_REFUSED, 2)
    assert refused == [] and lab.core(2).broker_context.broker_epoch > old
    assert set(lab.core(1).controller.state.channels.channels) == {1, 2, 3}
    assert lab.now >= 5_000 * MILLISECOND
