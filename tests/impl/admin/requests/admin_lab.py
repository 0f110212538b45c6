"""A cluster with a controller of its own, and an admin client by hand: each request is a call, its answer
a value."""

from typing import Any

from impl_counterparts import Asked
from impl_lab import Lab

from fencepost.impl.messages import admin_api as kafka
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import GetChildren, GetData
from fencepost.traces.kafka_names.outcomes import ErrorCode

TIMEOUT_MS = 10_000


class AdminLab(Lab):
    """Broker 1 is the controller. There is no topic."""

    def __init__(self, brokers: int = 3, **options: Any) -> None:
        super().__init__(brokers, scripted=False, **({"replica_fetch_wait_max_ms": 50} | options))
        self.settle()
        assert self.controllers() == [1]

    def send(self, request: Any, node: int = 1) -> "Results":
        """Send a request; its answer may come later."""
        return Results(self, node, request)

    # ---- requests

    def create(
        self, *topics: kafka.NewTopic, node: int = 1, timeout_ms: int = TIMEOUT_MS, dry: bool = False
    ) -> "Results":
        """CreateTopics."""
        return self.send(
            kafka.CreateTopicsRequest(
                correlation_id=self.number(), topics=topics, timeout_ms=timeout_ms, validate_only=dry
            ),
            node,
        )

    def created(self, name: str, partitions: int = 1, factor: int = 1, **config: str) -> "AdminLab":
        """A topic that exists from now on, in the same lab."""
        topic = kafka.NewTopic(
            name=name,
            partitions=partitions,
            replication_factor=factor,
            config=tuple((key.replace("_", "."), value) for key, value in config.items()),
        )
        asked = self.create(topic)
        self.rest()
        assert asked.errors == {name: ErrorCode.NONE}, asked.answer
        return self

    def delete(self, *names: str, node: int = 1, timeout_ms: int = TIMEOUT_MS) -> "Results":
        """DeleteTopics."""
        return self.send(
            kafka.DeleteTopicsRequest(correlation_id=self.number(), names=names, timeout_ms=timeout_ms), node
        )

    def grow(
        self, *topics: kafka.MorePartitions, node: int = 1, timeout_ms: int = TIMEOUT_MS, dry: bool = False
    ) -> "Results":
        """CreatePartitions."""
        return self.send(
            kafka.CreatePartitionsRequest(
                correlation_id=self.number(), topics=topics, timeout_ms=timeout_ms, validate_only=dry
            ),
            node,
        )

    # ---- what stands in ZooKeeper

    def topics(self) -> tuple[str, ...]:
        """The names of all topics."""
        return self.tree.apply(0, GetChildren(znodes.TOPICS)).reply.names

    def assignment(self, name: str) -> dict[int, tuple[int, ...]]:
        """Replicas by partition."""
        return znodes.decode_topic(self.tree.apply(0, GetData(znodes.topic_path(name))).reply.data)

    def overrides(self, name: str) -> dict[str, str]:
        """A topic's configuration."""
        return znodes.decode_configuration(self.tree.apply(0, GetData(znodes.config_path(name))).reply.data)


class Results(Asked):
    """A request whose answer has a result for each of what it names."""

    @property
    def errors(self) -> dict[Any, ErrorCode]:
        """By the name, or the partition, of each result."""
        assert self.answer is not None, self.request
        return {getattr(one, "name", None) or one.partition: one.error for one in self.answer.results}

    @property
    def messages(self) -> str:
        """All that the results say."""
        return "; ".join(one.message for one in self.answer.results if one.message)
