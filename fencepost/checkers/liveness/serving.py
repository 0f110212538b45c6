"""When a partition served its clients: what came of them then, nothing of the brokers explains.

Owns these stretches. Must not know any rule. They need what the run did and what was committed as state,
never what a client or a broker believes.
"""

from collections.abc import Iterator

from attrs import frozen

from fencepost.model.lives import events_with_lives
from fencepost.record.facts import Facts, Key, State, facts_of, overrides_of
from fencepost.record.settings import MIN_IN_SYNC, settings_of
from fencepost.record.timeline import Disturbance, Kind, Subject, Timeline, gaps, timeline_of, touches
from fencepost.traces.events import Name
from fencepost.traces.trace import Trace, plain


@frozen(kw_only=True)
class Serving:
    """A stretch in which one leader serves a partition: clients reach it, the ISR is large enough, and every
    broker of it is calm."""

    leader: int
    # Since when it leads and is well, whatever became of other brokers, nanoseconds of the trace.
    since: int
    # Of the stretch, nanoseconds of the trace.
    begin: int
    end: int


def serving(trace: Trace) -> dict[Key, tuple[Serving, ...]]:
    """The stretches of each partition, by topic and number; nothing of a trace without settings.

    Args:
        trace: of any system.
    """
    settings = settings_of(trace.plan, trace.events)
    if settings is None:
        return {}
    facts = facts_of(enumerate(events_with_lives(trace.events)), trace.operations, settings)
    timeline = timeline_of(facts)
    found: dict[Key, tuple[Serving, ...]] = {}
    for topic, number in facts.states:
        stretches = tuple(_stretches(facts, timeline, (topic, number)))
        found[plain(topic), number] = found.get((plain(topic), number), ()) + stretches
    return found


def _stretches(facts: Facts, timeline: Timeline, key: Key) -> Iterator[Serving]:
    states, since, leader = facts.states[key], 0, -1
    least = max(facts.settings.topic(key[0]).min_insync_replicas, facts.once(_configured).get(key[0], 0))
    for place, state in enumerate(states):
        if state.leader != leader:
            since, leader = state.time, state.leader
        if state.leader < 0 or len(state.isr) < least:
            continue
        end = states[place + 1].time if place + 1 < len(states) else facts.end
        own = [one for one in timeline.disturbances if _is_against(facts, one, state, (state.leader,))]
        against = [one for one in timeline.disturbances if _is_against(facts, one, state, state.isr)]
        for calm in gaps(against, end):
            begin, until = max(calm.begin, state.time), min(calm.end, end)
            well = max((one.end for one in own if one.end <= begin), default=0)
            if begin < until:
                yield Serving(leader=state.leader, since=max(since, well), begin=begin, end=until)


def _configured(facts: Facts) -> dict[str, int]:
    """The largest min.insync.replicas that each topic ever had of its own."""
    most: dict[str, int] = {}
    for _, event in facts.of(Name.TOPIC_CONFIGURED):
        number = overrides_of(event).get(MIN_IN_SYNC, "")
        if event.topic is not None and number.isdecimal():
            most[event.topic] = max(int(number), most.get(event.topic, 0))
    return most


def _is_against(facts: Facts, one: Disturbance, state: State, brokers: tuple[int, ...]) -> bool:
    """Whether a disturbance touches one of these brokers, or keeps clients from the leader."""
    if one.kind is Kind.LINKS:
        return not one.brokers or state.leader in one.brokers
    return any(touches(facts, one, (Subject.BROKER, broker)) for broker in brokers)
