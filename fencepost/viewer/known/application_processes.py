"""The processes of an application on a page: a lane each, and what they knew of partitions and groups.

Owns which lane a line of an application is on, and when it is drawn. Must not know rules or drawing.

No two clocks are compared. A line is drawn after the line before it in its process, and after the one that it
follows from: what was handed out was acknowledged before, and an owner that begins where another one has
committed came after that commit. What is left open is drawn in turn, a line of each process.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Self

import attrs
from attrs import field, frozen

from fencepost.checkers.application.application_events import Life
from fencepost.checkers.application.recorded import Written, written
from fencepost.report.event_words import partition_name
from fencepost.report.spoken import LONGEST_CLIENT, cut, shown
from fencepost.traces.events import Event
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.trace import Trace
from fencepost.viewer.known.client_knowledge import ACKNOWLEDGED, PROCESSED, READ, ClientLogs, Groups, Known

RECEIVED, COMMITTED, ASSIGNED, TAKEN = "received", "committed", "assigned", ("revoked", "lost")
"""Causes of events, next to those that are called as what is known by them."""
SHOWS = {ACKNOWLEDGED: ACKNOWLEDGED, RECEIVED: READ, PROCESSED: PROCESSED}
"""How a record is known, by the cause of the event that names it."""


@frozen
class Processes:
    """The lives of an application's processes in one trace; none in most traces."""

    trace: Trace = field(repr=False)
    lives: tuple[Life, ...]
    # By the event's position in the trace; without those about the whole run.
    lines: dict[int, Written]

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """Those of a trace."""
        lives, lines = written(trace)
        return cls(trace, lives, lines)

    def lanes(self) -> list[dict[str, str]]:
        """A lane for each life."""
        return [
            {"id": f"a{number}", "kind": "process", "label": self._label(number)}
            for number in range(len(self.lives))
        ]

    def _label(self, number: int) -> str:
        return cut(shown(str(self.lives[number])), LONGEST_CLIENT)

    def lane(self, position: int) -> str:
        """The id of the lane of an event; "" for one that no process wrote. position: in the trace."""
        line = self.lines.get(position)
        return "" if line is None else f"a{line.life}"

    def apply(self, step: int, position: int, event: Event, logs: ClientLogs, groups: Groups) -> None:
        """What is known from an event on. step: of the event; position: in the trace; logs, groups: that
        learn it."""
        line = self.lines.get(position)
        if line is None or event.topic is None or event.partition < 0:
            return
        if event.cause in SHOWS and event.offset >= 0:
            # the record's id on the wire, where it was seen there: a hash next to it would be another value
            wire = (
                logs.first_at((event.topic, event.partition), event.offset) if self.trace.operations else None
            )
            value = wire if wire is not None else line.value if line.value >= 0 else event.offset
            known = Known(offset=event.offset, value=value, step=step, how=SHOWS[event.cause])
            logs.learned((event.topic, event.partition), known)
        name, who = partition_name(event.topic, event.partition), self._label(line.life)
        if event.cause in (ASSIGNED, *TAKEN):
            groups.given(step, who, line.group, name, taken=event.cause in TAKEN)
        elif event.cause == COMMITTED:
            groups.committed(step, line.group, name, event.offset)
        elif event.cause == RECEIVED:
            groups.stands(step, who, line.group, name, event.offset + 1)

    def in_turn(self) -> Trace:
        """The trace, with times of its lines by which they can be drawn; every event keeps its position.
        Next to operations of clients, a line is not before the answer that it speaks of."""
        if not self.lines:
            return self.trace
        needs, answered = self._needs(), _answered(self.trace)
        times: dict[int, int] = {}
        last: dict[int, int] = {}
        for turn, position in enumerate(self._order(needs)):
            event, line = self.trace.events[position], self.lines[position]
            earliest = (
                turn if not answered else answered.get(_fact(event.cause, event, line), 0),
                last.get(line.life, 0),
                *(times[need] + 1 for need in needs[position] if need in times),
            )
            times[position] = last[line.life] = max(earliest)
        events = tuple(
            attrs.evolve(event, time=times.get(position, event.time))
            for position, event in enumerate(self.trace.events)
        )
        return attrs.evolve(self.trace, events=events)

    def _order(self, needs: Mapping[int, set[int]]) -> Iterator[int]:
        """Positions of lines, as they are drawn: of each life one in turn, unless it waits."""
        rest: dict[int, deque[int]] = {}
        for position, line in self.lines.items():
            rest.setdefault(line.life, deque()).append(position)
        ready, waiting = deque(rest), dict[int, None]()
        wakes: dict[int, list[int]] = {}
        done = set[int]()
        while ready or waiting:
            # lines that contradict each other wait for one another for ever: the first of them goes on
            stuck = not ready
            life = next(iter(waiting)) if stuck else ready.popleft()
            waiting.pop(life, None)
            position = rest[life][0]
            missing = min(needs[position] - done, default=-1)
            if missing >= 0 and not stuck:
                wakes.setdefault(missing, []).append(life)
                waiting[life] = None
                continue
            done.add(rest[life].popleft())
            yield position
            if rest[life]:
                ready.append(life)
            for other in wakes.pop(position, ()):
                if other in waiting:
                    del waiting[other]
                    ready.append(other)

    def _needs(self) -> dict[int, set[int]]:
        """The lines of other lives that a line follows from; all as positions."""
        facts: dict[Hashable, int] = {}
        last_of: dict[tuple[str, int], int] = {}
        for position, line in self.lines.items():
            event, life = self.trace.events[position], self.lives[line.life]
            last_of[life.process, life.number] = position
            if event.cause in (ACKNOWLEDGED, COMMITTED):
                facts.setdefault(_fact(event.cause, event, line), position)
        found: dict[int, set[int]] = {}
        met: set[Hashable] = set()
        for position, line in self.lines.items():
            event, life = self.trace.events[position], self.lives[line.life]
            asked = []
            if line.life not in met:
                asked.append(last_of.get((life.process, life.number - 1)))
            if event.cause in (ASSIGNED, RECEIVED) and (line.life, event.topic, event.partition) not in met:
                asked.append(facts.get(_fact(COMMITTED, event, line)))
                met.add((line.life, event.topic, event.partition))
            if event.cause == RECEIVED:
                asked.append(facts.get(_fact(ACKNOWLEDGED, event, line)))
            met.add(line.life)
            found[position] = {one for one in asked if one is not None and self.lines[one].life != line.life}
        return found


def _fact(cause: str, event: Event, line: Written) -> Hashable:
    """What an event says of an offset; of a commit, for its group."""
    group = line.group if cause == COMMITTED else ""
    return cause, group, event.topic, event.partition, event.offset


def _answered(trace: Trace) -> dict[Hashable, int]:
    """When a client was first answered what a line may speak of; in the trace's time."""
    found: dict[Hashable, int] = {}
    causes = {Function.APPEND: ACKNOWLEDGED, Function.POLL: RECEIVED}
    for one in trace.operations:
        if one.completion_time is None or one.outcome is not Outcome.OK:
            continue
        if one.function in causes:
            for record in one.records:
                place = record.topic, record.partition, record.offset
                found.setdefault((causes[one.function], "", *place), one.completion_time)
        elif one.function is Function.COMMIT and one.group is not None:
            spots = [(spot.topic, spot.partition, spot.offset) for spot in one.positions]
            for spot in [*spots, (one.topic, one.partition, one.offset)]:
                found.setdefault((COMMITTED, one.group, *spot), one.completion_time)
    return found
