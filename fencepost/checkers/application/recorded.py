"""A run of an application as a trace, and back: for mining, for folders of runs, for drawing.

Owns what the detail of the events APPLICATION says. Must not know lines or files. Times are positions: no
clock of an application is compared with another one. The first events are about the whole run: its claims,
its lives, and what was never answered.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from attrs import evolve, frozen

from fencepost.checkers.application.application_events import BY_NAME, NOWHERE, Events, Kind, Life
from fencepost.checkers.application.application_judge import CHECK, Claims, Ordered, Promise, judge_events
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace

MOST_EVENTS = 2_000_000
"""Of a run as a trace, which is in memory as Python values; `fencepost check` judges longer ones."""
RUN, LIFE, UNANSWERED = "run", "life", "unanswered"
"""Causes of the first events. RUN: detail {promise, ordered, allowed, under_way}; LIFE: {process, number,
file, torn}; UNANSWERED: {life, topic, line}."""
HEADERS = frozenset({RUN, LIFE, UNANSWERED})
"""They are about the whole run, and no moment of it."""


class Written(msgspec.Struct, omit_defaults=True):
    """The detail of an event; its kind is its cause, its record its topic, partition and offset."""

    life: int
    line: int
    # Only in events that the judge's columns name a group for.
    group: str = ""
    key: int = -1
    value: int = -1
    sink: bool = True


class _Run(msgspec.Struct):
    promise: Promise
    ordered: Ordered
    allowed: tuple[str, ...] = ()
    under_way: int = 0


class _Life(msgspec.Struct):
    process: str
    number: int
    file: str
    torn: bool = False


class _Unanswered(msgspec.Struct):
    life: int
    topic: str
    line: int


def trace_of_events(events: Events, claims: Claims, trace_id: int = 0) -> Trace:
    """A run as a trace.

    Args:
        events: of the run.
        claims: what its application promises.
        trace_id: of the trace.

    Raises:
        TraceError: it has more than MOST_EVENTS.
    """
    if len(events) > MOST_EVENTS:
        raise TraceError(
            expected=f"at most {MOST_EVENTS:,} events in a trace", seen=f"{len(events):,}", where="the run",
            hint="`fencepost check` judges longer ones",
        )  # fmt: skip
    rows = tuple(_rows(events, claims))
    return Trace(
        trace_id=trace_id,
        plan="",
        seed=0,
        target="application",
        software_version="",
        profile="events",
        events=rows,
    )


def _rows(events: Events, claims: Claims) -> Iterator[Event]:
    for time, (cause, detail, (topic, partition), offset) in enumerate(_details(events, claims)):
        yield Event(
            time=time,
            name=Name.APPLICATION,
            node=-1,
            cause=cause,
            topic=topic,
            partition=partition,
            offset=offset,
            detail=msgspec.json.encode(detail).decode(),
        )


def _details(events: Events, claims: Claims) -> Iterator[tuple[str, Any, tuple[str | None, int], int]]:
    """Cause, detail, place and offset of each event."""
    nowhere: tuple[str | None, int] = (None, -1)
    allowed = tuple(sorted(claims.allowed))
    yield RUN, _Run(claims.promise, claims.ordered, allowed, events.under_way), nowhere, -1
    for number, life in enumerate(events.lives):
        yield LIFE, _Life(life.process, life.number, life.file, number in events.torn), nowhere, -1
    for number, topic, line in events.unanswered:
        yield UNANSWERED, _Unanswered(number, topic, line), nowhere, -1
    columns = (getattr(events, name).tolist() for name in _NUMBERS)
    for kind, number, group, place, offset, key, value, line, sink in zip(*columns, strict=True):
        detail = Written(number, line, events.groups[group], key, value, bool(sink))
        where = events.places[place] if place != NOWHERE else nowhere
        yield Kind(kind).name.lower(), detail, where, offset


_NUMBERS = ("kind", "life", "group", "place", "offset", "key", "value", "line", "sink")


@frozen(kw_only=True)
class _Read:
    """The events APPLICATION of a trace, decoded."""

    run: _Run
    lives: tuple[Life, ...]
    torn: frozenset[int]
    unanswered: tuple[tuple[int, str, int], ...]
    # By position in the trace.
    lines: dict[int, Written]


def _read(trace: Trace) -> _Read:
    run = _Run(Promise.AT_LEAST_ONCE, Ordered.KEY)
    lives: list[Life] = []
    torn: set[int] = set()
    unanswered: list[tuple[int, str, int]] = []
    lines: dict[int, Written] = {}
    try:
        for position, event in enumerate(trace.events):
            if event.name is not Name.APPLICATION:
                continue
            if event.cause == RUN:
                run = msgspec.json.decode(event.detail, type=_Run)
            elif event.cause == LIFE:
                life = msgspec.json.decode(event.detail, type=_Life)
                if life.torn:
                    torn.add(len(lives))
                lives.append(Life(life.process, life.number, life.file))
            elif event.cause == UNANSWERED:
                one = msgspec.json.decode(event.detail, type=_Unanswered)
                unanswered.append((one.life, one.topic, one.line))
            else:
                lines[position] = msgspec.json.decode(event.detail, type=Written)
    except msgspec.DecodeError as error:
        raise _refused(trace, "a detail of an event of an application", str(error)) from None
    if any(not 0 <= line.life < len(lives) for line in lines.values()):
        raise _refused(trace, "the life of each event", "none")
    return _Read(run=run, lives=tuple(lives), torn=frozenset(torn), unanswered=tuple(unanswered), lines=lines)


def _refused(trace: Trace, expected: str, seen: str) -> TraceError:
    return TraceError(expected=expected, seen=seen, where=f"trace {trace.trace_id}")


def written(trace: Trace) -> tuple[tuple[Life, ...], dict[int, Written]]:
    """The lives of an application's processes, and their lines by position in the trace.

    Args:
        trace: any.

    Raises:
        TraceError: the details of its events APPLICATION are none.
    """
    found = _read(trace)
    return found.lives, found.lines


def events_of_trace(trace: Trace) -> tuple[Events, Claims]:
    """The run of a trace, and what its application promises.

    Args:
        trace: with events APPLICATION.

    Raises:
        TraceError: their details are none.
    """
    return _run_of(trace, _read(trace))


def _run_of(trace: Trace, found: _Read) -> tuple[Events, Claims]:
    groups: dict[str, int] = {"": 0}
    places: dict[tuple[str, int], int] = {}
    rows = [_row(trace, *line, groups, places) for line in found.lines.items()]
    events = Events(
        **_columns(rows),
        lives=found.lives,
        groups=tuple(groups),
        places=tuple(places),
        torn=found.torn,
        unanswered=found.unanswered,
        under_way=found.run.under_way,
    )
    run = found.run
    return events, Claims(promise=run.promise, ordered=run.ordered, allowed=frozenset(run.allowed))


def _row(
    trace: Trace, position: int, line: Written, groups: dict[str, int], places: dict[tuple[str, int], int]
) -> tuple[int, ...]:
    event = trace.events[position]
    if event.cause not in BY_NAME:
        raise _refused(trace, "a kind of an event of an application", event.cause)
    place = NOWHERE
    if event.topic is not None and event.partition >= 0:
        place = places.setdefault((event.topic, event.partition), len(places))
    group = groups.setdefault(line.group, len(groups))
    return (
        *(BY_NAME[event.cause], line.life, group, place, event.offset),
        *(line.key, line.value, line.line, line.sink),
    )


def _columns(rows: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    table = np.array(rows, dtype=np.int64).reshape(len(rows), len(_NUMBERS))
    return {name: np.ascontiguousarray(table[:, place]) for place, name in enumerate(_NUMBERS)}


def judge(trace: Trace) -> Verdict:
    """The verdict of the check on one trace: Ok for one without an application's events."""
    if not any(event.name is Name.APPLICATION for event in trace.events):
        return Verdict(decision=Decision.OK, check=CHECK)
    found = _read(trace)
    verdict = judge_events(*_run_of(trace, found)).verdict
    positions = list(found.lines)
    return evolve(
        verdict,
        findings=tuple(
            evolve(finding, events=tuple(positions[row] for row in finding.events))
            for finding in verdict.findings
        ),
    )
