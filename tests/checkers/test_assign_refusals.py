"""A controller's word that a reassignment is impossible convicts it where ZooKeeper says otherwise."""

import pytest

from fencepost.checkers.invariants import judge
from fencepost.traces.events import Event, Name
from tests.checkers import lab

PLACE = {"topic": "t", "partition": 0}
START = (
    *(Event(time=1, name=Name.BROKER_ZNODE, node=node, broker_epoch=1) for node in (1, 2, 3)),
    Event(time=2, name=Name.CONTROLLER_EPOCH, node=1, controller_epoch=1),
    Event(time=3, name=Name.ASSIGNMENT, node=-1, replicas=(1, 2), **PLACE),
)
STATE = lab.event(
    3, Name.PARTITION_STATE, 1, leader=1, leader_epoch=0, isr=(1, 2), controller_epoch=1, **PLACE
)
ASKED = Event(time=5, name=Name.REASSIGNMENT, node=-1, replicas=(1, 3), **PLACE)
REFUSED = (
    Event(time=6, name=Name.MARK, node=1, cause="reassignment_refused", **PLACE),
    Event(time=7, name=Name.REASSIGNMENT, node=1, **PLACE),
)
GONE = Event(time=4, name=Name.BROKER_ZNODE, node=3, broker_epoch=-1)
BACK = Event(time=4, name=Name.BROKER_ZNODE, node=3, broker_epoch=9)
DELETION = Event(time=4, name=Name.TOPIC_DELETION, topic="t", cause="requested")


@pytest.mark.parametrize(
    ("before", "forgotten"),
    [
        ((STATE,), True),
        ((STATE, GONE), False),
        ((STATE, GONE, BACK), False),
        ((STATE, DELETION), False),
        ((), False),
    ],
)
def test_a_refusal_needs_a_fact(before, forgotten) -> None:
    """Rule: every broker of the target was there all the time, and the topic stays, so that dropping the
    entry is a finding; a broker that was away in this reign explains it, and that nobody decided who leads
    the partition."""
    events = (*START, *before, ASKED, *REFUSED)
    verdict = judge(lab.trace(trace_id=1, events=events))
    assert ("reassignment_forgotten" in {finding.anomaly for finding in verdict.findings}) is forgotten
