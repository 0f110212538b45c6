"""ANSWERED: each request to a broker gets an answer, and the answer says what the broker is and holds.

Owns wrong_answer, unanswered_request, wrong_request, wrong_row, wrong_step and contradictory_state. A client
that gets a wrong error, or no answer, tries again until it succeeds, so that the history of its operations
shows a delay at most. The run compares each answer with the state of the broker in that moment, and records
those that the state refutes, and the requests that were never answered (ANSWERED). It also compares what
clients ask for with what the plan says, what they report with what they were answered, what brokers send each
other with the sender's state, the parts of a broker that has nothing to do with each other, and what a step
of a broker did with what small models of its parts say.

A broker may owe an answer longer while its process is paused or slow, its disk fails or its clock is wrong:
the time counts from the end of the last such fault.
"""

from collections.abc import Callable, Mapping

import msgspec
from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime.calm import fault_of
from fencepost.checkers.meantime.options import MILLISECOND
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name

NEVER, UNPLANNED, UNFOUNDED, RESTING = "never", "unplanned", "unfounded", "resting"
STEP = "step"
UNKNOWN_LEADER, ROW, UNCOMMITTED = "unknown_leader", "row", "uncommitted"
"""Causes of the event; "wrong" is one more. Unfounded: a broker's request to another one. Unknown leader: of
a client's request. Row: what a client reports of an operation. Uncommitted: of a consumer's poll."""
PATIENCE_MS = 10_000
"""How long a broker may take without a fault: twice offsets.commit.timeout.ms, its
longest wait."""


class Answer(msgspec.Struct, frozen=True):
    """The detail of the event."""

    request: str = ""
    # When the request arrived, in nanoseconds.
    since: int = 0
    expected: str = ""
    seen: str = ""


@define
class Answered:
    """The state of the rule."""

    findings: Findings
    # Faults that last, by the broker that is hit.
    active: dict[int, set[str]] = field(factory=dict)
    # Since when nothing is wrong with each broker.
    well: dict[int, int] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Answers, and the faults that delay them."""
        return {
            Name.ANSWERED: self._answered,
            Name.FAULT_BEGAN: self._began,
            Name.FAULT_ENDED: self._ended,
        }

    def _began(self, position: int, event: Event) -> None:
        self.active.setdefault(event.node, set()).add(fault_of(event))

    def _ended(self, position: int, event: Event) -> None:
        self.active.get(event.node, set()).discard(fault_of(event))
        self.well[event.node] = event.time

    def _answered(self, position: int, event: Event) -> None:
        try:
            detail = from_json(event.detail, Answer)
        except msgspec.DecodeError:
            return  # a trace may come from any tool
        if event.cause == NEVER and not self._is_late(event, detail):
            return
        anomaly = "unanswered_request" if event.cause == NEVER else "wrong_answer"
        expected = f"broker {event.node} to answer {detail.request} with {detail.expected}"
        if event.cause == UNPLANNED:
            anomaly, expected = "wrong_request", f"{detail.request} as planned: {detail.expected}"
        elif event.cause == UNFOUNDED:
            anomaly = "wrong_request"
            expected = f"broker {event.node} to send {detail.request} as its state says: {detail.expected}"
        elif event.cause == UNKNOWN_LEADER:
            anomaly = "wrong_request"
            expected = f"client {event.node} to send {detail.request} as it was answered: {detail.expected}"
        elif event.cause == UNCOMMITTED:
            anomaly, expected = "missing_commit", detail.expected
        elif event.cause == ROW:
            anomaly = "wrong_row"
            expected = f"the row of {detail.request} to say what was answered: {detail.expected}"
        elif event.cause == STEP:
            anomaly, expected = "wrong_step", f"broker {event.node} after a step: {detail.expected}"
        elif event.cause == RESTING:
            anomaly, expected = "contradictory_state", f"host {event.node} at rest: {detail.expected}"
        self.findings.add(
            anomaly,
            expected=expected,
            seen=detail.seen,
            topic=event.topic,
            partition=event.partition,
            events=(position,),
        )

    def _is_late(self, event: Event, detail: Answer) -> bool:
        """Whether it waited long enough without a fault."""
        well = max((self.well.get(node, 0) for node in (event.node, -1)), default=0)
        waited = event.time - max(detail.since, well)
        return waited > PATIENCE_MS * MILLISECOND and not self.active.get(event.node)
