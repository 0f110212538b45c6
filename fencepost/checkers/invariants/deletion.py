"""DEL-COMPLETE: the deletion of a topic ends with no node and no replica left.

Owns deletion_incomplete and deleted_topic_left_behind. A leftover replica on a broker outside the last
assignment is no finding. It can be an old replica of a reassignment on a broker that was down; in this era of
Kafka that broker is never asked to delete it.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.traces.events import Event, Name

NEVER_ENDED = "every deletion of a topic has ended"
"""The condition that the liveness phase waits for."""


@define
class Deletion:
    """The state of the invariant, by topic."""

    findings: Findings
    # Position of the request.
    requested: dict[str, int] = field(factory=dict)
    # The brokers of each partition.
    replicas: dict[str, dict[int, tuple[int, ...]]] = field(factory=dict)
    # Position at which the topic's node was removed.
    gone: dict[str, int] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Requests, assignments, and the state at the end."""
        return {
            Name.TOPIC_DELETION: self._deletion,
            Name.ASSIGNMENT: self._assignment,
            Name.REPLICA_LOG: self._replica_log,
            Name.LIVENESS_FAILED: self._liveness_failed,
        }

    def _deletion(self, position: int, event: Event) -> None:
        assert event.topic is not None
        if event.cause == "requested":
            self.requested[event.topic] = position
            return
        since = self.requested.pop(event.topic, -1)
        if event.node >= 0 and event.topic in self.replicas and event.topic not in self.gone:
            self.findings.add(
                "deletion_incomplete",
                expected=f"/admin/delete_topics/{event.topic} to stay until the topic's node is gone",
                seen=f"broker {event.node} removed it while the topic is still there",
                topic=event.topic,
                events=(since, position) if since >= 0 else (position,),
            )

    def _assignment(self, position: int, event: Event) -> None:
        assert event.topic is not None
        if event.replicas:
            self.replicas.setdefault(event.topic, {})[event.partition] = event.replicas
            self.gone.pop(event.topic, None)
        elif event.topic in self.requested and event.topic in self.replicas:
            self.gone[event.topic] = position

    def _replica_log(self, position: int, event: Event) -> None:
        assert event.topic is not None
        gone = self.gone.get(event.topic, -1)
        if gone < 0 or event.node not in self.replicas[event.topic].get(event.partition, ()):
            return
        self.findings.add(
            "deleted_topic_left_behind",
            expected=f"no replica of {event.topic} once its node was removed",
            seen=f"at the end broker {event.node} has one, log end {event.end_offset}",
            topic=event.topic,
            partition=event.partition,
            events=(gone, position),
        )

    def _liveness_failed(self, position: int, event: Event) -> None:
        for topic, since in self.requested.items() if event.cause == NEVER_ENDED else ():
            self.findings.add(
                "deletion_incomplete",
                expected=f"topic {topic} to be deleted, within the bound of the liveness phase, once the "
                f"faults had ended",
                seen=f"/admin/delete_topics/{topic} is still there",
                topic=topic,
                events=(since, position),
            )
