"""What a client believes about leaders. Owns the merge rule: an answer with a lower leader epoch than known is old news (KIP-320)."""

from attrs import define, field

from fencepost.impl.messages import MetadataResponse, TopicPartition


@define
class ClientMetadata:
    """leaders: (leader, leader epoch) per partition. bootstrap: brokers to ask, in turn."""

    bootstrap: tuple[int, ...]
    leaders: dict[TopicPartition, tuple[int, int]] = field(factory=dict)

    def leader(self, key: TopicPartition) -> tuple[int, int] | None:
        """Leader and epoch, if there is one."""
        known = self.leaders.get(key)
        return known if known is not None and known[0] >= 0 else None

    def whom_to_ask(self, turn: int) -> int:
        """A broker for the next metadata request."""
        return self.bootstrap[turn % len(self.bootstrap)]

    def update(self, response: MetadataResponse) -> None:
        """Take over what is not older than what is known."""
        for entry in response.partitions:
            known = self.leaders.get(entry.partition)
            if known is None or entry.leader_epoch >= known[1]:
                self.leaders[entry.partition] = (entry.leader, entry.leader_epoch)
