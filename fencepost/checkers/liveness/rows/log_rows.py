"""Rows about what a leader has: what it appends is committed while enough replicas are in sync, and where its
log begins theirs do, too.

Owns these rows. They read what leaders append, which high watermarks they have, and where logs begin.
"""

from collections import deque
from collections.abc import Iterator

from attrs import define, field

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.record import bounds
from fencepost.record.facts import Facts, Key
from fencepost.record.timeline import FOR_EVER, Kind, Subject, Timeline
from fencepost.traces.events import Name

FREQUENT = (Name.APPENDED, Name.HIGH_WATERMARK)
SELDOM = (
    *(Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.TRUNCATED),
    *(Name.PARTITION_STATE, Name.BROKER_STARTED, Name.TOPIC_DELETION),
)
STARTS = (
    *(Name.LOG_START, Name.LOG_RECOVERED, Name.TRUNCATED, Name.PARTITION_STATE, Name.BROKER_STARTED),
    Name.TOPIC_DELETION,
)


@define
class Reign:
    """A leader's appends that are not committed: end offset, time and position of each, in order."""

    leader: int
    epoch: int
    open: deque[tuple[int, int, int]] = field(factory=deque)


def _commits(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """An append is committed, unless its leader is replaced, ends or loses it."""
    reigns: dict[Key, Reign] = {}
    bound = -1 if facts.counting else bounds.committed(facts.settings)
    for position, event in facts.of(*FREQUENT, *SELDOM):
        name, key = event.name, (event.topic or "", event.partition)
        reign = reigns.get(key)
        if name in FREQUENT:
            if reign is None or event.node != reign.leader:
                continue
            if name is Name.APPENDED:
                end = event.end_offset if event.end_offset >= 0 else event.offset + len(event.values)
                reign.open.append((end, event.time, position))
            elif reign.open and reign.open[0][0] <= event.high_watermark:
                if event.time - reign.open[0][1] > bound:
                    yield _case(facts, key, reign, event.time)  # the first has waited longest
                while reign.open and reign.open[0][0] <= event.high_watermark:
                    reign.open.popleft()
        elif name in (Name.BROKER_STARTED, Name.TOPIC_DELETION):
            for of in [of for of, one in reigns.items() if event.node == one.leader or event.topic == of[0]]:
                yield from _closed(facts, of, reigns.pop(of), event.time)
        elif name is Name.BECAME_LEADER:
            if reign is not None:
                yield from _closed(facts, key, reign, event.time)
            reigns[key] = Reign(event.node, event.leader_epoch)
        elif reign is not None and name is Name.PARTITION_STATE:
            if event.leader_epoch > reign.epoch:
                yield from _closed(facts, key, reigns.pop(key), event.time)
        elif reign is not None and event.node == reign.leader:
            yield from _closed(facts, key, reign, event.time)
    for key, reign in reigns.items():
        yield from _closed(facts, key, reign, FOR_EVER)


def _closed(facts: Facts, key: Key, reign: Reign, until: int) -> Iterator[Case]:
    """The reign is over: the first of what is open has waited longest."""
    if reign.open:
        yield _case(facts, key, reign, until)
    reign.open.clear()


def _case(facts: Facts, key: Key, reign: Reign, until: int) -> Case:
    end, appended, position = reign.open[0]
    return Case(
        subject=(Subject.PARTITION, key),
        since=facts.writable(key, appended, until),
        until=until,
        expected=f"leader {reign.leader} to commit up to {end}",
        seen="it did not" if until == FOR_EVER else "it took longer",
        topic=key[0],
        partition=key[1],
        offset=end,
        events=(position,),
    )


def _starts(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A replica in sync learns where its leader's log begins with its next fetches (KIP-107). It owes nothing
    any more once it has left the ISR, has another leader or was started again."""
    starts: dict[tuple[Key, int], int] = {}
    states: dict[Key, tuple[int, tuple[int, ...]]] = {}
    # Of each replica: the start that it owes, since when, and by which event.
    owed: dict[tuple[Key, int], tuple[int, int, int]] = {}
    for position, event in facts.of(*STARTS) if facts.events.get(Name.LOG_START) else ():
        key, node = (event.topic or "", event.partition), event.node
        if event.name in (Name.BROKER_STARTED, Name.TOPIC_DELETION):
            gone = {one for one in owed if one[1] == node or one[0][0] == event.topic}
        elif event.name is Name.PARTITION_STATE:
            before, _ = states.get(key, (-1, ()))
            states[key] = event.leader, event.isr
            stay = event.isr if event.leader == before else ()
            gone = {one for one in owed if one[0] == key and one[1] not in stay}
        else:
            cut = event.name is Name.TRUNCATED
            if not cut or event.cause == "full":
                starts[key, node] = event.offset if cut else event.log_start_offset
            gone = {(key, node)} & owed.keys()
            if gone and starts[key, node] < owed[key, node][0]:
                gone = set()
            elif gone:
                yield _behind(key, node, owed[key, node], event.time)
        for one in gone:
            del owed[one]
        leader, isr = states.get(key, (-1, ()))
        begin = starts.get((key, leader), 0)
        for each in isr:
            if starts.get((key, each), 0) < begin:
                owed.setdefault((key, each), (begin, event.time, position))
    for (key, node), due in owed.items():
        yield _behind(key, node, due, FOR_EVER)


def _behind(key: Key, node: int, due: tuple[int, int, int], until: int) -> Case:
    return Case(
        subject=(Subject.PARTITION, key),
        since=due[1],
        until=until,
        expected=f"replica {node} to begin at {due[0]}, as its leader does,",
        seen="it did not" if until == FOR_EVER else "it took longer",
        topic=key[0],
        partition=key[1],
        offset=due[0],
        events=(due[2],),
    )


ROWS = (
    Row(
        name="slow_commit",
        form=Form.FOLLOW,
        subject=Subject.PARTITION,
        cases=_commits,
        bound=bounds.committed,
        through=frozenset({Kind.REQUEST, Kind.BACK}),
        where="brokers that say what they append",
    ),
    Row(
        name="late_log_start",
        form=Form.FOLLOW,
        subject=Subject.PARTITION,
        cases=_starts,
        bound=bounds.committed,
        where="brokers that say where their logs begin",
    ),
)
