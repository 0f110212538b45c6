"""A trace as entries in order of time: who, what, and how much it matters.

Owns: which events and operations a timeline shows, their order, and which of them are routine.
Must not know: folding, layout, colours.

An operation is shown at its completion (at its invocation if it has none). One of the proof is shown at
both, because the proof is about the interval. At equal times events come first, then operations.
"""

from collections.abc import Iterator
from enum import IntEnum

from attrs import frozen

from fencepost.checkers.durations import duration
from fencepost.report.event_words import (
    answer_in_words,
    event_in_words,
    outcome_in_words,
    partition_name,
    request_in_words,
)
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.trace import Trace

Partition = tuple[str | None, int]


class Level(IntEnum):
    """How much an entry matters; a timeline that is too long drops the highest numbers first."""

    CONVICTS = 0
    TURNING_POINT = 1
    NOTABLE = 2
    TROUBLED_CLIENT = 3
    ROUTINE = 4


TURNING_POINTS = frozenset(
    {
        Name.PHASE,
        Name.FAULT_BEGAN,
        Name.FAULT_ENDED,
        Name.CONTROLLER_ELECTED,
        Name.BECAME_LEADER,
        Name.TRUNCATED,
        Name.FOLLOWER_FAILED,
        Name.LIVENESS_FAILED,
        Name.IMPLEMENTATION_ERROR,
        Name.CONTROLLER_WRITE_REFUSED,
        Name.SESSION_EXPIRED,
    }
)
ROUTINE = frozenset(
    {
        Name.APPENDED,
        Name.HIGH_WATERMARK,
        Name.CONTROL_REQUEST_APPLIED,
        Name.FETCH_REFUSED,
        Name.MARK,
        Name.REQUEST,
        Name.CONNECTION,
        Name.REPLICA_LOG,
        Name.ASKED,
    }
)
"""Events that fill a trace while nothing is the matter."""
LEADER_NOT_ALIVE = "leader_not_alive"
"""The mark of a broker that refuses to follow a leader of which it has not heard."""


@frozen(kw_only=True)
class TimelineEntry:
    """One moment of a timeline."""

    # Nanoseconds since the beginning of the run.
    time: int
    # Position among entries of equal time.
    order: int
    # A broker, a client or the run.
    who: str
    # What happened, in words.
    what: str
    # What a fold counts it as.
    kind: str
    # How much it matters.
    level: Level
    # The partitions that it concerns; none: it concerns the cluster.
    partitions: frozenset[Partition] = frozenset()
    # The event that it shows; None for an operation.
    event: Event | None = None

    @property
    def marked(self) -> bool:
        """Whether it is one of those that prove a finding."""
        return self.level is Level.CONVICTS


def _who(event: Event) -> str:
    if event.name in (Name.FAULT_BEGAN, Name.FAULT_ENDED, Name.FAULT_SKIPPED):
        return "fault"
    return f"broker {event.node}" if event.node >= 0 else "run"


def _is_refused_request(event: Event) -> bool:
    """Whether a broker refused what a controller asked of it: the request, or the role in it."""
    return event.name is Name.CONTROL_REQUEST_REFUSED or (
        event.name is Name.MARK and event.cause == LEADER_NOT_ALIVE
    )


def _event_entry(position: int, event: Event, *, marked: bool, stuck: bool) -> TimelineEntry:
    partition = (event.topic, event.partition) if event.topic is not None else None
    where = f"{partition_name(*partition)}: " if partition else ""
    commit = event.name is Name.REQUEST and partition is not None
    if marked:
        level = Level.CONVICTS
    elif event.name in TURNING_POINTS or (stuck and _is_refused_request(event)):
        level = Level.TURNING_POINT
    else:
        level = Level.ROUTINE if event.name in ROUTINE and not commit else Level.NOTABLE
    return TimelineEntry(
        time=event.time,
        order=position,
        who=_who(event),
        what=where + event_in_words(event),
        kind=event.cause if commit else event.name.value.replace("_", " "),
        level=level,
        partitions=frozenset({partition} if partition else ()),
        event=event,
    )


def _operation_entries(operation: Operation, order: int, marked: bool) -> Iterator[TimelineEntry]:
    spots: list[Partition] = [(spot.topic, spot.partition) for spot in operation.positions]
    if operation.topic is not None or not spots:
        spots.append((operation.topic, -1 if operation.partition is None else operation.partition))
    who, number = f"client {operation.process}", f"op {operation.op_id}: "
    request, answer = request_in_words(operation), answer_in_words(operation)
    level = Level.ROUTINE if operation.outcome is Outcome.OK else Level.TROUBLED_CLIENT
    level = Level.CONVICTS if marked else level
    kind = f"{operation.function.value.replace('_', ' ')} {outcome_in_words(operation)}"

    def entry(time: int, what: str) -> TimelineEntry:
        return TimelineEntry(
            time=time,
            order=order,
            who=who,
            what=number + what,
            kind=kind,
            level=level,
            partitions=frozenset(spots),
        )

    if operation.completion_time is None:
        yield entry(operation.invoke_time, f"{request} ... {answer}")
    elif marked:
        yield entry(operation.invoke_time, f"invokes {request}")
        yield entry(operation.completion_time, f"{request} -> {answer}")
    else:
        took = duration(operation.completion_time - operation.invoke_time)
        yield entry(operation.completion_time, f"{request} -> {answer} after {took}")


def entries_of(
    trace: Trace,
    *,
    operations: frozenset[int] = frozenset(),
    events: frozenset[int] = frozenset(),
    focus: frozenset[Partition] = frozenset(),
) -> list[TimelineEntry]:
    """All entries in order of time. operations, events: op ids and event positions that convict.

    A run that never got anywhere shows what brokers refused of their controllers, whatever else is folded:
    often that is why.

    focus: partitions to show; empty for all. What concerns no partition, and what convicts, is always shown.
    """
    stuck = any(event.name is Name.LIVENESS_FAILED for event in trace.events)
    entries = [
        _event_entry(position, event, marked=position in events, stuck=stuck)
        for position, event in enumerate(trace.events)
        if event.name is not Name.RECORD_TEXTS
    ]
    for order, operation in enumerate(trace.operations, len(entries)):
        entries.extend(_operation_entries(operation, order, operation.op_id in operations))
    if focus:
        entries = [e for e in entries if e.marked or not e.partitions or e.partitions & focus]
    return sorted(entries, key=lambda entry: (entry.time, entry.order))
