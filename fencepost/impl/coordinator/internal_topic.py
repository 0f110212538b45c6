"""A topic in which brokers keep what they coordinate: who leads its partitions coordinates, and it is created
when somebody first asks (Kafka's AutoTopicCreationManager).

Owns FindCoordinator. Must not know what is in the topic.
"""

from collections.abc import Callable

from attrs import define

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.core.procedures import Procedure, Procedures
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode


@define
class InternalTopic:
    """count: says how many partitions it has, 0 if there is none. replication_factor: of one that must be
    created. creating: that is under way."""

    name: str
    broker_context: BrokerContext
    metadata: MetadataCache
    procedures: Procedures
    count: Callable[[], int]
    replication_factor: int
    creating: bool = False

    def find(self, source: int, request: kafka.FindCoordinatorRequest, number: int) -> None:
        """Answer with the leader of a partition, as far as this broker knows. The topic is created if it may
        be.

        Args:
            source: the node that asks.
            request: asks for a coordinator.
            number: of the partition.
        """
        leader, _ = self.metadata.leaders.get(TopicPartition(self.name, number), (-1, -1))
        error = NO_ERROR if self.count() and leader >= 0 else ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not any(known.topic == self.name for known in self.metadata.leaders):
            self.create()
        response = kafka.FindCoordinatorResponse(
            correlation_id=request.correlation_id, error=error, node=leader if error is NO_ERROR else -1
        )
        self.broker_context.reply(source, response, request.correlation_id)

    def create(self) -> None:
        """Create the topic, unless it is under way, or may not be."""
        named = any(topic.name == self.name for topic in self.broker_context.options.topics)
        if self.creating or named or not self.count() or not self.metadata.live_brokers:
            return
        self.creating = True
        self.procedures.start(self._creation())

    def _creation(self) -> Procedure:
        """As the first broker that is asked does it; that another one was quicker does no harm."""
        brokers = self.metadata.live_brokers
        replicas = min(self.replication_factor, len(brokers))
        assignment = {
            number: tuple(brokers[(number + place) % len(brokers)] for place in range(replicas))
            for number in range(self.count())
        }
        yield Create(znodes.topic_path(self.name), znodes.encode_topic(assignment))
        self.creating = False
