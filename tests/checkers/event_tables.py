"""What the tests of the event tables share: traces as a row group, both answers, and traces bent in one
place."""

from collections.abc import Iterable, Iterator
from random import Random

from attrs import evolve

from fencepost.checkers import conformance, invariants
from fencepost.checkers.events import EventTables, judge_conformance, judge_invariants
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Record
from fencepost.traces.schema import STRINGS
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace
from tests.checkers import lab

JUDGES = {
    "invariants": (invariants.judge, judge_invariants),
    "conformance": (conformance.judge, judge_conformance),
}
NUMBERS = (
    *("node", "leader", "leader_epoch", "controller_epoch", "broker_epoch", "zk_version"),
    *("offset", "end_offset", "high_watermark", "log_start_offset", "partition"),
)
CAUSES = (
    *(
        "",
        "leader",
        "follower",
        "leader_epoch",
        "high_watermark",
        "full",
        "expand",
        "shrink",
        "requested",
        "done",
    ),
    *(
        "replica_deleted",
        "failed_over",
        "reassignment_refused",
        "controlled_shutdown",
        "power_loss",
        "crash",
        "heal",
    ),
)


def row_group(traces: Iterable[Trace], *, coded: bool = False) -> tuple[EventTables, list[Trace]]:
    """The traces as one row group, numbered from 0. coded: strings of events are dictionaries, as mining
    reads them."""
    numbered = [evolve(trace, trace_id=number) for number, trace in enumerate(traces)]
    headers = [evolve(trace, operations=(), events=()) for trace in numbered]
    tables = tables_of(map(rows_of, numbered))
    for name in STRINGS["events"] if coded else ():
        index = tables.events.schema.get_field_index(name)
        words = tables.events.column(name).dictionary_encode()
        tables = evolve(tables, events=tables.events.set_column(index, name, words))
    return EventTables(tables=tables, headers=headers), numbered


def answers(check: str, traces: Iterable[Trace]) -> Iterator[tuple[Trace, Verdict, Verdict]]:
    """(trace, what the plain code says, what the columns say)."""
    of, numbered = row_group(traces)
    plain, by_columns = JUDGES[check]
    found = by_columns(of)
    for trace in numbered:
        yield trace, plain(trace), found.get(trace.trace_id) or Verdict(decision=Decision.OK, check=check)


def bounded(trace: Trace) -> Trace:
    """The trace without what HW-BOUNDS convicts random events of, so that other rules are asked."""
    silent = (Name.BECAME_LEADER, Name.BECAME_FOLLOWER)
    events = (
        evolve(event, high_watermark=0)
        if event.name in silent
        else evolve(event, high_watermark=max(0, min(event.high_watermark, event.offset)))
        if event.name is Name.LOG_RECOVERED
        else event
        for event in trace.events
    )
    return evolve(trace, events=tuple(events))


def _changed(random: Random, event: Event) -> Event:
    """The event with one column told in another way."""
    column = random.choice((*NUMBERS, *NUMBERS, "isr", "replicas", "values", "cause", "name", "topic"))
    value = getattr(event, column)
    if column in NUMBERS:
        return evolve(event, **{column: random.choice((value - 1, value + 1, value + 1, 0, 3, -1, 300))})
    if column in ("isr", "replicas"):
        more = tuple(sorted({*value, random.randrange(5)}))
        return evolve(event, **{column: random.choice((value[1:], value[::-1], more, (*value, 1)))})
    if column == "values":
        return evolve(
            event, values=random.choice((value[1:], value[:-1], (*value, 7), tuple(v + 1 for v in value)))
        )
    if column == "cause":
        return evolve(event, cause=random.choice(CAUSES))
    if column == "topic":
        return evolve(event, topic="u") if event.topic else event
    return evolve(event, name=random.choice(tuple(Name)), topic=event.topic or "t")


def bent(random: Random, trace: Trace) -> Trace:
    """The trace with one or two events changed, lost, doubled or swapped."""
    events = list(trace.events)
    for _ in range(random.choice((1, 1, 2))):
        at, how = random.randrange(len(events)), random.random()
        if how < 0.7:
            events[at] = _changed(random, events[at])
        elif how < 0.8 and len(events) > 1:
            del events[at]
        elif how < 0.9:
            events.insert(random.randrange(len(events)), events[at])
        else:
            other = min(at + random.choice((1, 1, 5)), len(events) - 1)
            events[at], events[other] = events[other], events[at]
    return evolve(trace, events=tuple(events))


def compacted(random: Random, trace: Trace) -> Trace:
    """The trace with the keys of its records, of topics that are compacted, and some runs of records gone
    from the final dumps."""
    events, operations = [], []
    for event in trace.events:
        if event.name is Name.APPENDED:
            operations += [_keyed(random, event, value) for value in event.values]
        gone = event.name is Name.REPLICA_LOG and random.random() < 0.3
        events.append(evolve(event, values=()) if gone else event)
    random.shuffle(operations)
    numbered = tuple(evolve(operation, op_id=number) for number, operation in enumerate(operations))
    claims = evolve(trace.claims, compacted=random.choice((("t",), ("t", "u"))))
    return evolve(trace, events=tuple(events), operations=numbered, claims=claims)


def _keyed(random: Random, event: Event, value: int) -> Operation:
    assert event.topic is not None
    record = Record(topic=event.topic, partition=event.partition, offset=-1, value=value)
    return lab.operation(
        0,
        random.choice((Function.APPEND, Function.APPEND, Function.APPEND, Function.POLL)),
        0,
        1,
        topic=event.topic,
        partition=event.partition,
        key=random.choice(("a", "a", "b", "c", "", None)),
        argument=random.choice((None, None, None, "tombstone")),
        records=(record,),
    )
