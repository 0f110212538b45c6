"""The timeline's words for consumer groups: what members asked and were told, and what coordinators tell."""

import msgspec

from fencepost.report.event_words import answer_in_words, event_in_words, request_in_words
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Position, Record
from tests.checkers import lab


def row(function: Function, **more: object) -> Operation:
    return lab.operation(1, function, 0, 1, group="g", **more)


def test_rows_of_members_are_told() -> None:
    """Rule: a reader sees which partitions, which offsets and which generation, never a question mark."""
    spots = (Position(topic="t", partition=0, offset=7), Position(topic="t", partition=1, offset=-1))
    joined = row(Function.JOIN, generation=3, positions=spots)
    assert (request_in_words(joined), answer_in_words(joined)) == ("join group g", "generation 3: t-0 7, t-1")
    commit = row(Function.COMMIT, generation=3, positions=spots[:1], argument="sync")
    assert (request_in_words(commit), answer_in_words(commit)) == (
        "commit (sync) t-0 7, group g, generation 3",
        "ok",
    )
    fetched = row(Function.FETCH_COMMITTED, positions=spots)
    assert answer_in_words(fetched) == "t-0 7, t-1 nothing"
    records = tuple(Record(topic="t", partition=0, offset=offset, value=offset) for offset in (4, 5))
    assert answer_in_words(row(Function.POLL, generation=3, records=records)) == "offsets 4 to 5 of t-0"


def test_events_of_coordinators_are_told_and_damaged_ones_too() -> None:
    """Rule: every event of a group has its sentence, whatever its detail holds."""
    detail = {"group": "g", "generation": 2, "members": ["a"], "why": "all have joined"}
    event = Event(time=0, name=Name.GROUP_PHASE, cause="Stable", detail=msgspec.json.encode(detail).decode())
    assert event_in_words(event) == "group g is Stable, generation 2, 1 member: all have joined"
    for name in (
        Name.GROUP_PHASE,
        Name.GROUP_OFFSET_EXPIRED,
        Name.GROUPS_LOADED,
        Name.GROUPS_UNLOADED,
        Name.GROUP_REMOVED,
    ):
        assert event_in_words(Event(time=0, name=name, detail="\x1b[31m{"))
        assert "\x1b" not in event_in_words(Event(time=0, name=name, detail="\x1b[31m{"))
