"""P226-STATIC: a topic that loses an override gets the broker's static value, not the dynamic one (KIP-226
gives the order: topic, broker, all brokers, static)."""

from attrs import define, field

from fencepost.impl.broker.dynamic_config import DynamicConfig


@define
class FallsBackToStatic(DynamicConfig):
    """had: the topics that ever had overrides."""

    had: set[str] = field(factory=set)

    def in_force(self, topic: str) -> dict[str, str]:
        """Without an override there is none of the broker either."""
        own = self.configs.get(topic, {})
        if own:
            self.had.add(topic)
        return super().in_force(topic) if own or topic not in self.had else {}
