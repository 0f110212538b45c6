"""Rows about topics: what operators asked for, and what goes without being asked.

Owns these rows. What was accepted completes; what nobody asked for does not happen.
"""

from collections.abc import Iterator
from itertools import pairwise

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.record import bounds
from fencepost.record.facts import Facts, Key, at, overrides_of
from fencepost.record.timeline import FOR_EVER, Kind, Subject, Timeline
from fencepost.traces.events import REPLICA_DELETED, Name
from fencepost.traces.kafka_names.inherited_settings import DYNAMIC, INHERITED
from fencepost.traces.trace import plain


def _deletions(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """The deletion of a topic is done: its node is gone, where there is one."""
    for topic, told in facts.deleted.items():
        for place, asked in enumerate(told):
            if asked.value:
                done = next((each.time for each in told[place:] if not each.value), FOR_EVER)
                keys = [key for key in facts.assigned if key[0] == topic]
                holders = {broker for key in keys for broker in facts.replicas(key, asked.time - 1)}
                yield Case(
                    subject=(Subject.TOPIC, topic),
                    since=facts.all_there(holders, asked.time, done),  # a dead replica holds a deletion up
                    until=done,
                    expected=f"the deletion of topic {topic} to be done",
                    seen="it was not",
                    topic=topic,
                    events=(asked.position,),
                )


def _created(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A partition that was assigned gets a state, and with it a leader."""
    for key, told in facts.assigned.items():
        for place, made in enumerate(told):
            if not made.value or (place and told[place - 1].value):
                continue
            if facts.is_going(key[0], made.time):
                continue
            led = (each.time for each in facts.states.get(key, ()) if each.time >= made.time and each.isr)
            gone = (each.time for each in facts.deleted.get(key[0], ()) if each.time >= made.time)
            until = min(next(led, FOR_EVER), next(gone, FOR_EVER))
            for begin, end in facts.candidates(made.value, made.time, until):
                yield Case(
                    subject=(Subject.TOPIC, key[0]),
                    since=begin,
                    until=end,
                    expected=f"partition {key[0]}-{key[1]}, which was created, to get a leader",
                    seen="nobody led it",
                    topic=key[0],
                    partition=key[1],
                    events=(made.position,),
                )


def _configured(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """Settings that one broker applied are applied by each that is registered."""
    applied: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    inherited = {position for position, event in facts.of(Name.TOPIC_CONFIGURED) if event.cause == INHERITED}
    if not any(event.node >= 0 for _, event in facts.of(Name.TOPIC_CONFIGURED)):
        return
    for position, event in facts.of(Name.TOPIC_CONFIGURED):
        place = event.topic or "", event.detail
        applied.setdefault(place, []).append((event.time, event.node, position))
    if len({node for all_ in applied.values() for _, node, _ in all_}) < 2:
        return  # one source says it for all: the metadata log
    for (topic, detail), found in applied.items():
        everywhere = found
        found = [  # one that starts reads them all
            one for one in found if facts.has_joined(one[1], one[0]) and one[2] not in inherited
        ]
        if not found:
            continue
        first, _, position = found[0]
        if topic != plain(topic) or any(told.time <= first for told in facts.deleted.get(topic, ())):
            continue  # its settings go with it, and a broker may be late to apply those of the one before
        later = [
            time
            for (name, other), each in applied.items()
            for time, *_ in each
            if name == topic and other != detail and time >= first
        ]
        gone = [told.time for told in facts.deleted.get(topic, ()) if told.time >= first]
        for broker in facts.brokers():
            if not facts.is_registered(broker, first) or facts.is_stopping(broker, first):
                continue
            mine = [max(time, first) for time, node, _ in everywhere if node == broker]
            changes = (*facts.registered.get(broker, ()), *facts.stopping.get(broker, ()))
            left = [told.time for told in changes if told.time > first]
            yield Case(
                subject=(Subject.BROKER, broker),
                since=first,
                until=min([*mine, *later, *gone, *left, FOR_EVER]),
                expected=f"broker {broker} to apply {detail} to topic {topic or '(all)'}, "
                f"as broker {found[0][1]} did",
                seen="it did not",
                topic=topic,
                events=(position,),
            )


def _outlived(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A broker that applied overrides of a topic says without them once it is deleted: a topic of that name
    that is made later begins without. What an operator asks of the name after that may be the same again."""
    inherited: dict[int, set[str]] = {}
    said: dict[tuple[str, int], tuple[str, int]] = {}
    owed: dict[tuple[str, int], tuple[int, str, int]] = {}
    names = (Name.TOPIC_CONFIGURED, Name.TOPIC_DELETION, Name.BROKER_STARTED, Name.FAULT_BEGAN)
    for position, event in facts.of(*names):
        name, node = plain(event.topic or ""), event.node
        if event.name is Name.BROKER_STARTED:
            said = {one: each for one, each in said.items() if one[1] != node}
            owed = {one: each for one, each in owed.items() if one[1] != node}
        elif event.name is Name.FAULT_BEGAN and event.cause.startswith("alter"):
            owed.clear()
        elif event.name is Name.TOPIC_DELETION and event.cause == "done":
            owed |= {one: (event.time, *each) for one, each in said.items() if one[0] == name}
        elif event.name is Name.TOPIC_CONFIGURED and event.topic is None:
            inherited[node] = {key for key, of in DYNAMIC.items() if of in overrides_of(event)}
        elif event.name is Name.TOPIC_CONFIGURED:
            if (name, node) in owed:
                yield _kept(facts, name, node, owed.pop((name, node)), event.time)
            said.pop((name, node), None)
            if overrides_of(event).keys() - inherited.get(node, set()):
                said[name, node] = event.detail, position
    for (name, node), due in owed.items():
        yield _kept(facts, name, node, due, FOR_EVER)


def _kept(facts: Facts, name: str, node: int, due: tuple[int, str, int], until: int) -> Case:
    changes = (*facts.registered.get(node, ()), *facts.stopping.get(node, ()))
    if not facts.is_registered(node, due[0]) or facts.is_stopping(node, due[0]):
        until = due[0]
    return Case(
        subject=(Subject.BROKER, node),
        since=due[0],
        until=min([until, *(told.time for told in changes if told.time > due[0])]),
        expected=f"broker {node} to drop {due[1]} with topic {name}, which was deleted,",
        seen="it did not",
        topic=name,
        events=(due[2],),
    )


def _vanished(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A partition goes with its topic, whose deletion was asked for."""
    for key, told in facts.assigned.items():
        for gone in told:
            if not gone.value:
                asked = at(facts.deleted.get(key[0], ()), gone.time)
                yield Case(
                    subject=(Subject.TOPIC, key[0]),
                    since=gone.time,
                    fine=asked is not None or not facts.deleted,
                    expected=f"partition {key[0]}-{key[1]} to stay, for nobody asked for its deletion",
                    seen="it was gone",
                    topic=key[0],
                    partition=key[1],
                    events=(gone.position,),
                )


def _dropped(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A broker deletes a replica that is not, or not any more, assigned to it."""
    for position, event in facts.of(Name.MARK):
        if event.cause != REPLICA_DELETED or event.topic is None:
            continue
        key = event.topic, event.partition
        yield Case(
            subject=(Subject.TOPIC, event.topic),
            since=event.time,
            fine=not _keeps(facts, key, event.node, event.time),
            expected=f"broker {event.node} to keep its replica of {key[0]}-{key[1]}, which it is to have",
            seen="it deleted it",
            topic=event.topic,
            partition=event.partition,
            events=(position,),
        )


def _keeps(facts: Facts, key: Key, broker: int, moment: int) -> bool:
    """Whether no request, however old, can have let the broker delete its replica."""
    assigned = facts.assigned.get(key, [])
    if not assigned or facts.deleted.get(key[0]):
        return False
    asked = [*assigned, *facts.moving.get(key, ())]
    return all(broker in told.value for told in asked if told.value and told.time <= moment)


def _all_in_sync(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """An old replica goes only when all of the target were in the ISR, at one moment since it was asked for:
    the write that ends a reassignment comes last, and the ISR may have changed again."""
    for key, told in facts.assigned.items():
        for before, now in pairwise(told):
            if not now.value or not set(before.value) - set(now.value):
                continue
            target = set(now.value)
            seen = _in_sync_since_asked(facts, key, now.position)
            if not seen:
                continue
            yield Case(
                subject=(Subject.PARTITION, key),
                since=now.time,
                fine=any(target <= set(isr) for isr in seen),
                expected=f"all of {list(now.value)} to be in the ISR before an old replica goes",
                seen=f"the ISR was {list(seen[-1])}",
                topic=key[0],
                partition=key[1],
                events=(before.position, now.position),
            )


def _in_sync_since_asked(facts: Facts, key: Key, position: int) -> list[tuple[int, ...]]:
    """The ISRs of a partition from the last request to reassign it to a position: the one that was there
    then, and all later ones."""
    asked = [told.position for told in facts.moving.get(key, ()) if told.value and told.position < position]
    states = [state for state in facts.states.get(key, ()) if state.position < position]
    since = [state.isr for state in states if not asked or state.position > asked[-1]]
    before = [state.isr for state in states if asked and state.position < asked[-1]][-1:]
    return before + since if asked else since[-2:]


ROWS = (
    Row(
        name="late_topic_deletion",
        form=Form.FOLLOW,
        subject=Subject.TOPIC,
        cases=_deletions,
        bound=lambda of: bounds.led(of) + bounds.delivered(of),
        through=frozenset({Kind.REQUEST}),
        where="ZooKeeper's queue of deletions",
    ),
    Row(
        name="late_topic_creation",
        form=Form.FOLLOW,
        subject=Subject.TOPIC,
        cases=_created,
        bound=bounds.led,
        through=frozenset({Kind.REQUEST}),
    ),
    Row(
        name="late_topic_settings",
        form=Form.FOLLOW,
        subject=Subject.BROKER,
        cases=_configured,
        bound=bounds.delivered,
        where="brokers that say which settings they applied",
    ),
    Row(
        name="stale_topic_settings",
        form=Form.FOLLOW,
        subject=Subject.BROKER,
        cases=_outlived,
        bound=bounds.delivered,
        where="brokers that say which settings they applied",
    ),
    Row(name="partition_vanished", form=Form.DONE, subject=Subject.TOPIC, cases=_vanished),
    Row(
        name="replica_deleted_early",
        form=Form.DONE,
        subject=Subject.TOPIC,
        cases=_dropped,
        where="brokers that say which replicas they delete",
    ),
    Row(name="reassigned_out_of_sync", form=Form.DONE, subject=Subject.PARTITION, cases=_all_in_sync),
)
