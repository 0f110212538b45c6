"""PLACED: a group, and a transactional id, is where Kafka's hash of its name says.

Owns misplaced_group. Every client and every broker computes the same partition of __consumer_offsets or of
__transaction_state from a name: Utils.abs(name.hashCode()) % partitions. Brokers that agree on another
partition serve their own cluster well, and lose what another version stored. The number of partitions is that
of the assignments before the first group; the rule ends if partitions are added.
"""

from collections.abc import Callable, Mapping

import msgspec
from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.record.facts import place_of
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS


class Named(msgspec.Struct, frozen=True):
    """The name in the detail of an event."""

    group: str = ""
    transactional_id: str = ""


@define
class Placement:
    """The state of the rule."""

    # The findings so far.
    findings: Findings
    # The partitions of the internal topics, by topic.
    partitions: dict[str | None, set[int]] = field(factory=dict)
    # The number of partitions when the first name was seen, by topic.
    counts: dict[str | None, int] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Assignments of internal topics, and names that are served."""
        return {
            Name.ASSIGNMENT: self._assignment,
            Name.GROUP_PHASE: self._served,
            Name.TRANSACTION_PHASE: self._served,
        }

    def _assignment(self, position: int, event: Event) -> None:
        if event.topic in INTERNAL_TOPICS:
            self.partitions.setdefault(event.topic, set()).add(event.partition)

    def _served(self, position: int, event: Event) -> None:
        partitions = len(self.partitions.get(event.topic, ()))
        if not partitions or self.counts.setdefault(event.topic, partitions) != partitions:
            return
        try:
            named = from_json(event.detail, Named)
        except msgspec.DecodeError:
            return  # a trace may come from any tool
        name = named.group or named.transactional_id
        place = place_of(name, partitions)
        if name and place != event.partition:
            self.findings.add(
                "misplaced_group",
                expected=f"{name} in partition {place} of {partitions} of {event.topic}",
                seen=f"broker {event.node} serves it in partition {event.partition}",
                topic=event.topic,
                partition=event.partition,
                events=(position,),
            )
