"""What the lines of a run say of records themselves: contents, keys, offsets, sinks, sends.

Owns these rules. Must not know groups, except for which records were processed.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from fencepost.checkers.application.application_events import (
    AT_A_RECORD,
    NO_HASH,
    NOWHERE,
    Events,
    Ints,
    Kind,
)
from fencepost.checkers.application.owner_spans import changes, stretches
from fencepost.checkers.application.processing_rules import Violation
from fencepost.checkers.application.records_known import NONE


def of_records(events: Events, sinks: Mapping[int, Ints], *, once: bool) -> Iterator[Violation]:
    """What is wrong with records, whoever processed them.

    Args:
        events: of the run.
        sinks: what sinks hold of each place, once for each row.
        once: whether a sink may hold a record once only.
    """
    yield from _other_bytes(events)
    yield from _offset_twice(events)
    yield from _keys(events)
    yield from _sinks(events, sinks, once=once)
    yield from _without_result(events)


def _other_bytes(events: Events) -> Iterator[Violation]:
    """Lines that name one record and not one content."""
    kinds = (*AT_A_RECORD, Kind.SINK)
    at_records = np.isin(events.kind, kinds) & (events.offset >= 0) & (events.place != NOWHERE)
    found: dict[int, list[tuple[int, int, int]]] = {}
    for column in (events.value, events.key):
        rows = np.flatnonzero(at_records & (column != NO_HASH))
        rows = rows[np.lexsort((rows, events.offset[rows], events.place[rows]))]
        place, offset, content = events.place[rows], events.offset[rows], column[rows]
        other = np.zeros(len(rows), dtype=bool)
        other[1:] = ~changes(place, offset)[1:] & (content[1:] != content[:-1])
        for at in np.flatnonzero(other).tolist():
            pair = (int(offset[at]), int(rows[at - 1]), int(rows[at]))
            found.setdefault(int(place[at]), []).append(pair)
    for place_number, pairs in sorted(found.items()):
        offsets = np.unique([offset for offset, _, _ in pairs])
        yield Violation(anomaly="other_bytes", place=place_number, offsets=offsets, rows=min(pairs)[1:])


def _offset_twice(events: Events) -> Iterator[Violation]:
    """Two sends that were acknowledged with one offset."""
    rows = np.flatnonzero(
        (events.kind == Kind.ACKNOWLEDGED) & (events.offset >= 0) & (events.place != NOWHERE)
    )
    rows = rows[np.lexsort((rows, events.offset[rows], events.place[rows]))]
    if not len(rows):
        return
    twice = np.flatnonzero(~changes(events.place[rows], events.offset[rows]))
    for begin, end in stretches(events.place[rows[twice]]):
        part = twice[begin:end]
        yield Violation(
            anomaly="offset_acknowledged_twice",
            place=int(events.place[rows[part[0]]]),
            offsets=np.unique(events.offset[rows[part]]),
            rows=(int(rows[part[0] - 1]), int(rows[part[0]])),
        )


def _keys(events: Events) -> Iterator[Violation]:
    """Keys with records in two partitions of a topic."""
    topics: dict[str, int] = {}
    topic_of = np.array([topics.setdefault(topic, len(topics)) for topic, _ in events.places], dtype=np.int64)
    rows = np.flatnonzero(
        np.isin(events.kind, (Kind.ACKNOWLEDGED, Kind.RECEIVED))
        & (events.place != NOWHERE)
        & (events.offset >= 0)
        & (events.key != NO_HASH)
    )
    if not len(rows):
        return
    rows = rows[np.lexsort((rows, events.place[rows], events.key[rows], topic_of[events.place[rows]]))]
    topic, key, place = topic_of[events.place[rows]], events.key[rows], events.place[rows]
    moves = np.flatnonzero(~changes(topic, key) & changes(place))
    names = list(topics)
    for begin, end in stretches(topic[moves]):
        first = moves[begin]
        yield Violation(
            anomaly="key_in_two_partitions",
            rows=(int(rows[first - 1]), int(rows[first])),
            names=(names[topic[first]], str(end - begin)),
        )


def _sinks(events: Events, sinks: Mapping[int, Ints], *, once: bool) -> Iterator[Violation]:
    """Processed records that a sink of their topic does not hold, and records that it holds twice."""
    held = {events.places[place][0] for place in sinks}
    done = np.flatnonzero((events.kind == Kind.PROCESSED) & (events.place != NOWHERE))
    done = done[np.lexsort((done, events.offset[done], events.place[done]))]
    for begin, end in stretches(events.place[done]):
        place = int(events.place[done[begin]])
        if events.places[place][0] in held:
            yield from _missing(events, done[begin:end], sinks.get(place, NONE), place)
    for place, offsets in sinks.items():
        twice = np.unique(offsets[1:][offsets[1:] == offsets[:-1]])
        if once and len(twice):
            yield Violation(anomaly="twice_in_sink", place=place, offsets=twice)


def _missing(events: Events, done: Ints, sink: Ints, place: int) -> Iterator[Violation]:
    """Records of which every line `processed` says that a row follows, and none is there."""
    offsets = events.offset[done]
    without = offsets[events.sink[done] == 0]
    missing = np.setdiff1d(np.setdiff1d(offsets, sink), without)
    if len(missing):
        row = done[np.searchsorted(offsets, missing[0])]
        yield Violation(anomaly="missing_in_sink", place=place, offsets=missing, rows=(int(row),))


def _without_result(events: Events) -> Iterator[Violation]:
    """Sends of which a process that ended in order reported no result."""
    by_topic: dict[tuple[int, str], list[int]] = {}
    for life, topic, line in events.unanswered:
        if life not in events.torn:
            by_topic.setdefault((life, topic), []).append(line)
    for (life, topic), lines in sorted(by_topic.items()):
        who = events.lives[life]
        yield Violation(
            anomaly="send_without_result", names=(topic, str(len(lines)), str(who), f"{who.file}:{lines[0]}")
        )
