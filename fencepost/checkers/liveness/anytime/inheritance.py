"""INHERITED: what a topic does not have of its own, it has from its broker.

Owns setting_not_inherited. A topic's override wins over a broker's own dynamic setting, this one over that of
all brokers, and this one over the static value (KIP-226). A broker says what it inherits, and what counts for
each topic; a topic whose settings it says without one that is inherited has fallen back too far. What the
plan gave a topic counts as its own. Reads events of simulated runs.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.record.settings import Settings, Topic
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name
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


@define
class Inheritance:
    """The state of the rule."""

    # The findings so far.
    findings: Findings
    # Of the run.
    settings: Settings
    # What the running process of each broker hands on, and the position of the event that says so.
    inherited: dict[int, tuple[dict[str, str], int]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """What brokers hand on, and what counts for their topics."""
        return {Name.BROKER_STARTED: self._started, Name.TOPIC_CONFIGURED: self._configured}

    def _started(self, position: int, event: Event) -> None:
        self.inherited.pop(event.node, None)

    def _configured(self, position: int, event: Event) -> None:
        if self.settings.real is not None:
            return
        counts = from_json(event.detail, dict[str, str])
        if event.topic is None:
            self.inherited[event.node] = counts, position
            return
        inherited, said = self.inherited.get(event.node, ({}, -1))
        planned = self.settings.topic(event.topic)
        for name, of_broker in DYNAMIC.items():
            own = getattr(planned, FIELDS[name]) != getattr(USUAL, FIELDS[name])
            if of_broker in inherited and name not in counts and not own:
                self.findings.add(
                    "setting_not_inherited",
                    expected=f"broker {event.node} to use {of_broker}={inherited[of_broker]} for "
                    f"{event.topic}, which has no {name} of its own",
                    seen=f"it uses {event.detail}",
                    topic=event.topic,
                    events=(said, position),
                )
