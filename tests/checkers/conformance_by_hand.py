"""What the tests of conformance share: to convict the last event of a story, to accept a whole one, and three
ways to begin."""

from fencepost.checkers import conformance
from fencepost.checkers.verdict import Decision, Finding
from fencepost.traces.events import Event, Name
from tests.checkers import lab
from tests.checkers.traces_by_hand import appends, event, follows, healthy_start, leads, state, trace


def convict(*events: Event) -> Finding:
    """The one finding of a trace; its last event must be the one that is convicted."""
    verdict = conformance.judge(trace(*events))
    assert verdict.decision is Decision.ILLEGAL, verdict
    (finding,) = verdict.findings
    assert finding.events[-1] == len(events) - 1
    assert (finding.anomaly, finding.check, finding.topic, finding.partition) == (
        "conformance",
        "conformance",
        "t",
        0,
    )
    return finding


def accept(*events: Event) -> None:
    """The model explains every event."""
    verdict = conformance.judge(trace(*events))
    assert verdict.decision is Decision.OK, verdict.findings


START = healthy_start(10, 11)
"""Positions 0 to 9: 1 leads epoch 0 and follows nobody; 2 and 3 follow; values 10, 11 are committed at
offsets 0 and 1."""
NEW_LEADER = [*START, state(9, 2, 1, 2, 3, version=1), leads(2, 1, 2, 3, end=2, hw=2)]
"""... and 2 leads epoch 1 from offset 2 (positions 10, 11)."""
FORKED = [*START, appends(1, 0, 2, 12), *NEW_LEADER[10:], follows(1, 2, 1, end=3, hw=2)]
"""1 has a record at offset 2 that the new leader 2 lacks, and follows it."""


def begins(node: int, epoch: int, start: int) -> Event:
    """The start of a log moved."""
    return event(Name.LOG_START, node=node, leader_epoch=epoch, log_start_offset=start, **lab.T0)
