"""Rows about members that leave: whose LeaveGroup was answered is none any more.

Owns this row. It reads the answers that members got, and in which state coordinators say that groups are.
"""

import contextlib
from collections.abc import Iterator

import msgspec

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.model.group.recorded_groups import LOADED, PREPARING, GroupDetail
from fencepost.record.facts import Facts
from fencepost.record.timeline import Subject, Timeline
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome

States = dict[tuple[int, str], list[tuple[int, Event, GroupDetail]]]
"""What each coordinator said of each group, in order: where the trace has it, and what it is."""


def _states(facts: Facts) -> States:
    found: States = {}
    for position, event in facts.of(Name.GROUP_PHASE):
        with contextlib.suppress(msgspec.DecodeError):  # a trace may come from any tool
            detail = from_json(event.detail, GroupDetail)
            found.setdefault((event.node, detail.group), []).append((position, event, detail))
    return found


def _stays(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    states = facts.once(_states)
    for one in facts.operations:
        if one.function is Function.LEAVE and one.outcome is Outcome.OK and one.node is not None:
            kept = _kept(states.get((one.node, one.group or ""), []), one)
            yield Case(
                subject=(Subject.GROUP, one.group),
                since=one.completion_time or one.invoke_time,
                fine=kept is None,
                expected=f"no member {one.member} in group {one.group}, which broker {one.node} let go",
                seen="" if kept is None else f"broker {one.node} has it",
                events=() if kept is None else (kept,),
                operations=(one.op_id,),
            )


def _kept(states: list[tuple[int, Event, GroupDetail]], one: Operation) -> int | None:
    """Where the coordinator that answered has the member after all: in the state that it was in by then,
    unless it had begun to rebalance before, or in the next one. What it loads since is of its log, in which
    the member may be: a generation is written once it has an assignment."""
    kept: int | None = None
    for position, event, detail in states:
        if event.time >= one.invoke_time and detail.why == LOADED:
            return None
        if event.time > (one.completion_time or 0):
            return position if one.member in detail.members else None
        kept = position if event.cause != PREPARING and one.member in detail.members else None
    return kept


ROWS = (
    Row(
        name="leaver_stays_member",
        form=Form.DONE,
        subject=Subject.GROUP,
        cases=_stays,
        where="our own consumers and brokers",
    ),
)
