"""checkers/invariants: ISR, assignments, deletions and fencing; for each anomaly a trace by hand that
convicts it, and the nearest legal one."""

from typing import Any

import pytest
from attrs import evolve

from fencepost.checkers.invariants import in_sync
from fencepost.traces.events import Event, Name
from tests.checkers.test_invariants import accept, convict
from tests.checkers.traces_by_hand import ON, event, follows, leads, starts, state

TOPIC = {"topic": "t"}


def assigned(node: int, *replicas: int) -> Event:
    """The topic's node was written."""
    return event(Name.ASSIGNMENT, node=node, replicas=replicas, **ON)


def asked(*replicas: int, node: int = -1) -> Event:
    """/admin/reassign_partitions was written; without replicas: the entry was taken out."""
    return event(Name.REASSIGNMENT, node=node, replicas=replicas, **ON)


def elected(node: int, epoch: int) -> list[Event]:
    """A broker became controller."""
    return [
        event(Name.CONTROLLER_EPOCH, node=node, controller_epoch=epoch),
        event(Name.CONTROLLER_ELECTED, node=node, controller_epoch=epoch),
    ]


def mark(node: int, cause: str, **columns: Any) -> Event:
    """A mark."""
    return event(Name.MARK, node=node, cause=cause, **columns)


def registered(node: int, epoch: int = 5) -> Event:
    """/brokers/ids/N came, or went (epoch -1)."""
    return event(Name.BROKER_ZNODE, node=node, broker_epoch=epoch)


def never_ended(cause: str) -> Event:
    """A wait of the liveness phase."""
    return event(Name.LIVENESS_FAILED, cause=cause)


def believes(node: int, epoch: int, version: int, *isr: int) -> Event:
    """A leader learned that its ISR change was accepted."""
    return event(
        Name.ISR_UPDATED, node=node, leader_epoch=epoch, isr=isr, zk_version=version, cause="shrink", **ON
    )


def proposes(node: int, epoch: int, *isr: int) -> Event:
    """A leader asks for a larger ISR."""
    return event(Name.ISR_PROPOSED, node=node, leader_epoch=epoch, isr=isr, cause="expand", **ON)


# ---- the ISR


def test_an_isr_is_never_empty() -> None:
    """Rule (ISR-NONEMPTY): the last member stays when it dies."""
    finding = convict("empty_isr", state(1, 1, 0, 1), state(9, -1, 1))
    assert finding.events == (0, 1)
    accept(state(1, 1, 0, 1), state(9, -1, 1, 1))


def test_a_leader_goes_by_no_fewer_members_than_zookeeper_holds() -> None:
    """Rule (ISR-AGREE): what a leader is told, or learns of its own change, holds all of ZooKeeper's ISR of
    that epoch."""
    finding = convict("isr_disagrees", state(1, 1, 0, 1, 2, 3, version=0), leads(1, 0, 1, 2))
    assert finding.events == (0, 1)
    finding = convict(
        "isr_disagrees",
        state(1, 1, 0, 1, 2, 3, version=0),
        leads(1, 0, 1, 2, 3),
        state(1, 1, 0, 1, 2, version=1),
        believes(1, 0, 1, 1),
    )
    assert finding.events == (2, 3)
    accept(
        state(1, 1, 0, 1, 2, 3, version=0),
        leads(1, 0, 1, 2, 3),
        state(1, 1, 0, 1, 2, version=1),
        state(1, 1, 0, 1, 2, 3, version=2),
        believes(1, 0, 1, 1, 2),
        state(9, 2, 1, 2, 3, version=3),
        believes(1, 0, 2, 1, 2, 3),
    )
    late = [state(1, 1, 0, 1, 2, 3, version=1), state(9, 1, 1, 1, 2, version=2), believes(1, 1, 1, 1)]
    accept(*late)  # a version of another epoch says nothing of this one
    convict("isr_disagrees", *late, state(1, 1, 1, 1, version=3), believes(1, 1, 2, 1))


def test_the_isr_is_part_of_the_assignment() -> None:
    """Rule (ISR-IN-AR): whichever of the two is written last."""
    finding = convict("isr_outside_assignment", assigned(-1, 1, 2), state(1, 1, 0, 1, 3))
    assert finding.events == (0, 1)
    story = [assigned(-1, 1, 2), asked(1, 3), assigned(9, 1, 2, 3), state(1, 1, 0, 1, 2, 3)]
    finding = convict("isr_outside_assignment", *story, assigned(9, 1, 3))
    assert finding.events == (3, 4)
    accept(*story, state(9, 1, 1, 1, 3), assigned(9, 1, 3))


def test_nobody_joins_who_was_told_to_be_stopping() -> None:
    """Rule (STOP-SAFE): the leader had heard that the broker is not alive, or about to stop; a restart
    forgets what was heard."""
    alive = event(Name.LIVE_BROKERS, node=1, replicas=(1, 2))
    story = [state(1, 1, 0, 1), leads(1, 0, 1), alive]
    finding = convict("stopping_member_joined_isr", *story, proposes(1, 0, 1, 3))
    assert finding.events == (2, 3)
    accept(*story, proposes(1, 0, 1, 2))
    convict("stopping_member_joined_isr", *story, starts(1), proposes(1, 0, 1, 2))


def test_a_controller_that_took_over_leaves_no_dead_member() -> None:
    """Rule (ISR-ALIVE): the state stood before the election, its leader lives, its member was gone: it must
    have been taken out."""
    before = [registered(1), registered(2), state(9, 1, 0, 1, 2), registered(2, -1)]
    over = mark(3, "failed_over", controller_epoch=2)
    finding = convict("dead_member_left_in_isr", *before, *elected(3, 2), over)
    assert finding.events == (2, 6)
    accept(*before, *elected(3, 2), state(3, 1, 1, 1, controller_epoch=2), over)
    accept(*before, registered(1, -1), *elected(3, 2), over)  # no leader: the last member stays
    accept(*before, *elected(3, 2), *elected(4, 3), over)  # a successor was there before it was done
    accept(*before[:3], *elected(3, 2), before[3], over)  # it died later: the watch will tell
    written = [
        registered(1),
        registered(2),
        registered(2, -1),
        *elected(3, 2),
        state(3, 1, 0, 1, 2, controller_epoch=2),
    ]
    accept(*written, over)  # it was written after the election
    convict(
        "dead_member_left_in_isr", *before, evolve(deletion("requested"), topic="u"), *elected(3, 2), over
    )
    accept(*before, deletion("requested"), *elected(3, 2), over)  # the topic goes


def test_a_replica_in_the_isr_is_not_deleted() -> None:
    """Rule (COMMIT-SAFE): unless its topic goes."""
    deleted = mark(2, "replica_deleted", leader_epoch=0, **ON)
    finding = convict("isr_member_deleted", state(9, 1, 0, 1, 2), deleted)
    assert finding.events == (0, 1)
    accept(state(9, 1, 0, 1, 2), state(9, 1, 1, 1), deleted)
    accept(event(Name.TOPIC_DELETION, cause="requested", **TOPIC), state(9, 1, 0, 1, 2), deleted)


# ---- reassignment


def test_replicas_become_what_was_asked_for_in_this_reign() -> None:
    """Rule (ASSIGN): AR grows by the target and becomes the target; what an earlier reign was asked for does
    not count."""
    story = [assigned(-1, 1, 2), *elected(1, 1), asked(2, 3)]
    accept(*story, assigned(1, 1, 2, 3), assigned(1, 2, 3), asked(node=1))
    finding = convict("stale_reassignment", *story, assigned(1, 1, 4))
    assert finding.events == (0, 4)
    assert finding.expected.endswith("in this controller's reign: [2, 3]")
    unasked = convict("stale_reassignment", *story[:3], assigned(1, 1, 4))
    assert unasked.expected.endswith("in this controller's reign: nothing")
    done = [*story, assigned(1, 1, 2, 3), assigned(1, 2, 3), asked(node=1), asked(1, 2), assigned(1, 2, 3, 1)]
    undone = [*done, assigned(1, 1, 2), asked(node=1)]
    accept(*undone, asked(2, 3), assigned(1, 1, 2, 3))
    convict("stale_reassignment", *undone, *elected(2, 2), assigned(2, 1, 2, 3))


def test_a_request_is_not_taken_out_before_it_is_done_or_refused() -> None:
    """Rule (ASSIGN): what is pending stays where the next controller finds it."""
    story = [assigned(-1, 1, 2), asked(2, 3)]
    finding = convict("reassignment_forgotten", *story, asked(node=1))
    assert finding.events == (1, 2)
    accept(*story, asked())  # by an operator
    accept(*story, mark(1, "reassignment_refused", **ON), asked(node=1))
    accept(*story, assigned(1), asked(node=1))  # its topic is gone


def test_a_replica_that_is_wanted_is_not_deleted() -> None:
    """Rule (COMMIT-SAFE, KIP-570): what the pending reassignment, or else the assignment, names stays; only a
    deletion of the topic takes it."""
    deleted = mark(2, "replica_deleted", leader_epoch=3, **ON)
    finding = convict("assigned_replica_deleted", assigned(-1, 1, 2), deleted)
    assert finding.events == (0, 1)
    convict("assigned_replica_deleted", assigned(-1, 1), asked(1, 2), deleted)
    accept(assigned(-1, 1, 2), asked(1, 3), assigned(9, 1, 2, 3), deleted)
    accept(assigned(-1, 1, 2), deletion("requested"), deleted)


def test_a_broker_may_act_on_an_assignment_that_was_replaced_before_it_heard_of_it() -> None:
    """Rule (COMMIT-SAFE, KIP-570): a replica that knows no epoch of the assignment without it may be deleted
    after it was assigned again (seed 112 of `strong` against Apache Kafka 4.4.0); one that does stays."""
    both, alone, since = assigned(-1, 1, 2), assigned(-1, 1), state(9, 1, 4, 1)
    deleted = {epoch: mark(2, "replica_deleted", leader_epoch=epoch, **ON) for epoch in (-1, 3, 4, 5)}
    for away in ((both, alone, since, both), (both, since, alone, both)):
        accept(*away, deleted[3])
        for epoch in (-1, 4, 5):
            convict("assigned_replica_deleted", *away, deleted[epoch])


def test_an_accepted_reassignment_ends() -> None:
    """Rule (ASSIGN): once the faults have ended; other waits have their own name."""
    story = [assigned(-1, 1, 2), asked(2, 3)]
    finding = convict("reassignment_incomplete", *story, never_ended("every reassignment has ended"))
    assert finding.events == (1, 2)
    convict("no_progress", *story, never_ended("every ISR is full"))


# ---- deletion


def deletion(cause: str, node: int = -1) -> Event:
    """/admin/delete_topics/t came or went."""
    return event(Name.TOPIC_DELETION, node=node, cause=cause, **TOPIC)


def held(node: int) -> Event:
    """A replica at the end."""
    return event(Name.REPLICA_LOG, node=node, offset=0, end_offset=0, high_watermark=0, **ON)


def test_a_deletion_ends_with_no_replica_left() -> None:
    """Rule (DEL-COMPLETE): of the brokers that the topic was assigned to; another one may hold what a
    reassignment left while it was down."""
    story = [assigned(-1, 1, 2), deletion("requested"), assigned(9), deletion("done", 9)]
    finding = convict("deleted_topic_left_behind", *story, held(2))
    assert finding.events == (2, 4)
    accept(*story, held(3))
    accept(*story[:2], held(2))


def test_a_deletion_is_not_forgotten() -> None:
    """Rule (DEL-COMPLETE): its request stands until the topic is gone, and the topic is gone in the end."""
    story = [assigned(-1, 1, 2), deletion("requested")]
    finding = convict("deletion_incomplete", *story, deletion("done", 9))
    assert finding.events == (1, 2)
    finding = convict("deletion_incomplete", *story, never_ended("every deletion of a topic has ended"))
    assert finding.events == (1, 2)
    accept(*story, deletion("done"))  # an operator thought better of it
    accept(deletion("requested"), deletion("done", 9))  # there is no such topic
    first = convict("deletion_incomplete", deletion("requested"), assigned(-1, 1, 2), deletion("done", 0))
    assert first.events == (0, 2)
    assert convict("deletion_incomplete", assigned(-1, 1, 2), deletion("done", 9)).events == (1,)


# ---- fencing


def test_an_epoch_is_of_the_broker_that_was_elected_in_it() -> None:
    """Rule (CTRL-FENCE, KAFKA-1096): a deposed controller that has read the newest epoch is not its owner."""
    story = [event(Name.CONTROLLER_EPOCH, node=2, controller_epoch=2), state(2, 1, 0, 1, controller_epoch=2)]
    finding = convict("fenced_controller_wrote", *story, state(3, 1, 1, 1, controller_epoch=2))
    assert finding.events == (0, 2)
    accept(*story, state(2, 1, 1, 1, controller_epoch=2))


def test_a_request_for_an_earlier_incarnation_changes_nothing() -> None:
    """Rule (INCARNATION, KIP-380): at a broker that has registered since, and at a controller that knows that
    it has."""

    def applied(epoch: int) -> Event:
        return event(
            Name.CONTROL_REQUEST_APPLIED, node=2, broker_epoch=epoch, controller_epoch=1, cause="LeaderAndIsr"
        )

    def shut_down(asked: int, known: int) -> Event:
        return mark(
            1, "controlled_shutdown", leader=2, broker_epoch=asked, detail=f'{{"known_broker_epoch":{known}}}'
        )

    came = event(Name.BROKER_REGISTERED, node=2, broker_epoch=9)
    assert convict("earlier_incarnation_obeyed", came, applied(8)).events == (0, 1)
    assert convict("earlier_incarnation_obeyed", came, shut_down(8, 9)).events == (0, 1)
    accept(came, applied(9), applied(10), shut_down(9, 9), shut_down(8, 8))


def test_a_role_is_taken_once_in_an_epoch() -> None:
    """Rule (EPOCH-MONO, KAFKA-1188): a broker that remembers the epoch takes no role in it again; a restart,
    or the end of the replica, forgets it."""
    story = [state(9, 1, 0, 1, 2), follows(2, 1, 0)]
    finding = convict("leader_epoch_repeated", *story, follows(2, 1, 0))
    assert finding.events == (1, 2)
    accept(*story, starts(2), follows(2, 1, 0))
    accept(*story, state(9, 1, 1, 1), mark(2, "replica_deleted", **ON), follows(2, 1, 0))


@pytest.mark.parametrize("part", ["_partition_state", "_mark", "_proposed", "_believes"])
def test_without_its_rule_an_invariant_finds_nothing(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Rule: each of the ISR's invariants has failed on purpose: with its handler gone the story that convicts
    is accepted."""
    stories = {
        "_partition_state": [state(1, 1, 0, 1), state(9, -1, 1)],
        "_mark": [state(9, 1, 0, 1, 2), mark(2, "replica_deleted", leader_epoch=0, **ON)],
        "_proposed": [state(1, 1, 0, 1), leads(1, 0, 1), proposes(1, 0, 1, 3)],
        "_believes": [state(1, 1, 0, 1, 2, 3, version=0), leads(1, 0, 1, 2)],
    }
    monkeypatch.setattr(in_sync.InSync, part, lambda self, position, event: None)
    accept(*stories[part])
