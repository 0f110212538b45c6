"""A client's knowledge of leaders. Owns the merge rule: a response with a lower leader epoch than the known
one is outdated (KIP-320)."""

from attrs import define, field

from fencepost.impl.client.partitioners import TopicView
from fencepost.impl.messages.broker_api import MetadataResponse, TopicPartition


@define
class ClientMetadata:
    """leaders: (leader, leader epoch) per partition. bootstrap: brokers to ask, in turn. views: of topics,
    until the next update."""

    bootstrap: tuple[int, ...]
    leaders: dict[TopicPartition, tuple[int, int]] = field(factory=dict)
    views: dict[str, TopicView] = field(factory=dict)

    def leader(self, key: TopicPartition) -> tuple[int, int] | None:
        """Leader and epoch, if there is one."""
        known = self.leaders.get(key)
        return known if known is not None and known[0] >= 0 else None

    def view(self, topic: str) -> TopicView:
        """The partitioner's view of a topic."""
        if topic not in self.views:
            known = sorted(key.partition for key in self.leaders if key.topic == topic)
            led = tuple(number for number in known if self.leader(TopicPartition(topic, number)))
            self.views[topic] = TopicView(topic=topic, partitions=tuple(known), available=led)
        return self.views[topic]

    def whom_to_ask(self, turn: int) -> int:
        """A broker for the next metadata request."""
        return self.bootstrap[turn % len(self.bootstrap)]

    def update(self, response: MetadataResponse) -> None:
        """Apply the parts of a response that are not older than the known state."""
        self.views.clear()
        for entry in response.partitions:
            known = self.leaders.get(entry.partition)
            if known is None or entry.leader_epoch >= known[1]:
                self.leaders[entry.partition] = (entry.leader, entry.leader_epoch)
