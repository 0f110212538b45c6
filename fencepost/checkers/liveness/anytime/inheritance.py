"""INHERITED: what a topic does not have of its own, it has from its broker.

Owns setting_not_inherited. A topic's override wins over a broker's own dynamic setting, this one over that of
all brokers, and this one over the static value (KIP-226). A broker says what it inherits, and what counts for
each topic; a topic whose settings it says without one that is inherited has fallen back too far. What the
plan gave a topic counts as its own. Reads events of simulated runs.
"""

from fencepost.checkers.invariants.findings import Findings
from fencepost.record.facts import Facts, overrides_of
from fencepost.record.settings import Topic
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.inherited_settings import DYNAMIC

FIELDS = {
    name: {
        "min.cleanable.dirty.ratio": "min_cleanable_dirty_ppm",
        "unclean.leader.election.enable": "unclean_leader_election",
    }.get(name, name.replace(".", "_"))
    for name in DYNAMIC
}
"""Of a plan's topic, by Kafka's names."""
USUAL = Topic()


def judge_inheritance(findings: Findings, facts: Facts) -> None:
    """Look for topics that brokers say without what these hand on to them, in `facts` of a simulated run."""
    if facts.settings.real is not None:
        return
    handed_on: dict[int, tuple[dict[str, str], int]] = {}  # by the running process, and where it says so
    for position, event in facts.of(Name.BROKER_STARTED, Name.TOPIC_CONFIGURED):
        if event.name is Name.BROKER_STARTED:
            handed_on.pop(event.node, None)
            continue
        counts = overrides_of(event)
        if event.topic is None:
            handed_on[event.node] = counts, position
            continue
        inherited, said = handed_on.get(event.node, ({}, -1))
        planned = facts.settings.topic(event.topic)
        for name, of_broker in DYNAMIC.items():
            own = getattr(planned, FIELDS[name]) != getattr(USUAL, FIELDS[name])
            if of_broker in inherited and name not in counts and not own:
                findings.add(
                    "setting_not_inherited",
                    expected=f"broker {event.node} to use {of_broker}={inherited[of_broker]} for "
                    f"{event.topic}, which has no {name} of its own",
                    seen=f"it uses {event.detail}",
                    topic=event.topic,
                    events=(said, position),
                )
