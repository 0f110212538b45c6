"""checkers/conformance of brokers that do not say what they append: each guard that needs no log, broken by
hand, and the nearest legal story. Logs of any length are accepted."""

import pytest

from fencepost.checkers import conformance
from fencepost.checkers.verdict import Decision
from fencepost.traces.events import APPENDS_UNKNOWN, Event, Name
from tests.checkers.traces_by_hand import dump, event, follows, leads, starts, state, trace

ON = {"topic": "t", "partition": 0}
SILENT = Event(time=0, name=Name.MARK, cause=APPENDS_UNKNOWN)
START = (
    state(9, 1, 0, 1, 2, 3, version=0),
    leads(1, 0, 1, 2, 3),
    follows(2, 1, 0),
    state(9, 1, 0, 1, 2, version=1),
    event(Name.ISR_UPDATED, node=1, leader_epoch=0, isr=(1, 2), zk_version=1, **ON),
)
"""Broker 9 is the controller, and writes for leader 1, as with AlterPartition; 3 left the ISR."""
ELECTED = (
    *START,
    state(9, 2, 1, 2, version=2),
    leads(2, 1, 2, end=17, hw=15),
    follows(1, 2, 1, end=19, hw=17),
)
"""Leader 2 of epoch 1, with logs of which nothing else is known."""


def verdict(*events):
    return conformance.judge(trace(SILENT, *events))


def unclean(cause):
    """Broker 3 is elected, which is not in the ISR."""
    return event(
        Name.PARTITION_STATE, node=9, leader=3, leader_epoch=1, isr=(3,), zk_version=2, cause=cause, **ON
    )


MOVING = event(Name.REASSIGNMENT, replicas=(3,), **ON)
ALLOWED = event(Name.TOPIC_CONFIGURED, topic="t", detail='{"unclean.leader.election.enable":"true"}')


@pytest.mark.parametrize(
    "events",
    [
        ELECTED,
        (*ELECTED, dump(2, 1, 0, 10, 11, end=2, hw=2), starts(1), follows(1, 2, 1, end=3, hw=3)),
        (*START, ALLOWED, unclean("unclean")),
        (*START, unclean("eligible")),
        (*START, unclean("last_known")),
        (*START, MOVING, unclean("unclean")),
        (*START, state(9, -1, 1, 1, version=2), state(9, -1, 1, 1, version=3), state(9, 1, 2, 1, version=4)),
        (*START, state(9, 1, 0, 1, 2, 3, version=2)),
    ],
    ids=["elected", "logs", "allowed", "eligible", "last known", "moved", "nobody leads", "expands"],
)
def test_what_controllers_may_decide_is_explained(events):
    """Rule: nothing follows from logs that are not known."""
    assert verdict(*events).decision is Decision.OK, verdict(*events)


@pytest.mark.parametrize(
    ("events", "action", "expected"),
    [
        ((*START, unclean("unclean")), "elect", "no unclean election was allowed"),
        ((*START, state(9, 2, 1, 2, 3, version=2)), "elect", "nobody added"),
        ((*START, state(9, 2, 3, 2, version=2)), "elect", "leader epoch 1: each election raises it by one"),
        ((*START, state(9, 2, 0, 1, 2, version=2)), "shrink_isr", "leader 1 to stay"),
        ((*START, state(9, 1, 0, 2, version=2)), "shrink_isr", "leader 1 to stay in the ISR"),
        ((*START, state(9, 1, 0, 1, version=3)), "shrink_isr", "a compare-and-set on version 1"),
        ((*ELECTED, leads(3, 2, 2)), "become_leader", "which they had not begun"),
        ((*ELECTED, follows(3, 1, 1)), "become_follower", "named in that leader epoch, 2"),
        ((*ELECTED, follows(1, 1, 0)), "become_leader", "a leader epoch above 1"),
        ((*START[:1], leads(1, 0, 1, 4)), "shrink_isr", "an ISR that was decided in leader epoch 0"),
        (
            (*ELECTED, event(Name.ISR_UPDATED, node=2, leader_epoch=1, isr=(1, 2), **ON)),
            "shrink_isr",
            "an ISR that was decided in leader epoch 1: [[2]]",
        ),
    ],
)
def test_what_no_action_explains_is_convicted(events, action, expected):
    """Rule: the last event of each story breaks one guard."""
    found = verdict(*events)
    assert found.decision is Decision.ILLEGAL
    (finding,) = found.findings
    assert finding.events[-1] == len(events) and finding.seen.startswith(action), finding
    assert expected in finding.expected


def test_without_the_mark_logs_are_judged():
    """Rule: only brokers that are known to be silent are believed to have appended something."""
    assert conformance.judge(trace(*ELECTED)).decision is Decision.ILLEGAL
