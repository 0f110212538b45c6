"""A topic that is deleted and created again begins anew in each row: the first one of its name excuses
nothing of the second, and convicts nobody."""

from collections.abc import Sequence

import pytest
from attrs import evolve

from fencepost.traces.events import REPLICA_DELETED, Event, Name, Question
from fencepost.traces.operations import Function, Operation
from tests.checkers.liveness.test_rows import (
    MEMBER,
    asked,
    assigned,
    configured,
    deletion,
    event,
    fault,
    found,
    of_group,
    op,
    place,
    roles,
    state,
    znode,
)


def dropped(at: float, node: int) -> Event:
    """A broker deletes its replica of t-0."""
    return event(at, Name.MARK, node=node, topic="t", partition=0, cause=REPLICA_DELETED)


FIRST = (
    *configured(15, 1, 2, 3),
    *(fault(20, "crash", 3), znode(21, 3, gone=True), state(21.1, 1, 1, (1, 2)), *roles(21.2, 1, 1, 1, 2)),
    *(event(24, Name.BROKER_STARTED, node=3), znode(24.2, 3), *roles(24.3, 1, 1, 3)),
    state(24.6, 1, 1, (1, 2, 3)),
)
GONE = (
    deletion(30, "requested"),
    *(dropped(30.1, node) for node in (1, 2, 3)),
    *(event(30.15, Name.TOPIC_CONFIGURED, node=node, topic="t", detail={}) for node in (1, 2, 3)),
    assigned(30.2, ()),
    deletion(30.3, "done"),
)
AGAIN = (assigned(40, (1, 2, 3)), state(40.1, 1, 0, (1, 2, 3)), *roles(40.2, 1, 0))
SECOND = (*FIRST, *GONE, *AGAIN)
HELD = {"logs": [["t", 0, 10, 0]]}

WRONG: dict[str, Sequence[Event | Operation]] = {
    "partition_vanished": (*SECOND, assigned(60, ())),
    "replica_deleted_early": (*SECOND, dropped(60, 3)),
    "late_decision": (*SECOND, state(60, 2, 1, (1, 2, 3)), *roles(60.1, 2, 1, 1, 2)),
    "directory_not_as_assigned": (*SECOND, asked(70, Question.LOG_DIRECTORIES, 1, detail={"logs": []})),
    "stale_metadata": (
        *SECOND,
        asked(70, Question.PARTITION, 1, topic="t", partition=0, leader=2, leader_epoch=1),
    ),
    "commit_not_served": (
        *SECOND,
        *MEMBER,
        of_group(Function.COMMIT, 50, 50.1, positions=(place(6),)),
        asked(70, Question.COMMITTED, 1, detail={"group": "g", "offsets": [["t", 0, 4, -1]]}),
    ),
}
RIGHT: dict[str, Sequence[Event | Operation]] = {
    "nothing but a deletion": (*FIRST, *GONE),
    "the same name again": SECOND,
    "a broker that deletes the first one late": (
        *(one for one in SECOND if one.name is not Name.MARK or one.node != 3),
        *(dropped(39.9, 3),),
    ),
    "a topic whose assignments nobody recorded": (deletion(40, "requested", "v"), deletion(41, "done", "v")),
    "brokers that are asked": (
        *SECOND,
        asked(35, Question.LOG_DIRECTORIES, 1, detail={"logs": []}),
        *(asked(70, Question.LOG_DIRECTORIES, node, detail=HELD) for node in (1, 2, 3)),
        asked(70, Question.PARTITION, 1, topic="t", partition=0, leader=1, leader_epoch=0),
    ),
    "clients that go on": (
        *SECOND,
        op(Function.APPEND, 20, 20.1, offset=8),
        op(Function.APPEND, 60, 60.1, offset=0),
        op(Function.APPEND, 61, 61.1, offset=1),
    ),
    "a committed offset that went with its topic": (
        *(*FIRST, *GONE),
        *MEMBER,
        of_group(Function.COMMIT, 20.5, 20.6, positions=(place(6),)),
        asked(70, Question.COMMITTED, 1, detail={"group": "g", "offsets": []}),
    ),
}


@pytest.mark.parametrize("row", WRONG)
def test_what_is_wrong_with_the_second_topic_of_a_name_is_found(row: str) -> None:
    """Rule: that a name was used before excuses nothing."""
    assert row in found(WRONG[row])


@pytest.mark.parametrize("story", RIGHT)
def test_what_was_right_of_the_first_topic_convicts_nobody(story: str) -> None:
    """Rule: epochs, replicas, offsets and settings begin anew."""
    assert found(RIGHT[story]) == set()


def test_a_broker_that_does_not_run_is_told_nothing() -> None:
    """Rule: a broker whose process ended is registered for a session more; what is decided meanwhile reaches
    no process."""
    away = (
        fault(50, "crash", 3),
        *(assigned(50.1, (1, 2, 3), "u"), state(50.2, 1, 0, (1, 2, 3), "u")),
        *(evolve(one, topic="u") for one in roles(50.3, 1, 0, 1, 2)),
        *(znode(55, 3, gone=True), state(55.1, 1, 1, (1, 2)), state(55.1, 1, 1, (1, 2), "u")),
        *roles(55.2, 1, 1, 1, 2),
        *(evolve(one, topic="u") for one in roles(55.2, 1, 1, 1, 2)),
    )
    assert found(away) == set()


LED_BY_ANOTHER = (state(50, 2, 1, (1, 2, 3)), *roles(50.1, 2, 1))
OUT_OF_SYNC = (state(50, 1, 1, (1, 2)), *roles(50.1, 1, 1))


@pytest.mark.parametrize(
    ("row", "wrong"), [("late_preferred_election", LED_BY_ANOTHER), ("slow_recovery", OUT_OF_SYNC)]
)
def test_nothing_is_owed_to_a_topic_that_goes(row: str, wrong: Sequence[Event]) -> None:
    """Rule: from the request on, though the state is older; Kafka balances no topic that is being deleted."""
    assert row in found(wrong)
    assert row not in found([*wrong, deletion(50.2, "requested")])


def test_a_process_owes_no_role_before_it_has_registered() -> None:
    """Rule: the node of the process before it may still be there."""
    back = (*configured(5, 1, 2, 3), fault(48, "crash", 1), event(49, Name.BROKER_STARTED, node=1))
    decided = (state(50, 1, 1, (1, 2, 3)), *roles(50.1, 1, 1, 2, 3))
    later = (znode(56, 1, gone=True), znode(57, 1))
    assert "late_decision" not in found([*back, *decided, *later])
    assert "late_decision" in found([*back, znode(49.1, 1, gone=True), znode(49.2, 1), *decided])
